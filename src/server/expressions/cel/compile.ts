import type { Span } from '../../kernel/expression.ts';
import { compileAccess, compileName, staticPath } from './access.ts';
import { compileCall } from './calls.ts';
import { asList, withClaimLists } from './claim-lists.ts';
import { Compilation, problem, type Scope, type Step } from './compilation.ts';
import { declarationOf } from './declarations.ts';
import { absorbable, CelEvaluationError } from './errors.ts';
import { mapKey } from './maps.ts';
import { nonBooleanType, STRING } from './non-boolean-type.ts';
import {
  add,
  compare,
  contains,
  divide,
  equal,
  int,
  multiply,
  negate,
  not,
  remainder,
  subtract,
} from './operators.ts';
import type { BinaryOperator, Node, NodeOf } from './syntax.ts';
import { type MapKey, typeName, Uint, type Value } from './values.ts';

/** A compiled expression, before `compileExpression` adds its `evaluate` method. */
export interface Program {
  readonly step: Step;
  readonly slots: number;
  readonly roots: ReadonlySet<string>;
  /** Dotted paths that are read, each with its first position. */
  readonly paths: ReadonlyMap<string, Span>;
  readonly inOnStrings: readonly Span[];
}

/**
 * Turns a syntax tree into nested closures. Types are decided when values meet, as upstream does; names, functions and
 * literal patterns are checked here. Throws `CelSyntaxError`.
 */
export function compile(node: Node, variables: readonly string[]): Program {
  const compilation = new Compilation(variables, compileNode);
  const step = compilation.compile(withClaimLists(node), undefined);
  return {
    step,
    slots: compilation.slots,
    roots: new Set(compilation.roots.keys()),
    paths: compilation.paths,
    inOnStrings: compilation.inOnStrings,
  };
}

function compileNode(node: Node, scope: Scope | undefined, c: Compilation): Step {
  switch (node.kind) {
    case 'literal':
      return compileLiteral(node);
    case 'name':
      return compileName(node, scope, c);
    case 'member':
    case 'index':
      return compileAccess(node, scope, c);
    case 'call':
      return compileCall(node, scope, c);
    case 'list':
      return compileList(node, scope, c);
    case 'map':
      return compileMap(node, scope, c);
    case 'choice':
      return compileChoice(node, scope, c);
    case 'and':
    case 'or':
      return compileLogic(node.kind === 'or', c.compile(node.left, scope), c.compile(node.right, scope));
    case 'not': {
      const operand = c.compile(node.operand, scope);
      return (frame) => not(operand(frame));
    }
    case 'negate':
      return compileNegate(node, scope, c);
    case 'asList': {
      const operand = c.compile(node.operand, scope);
      return (frame) => asList(operand(frame));
    }
    default:
      if (node.operator === 'in' && isText(node.right, scope, c)) c.inOnStrings.push(node.right);
      return BINARY[node.operator](c.compile(node.left, scope), c.compile(node.right, scope));
  }
}

/** Whether the value of a node is always a string: a literal, a declared string, or the result of a string function. */
function isText(node: Node, scope: Scope | undefined, c: Compilation): boolean {
  if (node.kind === 'literal') return typeof node.value === 'string';
  if (node.kind === 'call') return nonBooleanType(node) === STRING;
  const path = staticPath(node, scope, c);
  return path !== undefined && declarationOf(path)?.type === 'string';
}

function compileLiteral(node: NodeOf<'literal'>): Step {
  const { value } = node;
  if (typeof value === 'bigint') return constant(fitting(value, node));
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return constant(value);
  return constant(new Uint(value.uint));
}

function constant(value: Value): Step {
  return () => value;
}

function fitting(value: bigint, node: Node): bigint {
  try {
    return int(value);
  } catch {
    throw problem(
      'AGW0201',
      node,
      'the number does not fit in 64 bits',
      'write it with a decimal point to get a double',
    );
  }
}

// The smallest int has no positive counterpart, so its sign must be read with its digits.
function compileNegate(node: NodeOf<'negate'>, scope: Scope | undefined, c: Compilation): Step {
  const { operand } = node;
  if (operand.kind === 'literal' && typeof operand.value === 'bigint')
    return constant(fitting(-operand.value, node));
  const step = c.compile(operand, scope);
  return (frame) => negate(step(frame));
}

function compileList(node: NodeOf<'list'>, scope: Scope | undefined, c: Compilation): Step {
  const items = node.items.map((item) => c.compile(item, scope));
  return (frame) => items.map((item) => item(frame));
}

function compileMap(node: NodeOf<'map'>, scope: Scope | undefined, c: Compilation): Step {
  const entries = node.entries.map(
    ([key, value]) => [c.compile(key, scope), c.compile(value, scope)] as const,
  );
  return (frame) => {
    const map = new Map<MapKey, Value>();
    for (const [key, value] of entries) {
      const name = key(frame);
      if (typeof name === 'number')
        throw new CelEvaluationError('no_such_overload', 'a map key must not be a double');
      const own = mapKey(name);
      if (map.has(own)) throw new CelEvaluationError('invalid_argument', 'a map literal has a duplicate key');
      map.set(own, value(frame));
    }
    return map;
  };
}

function compileChoice(node: NodeOf<'choice'>, scope: Scope | undefined, c: Compilation): Step {
  const test = c.compile(node.test, scope);
  const yes = c.compile(node.yes, scope);
  const no = c.compile(node.no, scope);
  return (frame) => {
    const value = test(frame);
    if (value === true) return yes(frame);
    if (value === false) return no(frame);
    throw new CelEvaluationError(
      'no_such_overload',
      `the condition before \`?\` must be a bool, not ${typeName(value)}`,
    );
  };
}

/** `||` (decided by true) and `&&` (by false): either side may decide, also when the other one fails. */
function compileLogic(decisive: boolean, left: Step, right: Step): Step {
  const operator = decisive ? '||' : '&&';
  return (frame) => {
    let failure: CelEvaluationError | undefined;
    try {
      if (bool(left(frame), operator) === decisive) return decisive;
    } catch (error) {
      failure = absorbable(error);
    }
    if (bool(right(frame), operator) === decisive) return decisive;
    if (failure !== undefined) throw failure;
    return !decisive;
  };
}

function bool(value: Value, operator: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new CelEvaluationError('no_such_overload', `\`${operator}\` needs bools, not ${typeName(value)}`);
}

const BINARY: Readonly<Record<BinaryOperator, (left: Step, right: Step) => Step>> = {
  '==': (left, right) => (frame) => equal(left(frame), right(frame)),
  '!=': (left, right) => (frame) => !equal(left(frame), right(frame)),
  '<': (left, right) => (frame) => compare(left(frame), right(frame)) < 0,
  '<=': (left, right) => (frame) => compare(left(frame), right(frame)) <= 0,
  '>': (left, right) => (frame) => compare(left(frame), right(frame)) > 0,
  '>=': (left, right) => (frame) => compare(left(frame), right(frame)) >= 0,
  in: (left, right) => (frame) => {
    const value = left(frame);
    return contains(right(frame), value);
  },
  '+': (left, right) => (frame) => add(left(frame), right(frame)),
  '-': (left, right) => (frame) => subtract(left(frame), right(frame)),
  '*': (left, right) => (frame) => multiply(left(frame), right(frame)),
  '/': (left, right) => (frame) => divide(left(frame), right(frame)),
  '%': (left, right) => (frame) => remainder(left(frame), right(frame)),
};
