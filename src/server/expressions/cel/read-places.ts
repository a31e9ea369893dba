import { type Node, type NodeOf, operandsOf } from './syntax.ts';

/** Names from a root variable down to a value. Items of a list have the path of the list; `json(x)` adds a step of its own. */
export type ValuePath = readonly string[];

/** The step for what `json()` makes of a text. No member has this name. */
export const JSON_STEP = 'json()';

/** A name that an expression reads, with the value that it reads it from. */
export interface NameRead {
  readonly of: ValuePath;
  readonly name: string;
  /** False if the value is somewhere below the path, where only the evaluation shows: `x[key].name`, `f(x).name`. */
  readonly isExact: boolean;
}

interface Place {
  readonly path: ValuePath;
  readonly isExact: boolean;
}

type Locals = ReadonlyMap<string, readonly Place[]>;

/** Every name of a member that an expression reads or looks for, also of items of lists and of values with a local name. */
export function namesRead(tree: Node): readonly NameRead[] {
  const reads: NameRead[] = [];
  placesOf(tree, new Map(), reads);
  return reads;
}

/** Where the value of a node may come from. Records the names that are read on the way. */
function placesOf(node: Node, locals: Locals, reads: NameRead[]): readonly Place[] {
  switch (node.kind) {
    case 'name':
      return locals.get(node.name) ?? [{ path: [node.name], isExact: true }];
    case 'member':
      return select(placesOf(node.target, locals, reads), node.name, reads);
    case 'index':
      return indexed(node, locals, reads);
    case 'call':
      return called(node, locals, reads);
    case 'choice':
      placesOf(node.test, locals, reads);
      return few([...placesOf(node.yes, locals, reads), ...placesOf(node.no, locals, reads)]);
    case 'binary':
      compared(node, locals, reads);
      return [];
    default:
      for (const operand of operandsOf(node)) placesOf(operand, locals, reads);
      return [];
  }
}

/** `"path" in x`; and in a loop over the keys of a map, `k == "path"` and `k in ["path"]`. */
function compared({ operator, left, right }: NodeOf<'binary'>, locals: Locals, reads: NameRead[]): void {
  const before = placesOf(left, locals, reads);
  const after = placesOf(right, locals, reads);
  const isEquation = operator === '==' || operator === '!=';
  const areKeysLeft = left.kind === 'name' && (isEquation || operator === 'in');
  if (areKeysLeft) for (const name of textsIn(right)) select(before, name, reads);
  if (operator === 'in' || (isEquation && right.kind === 'name'))
    for (const name of textsIn(left)) select(after, name, reads);
}

/** The literal texts that a node is, or that a list has. */
function textsIn(node: Node): string[] {
  if (node.kind === 'list') return node.items.flatMap(textsIn);
  return node.kind === 'literal' && typeof node.value === 'string' ? [node.value] : [];
}

function select(owners: readonly Place[], name: string, reads: NameRead[]): readonly Place[] {
  return owners.map(({ path, isExact }) => {
    reads.push({ of: path, name, isExact });
    return isExact ? { path: [...path, name], isExact } : { path, isExact };
  });
}

function indexed(node: NodeOf<'index'>, locals: Locals, reads: NameRead[]): readonly Place[] {
  const owners = placesOf(node.target, locals, reads);
  const { index } = node;
  if (index.kind === 'literal')
    return typeof index.value === 'string' ? select(owners, index.value, reads) : owners;
  placesOf(index, locals, reads);
  return owners.map(inexact);
}

/** Beyond so many places, only their variables are known: each choice between names for choices doubles their number. */
const MOST_PLACES = 16;

function few(places: readonly Place[]): readonly Place[] {
  const unique = new Map(places.map((place) => [JSON.stringify(place), place]));
  if (unique.size <= MOST_PLACES) return [...unique.values()];
  const roots = new Set(places.map(({ path }) => path[0] ?? ''));
  return [...roots].map((root) => ({ path: [root], isExact: false }));
}

const inexact = ({ path }: Place): Place => ({ path, isExact: false });

/** Macros whose second and later arguments see an item of what stands before the dot. */
const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'existsOne', 'filter', 'map']);
/** Those that see a key of it. */
const KEY_LOOPS: ReadonlySet<string> = new Set(['filterKeys', 'removeKeys']);
/** Calls that return one of their arguments, or the same text in another type. */
const SAME: ReadonlySet<string> = new Set([
  ...['default', 'coalesce', 'or', 'orValue', 'value', 'of', 'ofNonZeroValue'],
  ...['string', 'bytes', 'dyn'],
]);

function called(node: NodeOf<'call'>, locals: Locals, reads: NameRead[]): readonly Place[] {
  const { target, name, args } = node;
  const [first, second, third] = args;
  const inside = (arg: Node | undefined, bound = locals): readonly Place[] =>
    arg === undefined ? [] : placesOf(arg, bound, reads);
  const owners = inside(target);
  if (target !== undefined && first?.kind === 'name') {
    const withLocal = (places: readonly Place[]): Locals => new Map(locals).set(first.name, places);
    if (name === 'bind' && third !== undefined) return inside(third, withLocal(inside(second)));
    if (name === 'with') return inside(second, withLocal(owners));
    if (LOOPS.has(name) || KEY_LOOPS.has(name) || name === 'mapValues') {
      // The value of some key, or an item or key, which has the path of what is looped over.
      const bound = withLocal(name === 'mapValues' ? owners.map(inexact) : owners);
      const results = args.slice(1).map((arg) => inside(arg, bound));
      return name === 'map' || name === 'mapValues' ? (results.at(-1) ?? []) : owners;
    }
  }
  if (name === 'json' && target === undefined)
    return inside(first).map(({ path, isExact }) => ({ path: [...path, JSON_STEP], isExact }));
  if (name === 'jsonField' && target === undefined && second?.kind === 'literal') {
    const texts = inside(first).map(({ path, isExact }) => ({ path: [...path, JSON_STEP], isExact }));
    return select(texts, String(second.value), reads);
  }
  // Of a map, it looks for a key.
  if (name === 'contains' && first !== undefined)
    for (const text of textsIn(first)) select(owners, text, reads);
  const places = [...owners, ...args.flatMap((arg) => inside(arg))];
  return few(SAME.has(name) ? places : places.map(inexact));
}
