import { nearest } from '../../../core/suggest.ts';
import { dottedName } from './access.ts';
import { type Compilation, findLocal, problem, type Scope, type Step } from './compilation.ts';
import { CelEvaluationError } from './errors.ts';
import type { FunctionDefinition } from './functions/define.ts';
import { FUNCTIONS } from './functions/index.ts';
import { isValidPattern } from './functions/regex.ts';
import { charge } from './limits.ts';
import { MACROS } from './macros.ts';
import type { NodeOf } from './syntax.ts';
import { typeName, type Value } from './values.ts';

type Call = NodeOf<'call'>;

const NAMES: readonly string[] = [...FUNCTIONS.keys(), ...MACROS.keys()];
const NAMESPACES: ReadonlySet<string> = new Set(
  NAMES.filter((name) => name.indexOf('.') > 0).map((name) => name.slice(0, name.indexOf('.'))),
);

/** Compiles a function, method or macro call. Throws `CelSyntaxError` AGW0203 if it does not exist. */
export function compileCall(call: Call, scope: Scope | undefined, c: Compilation): Step {
  const key = lookupKey(call, scope, c);
  const macro = MACROS.get(key);
  if (macro?.arity.includes(call.args.length)) return macro.compile(call, scope, c);
  const definitions = FUNCTIONS.get(key) ?? [];
  const fitting = definitions.filter(({ min, max }) => call.args.length >= min && call.args.length <= max);
  const [first] = fitting;
  if (first === undefined) throw unknownFunction(call, key, definitions, macro?.arity ?? []);
  checkPattern(call, key);
  const args = call.args.map((arg) => c.compile(arg, scope));
  if (!key.startsWith('.') || call.target === undefined) return callStep(first.call, args);
  return callStep(dispatch(call.name, fitting), [c.compile(call.target, scope), ...args]);
}

/** The key of a function: `size`, `.size` or `math.abs`. A name that is not a variable is a namespace. */
function lookupKey(call: Call, scope: Scope | undefined, c: Compilation): string {
  if (call.target === undefined) return call.name;
  const space = dottedName(call.target);
  if (
    space !== undefined &&
    NAMESPACES.has(space) &&
    findLocal(scope, space) === undefined &&
    !c.variables.has(space)
  ) {
    return `${space}.${call.name}`;
  }
  return `.${call.name}`;
}

function callStep(run: (...args: Value[]) => Value, args: readonly Step[]): Step {
  const [a, b, c] = args;
  if (a === undefined || c !== undefined)
    return (frame) => {
      charge(1);
      return run(...args.map((arg) => arg(frame)));
    };
  if (b === undefined)
    return (frame) => {
      charge(1);
      return run(a(frame));
    };
  return (frame) => {
    charge(1);
    return run(a(frame), b(frame));
  };
}

function dispatch(name: string, candidates: readonly FunctionDefinition[]): (...args: Value[]) => Value {
  return (...args) => {
    const [receiver = null] = args;
    for (const candidate of candidates) if (candidate.on?.(receiver) === true) return candidate.call(...args);
    throw new CelEvaluationError('no_such_overload', `${typeName(receiver)} has no method \`${name}\``);
  };
}

// A literal pattern is checked when the expression is compiled, not when it is evaluated.
function checkPattern(call: Call, key: string): void {
  if (key !== '.matches' && key !== '.regexReplace') return;
  const [source] = call.args;
  if (source?.kind !== 'literal' || typeof source.value !== 'string' || isValidPattern(source.value)) return;
  throw problem(
    'AGW0201',
    source,
    'the regular expression is not valid RE2',
    'RE2 has no look-around and no back-references; in a string, write a backslash twice or use r"..."',
  );
}

function unknownFunction(
  call: Call,
  key: string,
  definitions: readonly FunctionDefinition[],
  macro: readonly number[],
) {
  const shown = key.startsWith('.') ? key.slice(1) : key;
  const kind = key.startsWith('.') ? 'method' : 'function';
  if (definitions.length > 0 || macro.length > 0) {
    return problem(
      'AGW0203',
      call,
      `\`${shown}\` cannot be called with ${count(call.args.length)}`,
      `it takes ${arities(definitions, macro)}`,
    );
  }
  const other = key.startsWith('.') ? shown : `.${key}`;
  if (FUNCTIONS.has(other) || MACROS.has(other)) {
    const help = key.startsWith('.') ? `write \`${shown}(value)\`` : `write \`value.${shown}(...)\``;
    return problem(
      'AGW0203',
      call,
      `\`${shown}\` is a ${kind === 'method' ? 'function, not a method' : 'method, not a function'}`,
      help,
    );
  }
  const similar = nearest(key, NAMES);
  const help =
    similar === undefined ? undefined : `one with a similar name exists: \`${similar.replace(/^\./, '')}\``;
  return problem('AGW0203', call, `unknown ${kind} \`${shown}\``, help);
}

function count(args: number): string {
  return args === 0 ? 'no arguments' : args === 1 ? '1 argument' : `${args} arguments`;
}

function arities(definitions: readonly FunctionDefinition[], macro: readonly number[]): string {
  const numbers = [...definitions.flatMap(({ min, max }) => [min, max]), ...macro].sort((a, b) => a - b);
  const [least, most] = [numbers[0] ?? 0, numbers.at(-1) ?? 0];
  return least === most ? count(least) : `${least} to ${count(most)}`;
}
