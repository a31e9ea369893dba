import type { Span } from '../../kernel/expression.ts';
import { dottedName } from './access.ts';
import { type Node, operandsOf } from './syntax.ts';

/** Where an expression needs an entry of a map. */
export interface NeededEntry extends Span {
  readonly name: string;
}

/**
 * The first entry of `map` (such as `request.headers`) without which the expression fails, though it reads as if it were
 * false: `request.headers["x"] == "1"` seems to say nothing about requests without the header. Undefined when the
 * expression looks whether the entry is there, in whatever way, or uses the map as a whole, or reads as if it were true
 * without the entry (`!=`, `!`, `== ""`): a doubt is not a warning.
 *
 * @param always Entries, in lower case, that are always there.
 */
export function unguardedEntry(
  tree: Node,
  map: string,
  always: ReadonlySet<string>,
): NeededEntry | undefined {
  const uses: Uses = { map, guarded: new Set(always), isWhole: false };
  survey(tree, uses);
  if (uses.isWhole) return undefined;
  return needed(tree, true, map).find(({ name }) => !uses.guarded.has(name.toLowerCase()));
}

/** The name of the entry that `node` reads; undefined for anything else, and for a computed one. */
function entryOf(node: Node | undefined, map: string): string | undefined {
  if (node?.kind !== 'member' && node?.kind !== 'index') return undefined;
  if (dottedName(node.target) !== map) return undefined;
  if (node.kind === 'member') return node.name;
  return node.index.kind === 'literal' && typeof node.index.value === 'string' ? node.index.value : undefined;
}

interface Uses {
  readonly map: string;
  /** Names, in lower case, of entries that the expression can do without. */
  readonly guarded: Set<string>;
  isWhole: boolean;
}

/** Notes every way in which the map is used, apart from plain reading. */
function survey(node: Node, uses: Uses): void {
  const { map, guarded } = uses;
  if (dottedName(node) === map || (node.kind === 'name' && map.startsWith(`${node.name}.`))) {
    uses.isWhole = true;
    return;
  }
  if (node.kind === 'member' && dottedName(node) !== undefined && entryOf(node, map) === undefined) return;
  const name = entryOf(node, map);
  if (name !== undefined) {
    if ('optional' in node && node.optional) guarded.add(name.toLowerCase());
    return;
  }
  if (node.kind === 'binary' && node.operator === 'in' && dottedName(node.right) === map) {
    if (node.left.kind === 'literal') guarded.add(String(node.left.value).toLowerCase());
    else uses.isWhole = true;
    return;
  }
  if (node.kind === 'call' && TOLERANT.has(node.name))
    for (const argument of node.args) {
      const tolerated = entryOf(argument, map);
      if (tolerated !== undefined) guarded.add(tolerated.toLowerCase());
    }
  if (node.kind === 'call' && node.name === 'variables') uses.isWhole = true;
  for (const child of operandsOf(node)) survey(child, uses);
}

/** Calls that go on when an argument fails. */
const TOLERANT: ReadonlySet<string> = new Set(['has', 'default', 'coalesce']);

/** Entries that must be there for `node` to be true, or, when it is negated, false. */
function needed(node: Node, isWanted: boolean, map: string): NeededEntry[] {
  switch (node.kind) {
    case 'and':
    case 'or':
      return [...needed(node.left, isWanted, map), ...needed(node.right, isWanted, map)];
    case 'not':
      return needed(node.operand, !isWanted, map);
    case 'choice':
      return [...needed(node.yes, isWanted, map), ...needed(node.no, isWanted, map)];
    case 'binary':
      return isWanted === (node.operator !== '!=') && !isEmptyTest(node) ? readIn(node, map) : [];
    case 'call':
      return isWanted ? readIn(node, map) : [];
    default:
      return [];
  }
}

/** `x == null`, `"" == x`: who writes that has missing ones in mind. */
function isEmptyTest({ left, right }: Extract<Node, { kind: 'binary' }>): boolean {
  return [left, right].some((side) => side.kind === 'literal' && (side.value === null || side.value === ''));
}

/** Entries that are read in any case while the value of `node` is computed. */
function readIn(node: Node, map: string): NeededEntry[] {
  const name = entryOf(node, map);
  if (name !== undefined) {
    const { start, end } = node;
    return 'optional' in node && node.optional ? [] : [{ name, start, end }];
  }
  if (node.kind === 'binary') return [...readIn(node.left, map), ...readIn(node.right, map)];
  if (node.kind !== 'call' || !STRICT.has(node.name)) return [];
  return operandsOf(node).flatMap((child) => readIn(child, map));
}

/** Functions that are certain to fail with their arguments. */
const STRICT: ReadonlySet<string> = new Set([
  ...['startsWith', 'endsWith', 'contains', 'matches'],
  ...['lowerAscii', 'upperAscii', 'trim', 'split', 'substring'],
  ...['int', 'uint', 'double', 'string', 'bool'],
]);

/**
 * Whether an expression looks somewhere whether there is something at `path`, such as `mcp.tool.arguments`: by `has()`,
 * `default()`, `coalesce()`, `in` or an optional member.
 */
export function isGuarded(node: Node, path: string): boolean {
  const at = path.lastIndexOf('.');
  const [holder, name] = [path.slice(0, at), path.slice(at + 1)];
  // `has(a.b.c)` fails without `a.b`.
  const isTolerated = (other: Node): boolean =>
    node.kind === 'call' && node.name === 'has'
      ? dottedName(other) === path
      : `${dottedName(other) ?? ''}.`.startsWith(`${path}.`);
  if (node.kind === 'call' && TOLERANT.has(node.name) && node.args.some(isTolerated)) return true;
  if ((node.kind === 'member' || node.kind === 'index') && node.optional && entryOf(node, holder) === name)
    return true;
  if (node.kind === 'binary' && node.operator === 'in' && dottedName(node.right) === holder) return true;
  return operandsOf(node).some((operand) => isGuarded(operand, path));
}
