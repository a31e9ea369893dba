import { type Compilation, findLocal, problem, type Scope, type Step } from './compilation.ts';
import { declarationOf, misspelledMember, unknownVariable } from './declarations.ts';
import { CelEvaluationError } from './errors.ts';
import { isMap, item, member, missingMember, throughOptional } from './maps.ts';
import type { Node, NodeOf } from './syntax.ts';
import { CelOptional, CelType, isList, typeName, type Value } from './values.ts';

type Access = NodeOf<'member'> | NodeOf<'index'>;

const TYPES: ReadonlyMap<string, CelType> = new Map(
  [
    'bool',
    'bytes',
    'double',
    'int',
    'list',
    'map',
    'null_type',
    'optional_type',
    'string',
    'type',
    'uint',
    'google.protobuf.Timestamp',
    'google.protobuf.Duration',
    'net.IP',
    'net.CIDR',
  ].map((name) => [name, new CelType(name)]),
);

/** The dotted path `a.b.c` of a node, or undefined if it contains anything but plain names. */
export function dottedName(node: Node): string | undefined {
  if (node.kind === 'name') return node.name;
  if (node.kind !== 'member' || node.optional) return undefined;
  const before = dottedName(node.target);
  return before === undefined ? undefined : `${before}.${node.name}`;
}

/** A bare name: a local, a root variable or a type. */
export function compileName(node: NodeOf<'name'>, scope: Scope | undefined, c: Compilation): Step {
  const local = findLocal(scope, node.name);
  if (local !== undefined) {
    const { slot } = local;
    return (frame) => frame.slots[slot] ?? null;
  }
  if (c.variables.has(node.name)) {
    c.note(node.name, node);
    return c.root(node.name);
  }
  const type = TYPES.get(node.name);
  if (type !== undefined) return () => type;
  const { message, help } = unknownVariable(node.name, [...c.variables]);
  throw problem('AGW0202', node, message, help);
}

/** `a.b`, `a.?b`, `a["b"]`, `a[?0]`. */
export function compileAccess(node: Access, scope: Scope | undefined, c: Compilation): Step {
  const qualified = compileQualified(node, scope, c);
  if (qualified !== undefined) return qualified;
  const target = compileTarget(node, scope, c);
  if (node.kind === 'member') {
    const { name } = node;
    return reader(target, (value) => named(value, name), node.optional, `no such key \`${name}\``);
  }
  if (node.index.kind === 'literal' && typeof node.index.value === 'string') {
    const name = node.index.value;
    return reader(
      target,
      (value) => (isList(value) ? item(value, name) : member(value, name)),
      node.optional,
      `no such key \`${name}\``,
    );
  }
  return indexReader(target, c.compile(node.index, scope), node.optional);
}

/** Compiles the operand of a member access. Records the whole path if it is known, instead of only its root. */
function compileTarget(node: Access, scope: Scope | undefined, c: Compilation): Step {
  const path = staticPath(node, scope, c);
  if (path === undefined) return c.compile(node.target, scope);
  c.note(path.join('.'), node);
  return compilePrefix(node.target, scope, c);
}

/** Compiles the operand of a path that is already recorded. */
function compilePrefix(node: Node, scope: Scope | undefined, c: Compilation): Step {
  c.nodes++;
  if (node.kind === 'name') return c.root(node.name);
  const name = memberName(node);
  if (name === undefined || !('optional' in node)) throw new Error('a path has members only');
  return reader(
    compilePrefix(node.target, scope, c),
    (value) => named(value, name),
    node.optional,
    `no such key \`${name}\``,
  );
}

/** The names from a root variable to this member, or undefined if it has no root variable or is computed. */
export function staticPath(node: Node, scope: Scope | undefined, c: Compilation): string[] | undefined {
  if (node.kind === 'name') {
    return findLocal(scope, node.name) === undefined && c.variables.has(node.name) ? [node.name] : undefined;
  }
  if (node.kind !== 'member' && node.kind !== 'index') return undefined;
  const name = memberName(node);
  if (name === undefined) return undefined;
  const before = staticPath(node.target, scope, c);
  if (before === undefined) return undefined;
  checkMember(node, before, name);
  return [...before, name];
}

