import { mapOperands, type Node, type NodeOf } from './syntax.ts';
import { CelOptional, type Value } from './values.ts';

/**
 * Identity providers write a list of one role as a plain string, so `"admin" in jwt.roles` must accept both forms. What
 * is on the right of `in` decides, and only there: every other use of the claim, `jwt.scope.contains("x")` for one,
 * sees the string.
 */

/** Variables whose members are claims or similar: of a token, a key, or an authorization service. */
const CLAIM_ROOTS: ReadonlySet<string> = new Set(['jwt', 'apiKey', 'extauthz']);

/** Names that macros bind, innermost first. */
interface Local {
  readonly name: string;
  /** A claim under another name; or the item of a loop over one, whose members are claims. */
  readonly kind: Kind;
  readonly outer: Local | undefined;
}

type Kind = 'claim' | 'item' | undefined;

/** Returns a tree in which each claim on the right side of `in` is wrapped in an `asList` node. */
export function withClaimLists(node: Node, locals?: Local): Node {
  const inside = (child: Node): Node => withClaimLists(child, locals);
  if (node.kind === 'call') return inCall(node, locals);
  const mapped = mapOperands(node, inside);
  if (mapped.kind !== 'binary' || mapped.operator !== 'in' || node.kind !== 'binary') return mapped;
  return { ...mapped, right: listed(mapped.right, locals, false) };
}

/** The value of an `asList` node: a string counts as a list of one. */
export function asList(value: Value): Value {
  if (typeof value === 'string') return [value];
  return value instanceof CelOptional && typeof value.value === 'string'
    ? new CelOptional([value.value])
    : value;
}

/** Follows the ways in which a claim gets a stand-in, whose text counts in the same way: `default(jwt.roles, "")`. */
function listed(node: Node, locals: Local | undefined, isAlternative: boolean): Node {
  const alternative = (child: Node): Node => listed(child, locals, true);
  const wrapped: Node = { kind: 'asList', start: node.start, end: node.end, operand: node };
  if (isAlternative && node.kind === 'literal' && typeof node.value === 'string') return wrapped;
  if (kindOf(node, locals) !== 'claim') return node;
  if (node.kind === 'choice') return { ...node, yes: alternative(node.yes), no: alternative(node.no) };
  return node.kind === 'call' && isFallback(node) ? mapOperands(node, alternative) : wrapped;
}

/** Whether a value is a claim, or may be one. */
function kindOf(node: Node, locals: Local | undefined): Kind {
  switch (node.kind) {
    case 'name': {
      for (let at = locals; at !== undefined; at = at.outer) if (at.name === node.name) return at.kind;
      return CLAIM_ROOTS.has(node.name) ? 'claim' : undefined;
    }
    case 'member':
    case 'index':
      return kindOf(node.target, locals) === undefined ? undefined : 'claim';
    case 'choice':
      return kindOf(node.yes, locals) ?? kindOf(node.no, locals);
    case 'call': {
      if (node.target === undefined && node.name === 'unvalidatedJwtPayload') return 'claim';
      if (!isFallback(node)) return undefined;
      const values = node.target === undefined ? node.args : [node.target, ...node.args];
      return values.some((value) => kindOf(value, locals) === 'claim') ? 'claim' : undefined;
    }
    default:
      return undefined;
  }
}

/** Calls that return one of their arguments. */
function isFallback({ target, name }: NodeOf<'call'>): boolean {
  return target === undefined
    ? name === 'default' || name === 'coalesce'
    : name === 'orValue' || name === 'or' || name === 'value';
}

const LOOPS: ReadonlySet<string> = new Set([
  ...['all', 'exists', 'exists_one', 'existsOne', 'filter', 'map'],
  ...['mapValues', 'filterKeys', 'removeKeys'],
]);

/** A call whose later arguments may see a new name. */
function inCall(node: NodeOf<'call'>, locals: Local | undefined): Node {
  const { target, name, args } = node;
  const bound = boundBy(node, locals);
  if (bound === undefined) return mapOperands(node, (child) => withClaimLists(child, locals));
  const isBind = name === 'bind';
  return {
    ...node,
    target: target === undefined ? undefined : withClaimLists(target, locals),
    args: args.map((arg, index) => withClaimLists(arg, index > (isBind ? 1 : 0) ? bound : locals)),
  };
}

/** The name that a macro binds, with what it stands for; undefined for any other call. */
function boundBy({ target, name, args }: NodeOf<'call'>, outer: Local | undefined): Local | undefined {
  const [first, second] = args;
  if (target === undefined || first?.kind !== 'name') return undefined;
  if (name === 'with') return { name: first.name, kind: kindOf(target, outer), outer };
  if (name === 'bind' && second !== undefined)
    return { name: first.name, kind: kindOf(second, outer), outer };
  if (!LOOPS.has(name)) return undefined;
  return { name: first.name, kind: kindOf(target, outer) === undefined ? undefined : 'item', outer };
}