function memberName(node: Node): string | undefined {
  if (node.kind === 'member') return node.name;
  return node.kind === 'index' && node.index.kind === 'literal' && typeof node.index.value === 'string'
    ? node.index.value
    : undefined;
}

function checkMember(node: Access, path: readonly string[], name: string): void {
  const meant = misspelledMember(path, name);
  if (meant === undefined) return;
  const span = node.kind === 'member' ? { start: node.nameStart, end: node.end } : node.index;
  throw problem(
    'AGW0202',
    span,
    `\`${path.join('.')}\` has no member \`${name}\``,
    `a member with a similar name exists: \`${[...path, meant].join('.')}\``,
  );
}

/** Qualified names: `google.protobuf.Timestamp`, or a variable that is declared with dots. */
function compileQualified(node: Access, scope: Scope | undefined, c: Compilation): Step | undefined {
  const name = dottedName(node);
  if (name === undefined || findLocal(scope, name.slice(0, name.indexOf('.'))) !== undefined)
    return undefined;
  if (c.variables.has(name)) {
    c.note(name, node);
    return c.root(name);
  }
  const type = TYPES.get(name);
  return type === undefined ? undefined : () => type;
}

type Read = (value: Value) => Value | undefined;

/** The member with that name. Items of a list have no names. */
function named(value: Value, name: string): Value | undefined {
  if (isList(value)) throw missingMember(value, `no such key \`${name}\``);
  return member(value, name);
}

function reader(target: Step, read: Read, optional: boolean, missing: string): Step {
  if (optional) return (frame) => readOptional(target(frame), read);
  return (frame) => {
    const value = target(frame);
    const found = read(value);
    if (found !== undefined) return found;
    if (value instanceof CelOptional) return throughOptional(value, read);
    throw missingMember(value, missing);
  };
}

function indexReader(target: Step, index: Step, optional: boolean): Step {
  return (frame) => {
    const value = target(frame);
    const at = index(frame);
    if (optional) return readOptional(value, (inner) => item(inner, at));
    if (value instanceof CelOptional) return throughOptional(value, (inner) => item(inner, at));
    const found = item(value, at);
    if (found !== undefined) return found;
    if (isList(value)) throw new CelEvaluationError('index_out_of_range', 'a list has no item at that index');
    throw missingMember(value, 'no such key');
  };
}

function readOptional(value: Value, read: Read): CelOptional {
  return throughOptional(value instanceof CelOptional ? value : new CelOptional(value), read);
}

/**
 * `has(a.b)`: whether the last member of a path exists. The members before it must exist, and a value that has no members is an
 * error, as in CEL ("Field Selection"): otherwise a rule on arguments would say of a text that it has no path, where a server
 * may read the text as JSON. A variable that is not set is null, and has no members.
 */
export function compileHas(node: NodeOf<'call'>, scope: Scope | undefined, c: Compilation): Step {
  const [access] = node.args;
  if (access?.kind !== 'member' && access?.kind !== 'index') {
    throw problem('AGW0201', access ?? node, '`has` needs a member, as in `has(jwt.sub)`');
  }
  const path = staticPath(access.target, scope, c);
  const mayBeUnset = path !== undefined && (path.length === 1 || declarationOf(path) !== undefined);
  const target = compileTarget(access, scope, c);
  const name = access.kind === 'member' ? access.name : memberName(access);
  const index: Step =
    name === undefined && access.kind === 'index' ? c.compile(access.index, scope) : () => name ?? '';
  return (frame) => {
    const value = target(frame);
    const at = index(frame);
    if (value instanceof CelOptional)
      return value.value !== undefined && hasItem(value.value, at, mayBeUnset);
    return hasItem(value, at, mayBeUnset);
  };
}

function hasItem(value: Value, at: Value, mayBeUnset: boolean): boolean {
  if (isList(value) || isMap(value)) return item(value, at) !== undefined;
  if (value === null && mayBeUnset) return false;
  throw new CelEvaluationError('no_such_overload', `\`has\` needs a map, not ${typeName(value)}`);
}
