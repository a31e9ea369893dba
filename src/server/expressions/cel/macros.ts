import { compileHas } from './access.ts';
import type { Compilation, Scope, Step } from './compilation.ts';
import { absorbable, CelEvaluationError } from './errors.ts';
import { LOOPS } from './loops.ts';
import { type Call, type Macro, nameOf } from './macro.ts';
import type { Node } from './syntax.ts';
import { CelOptional, type MapKey, type Value } from './values.ts';

/** `value.with(name, expr)` and `cel.bind(name, value, expr)`. */
function bind(
  call: Call,
  name: Node,
  value: Node,
  body: Node,
  scope: Scope | undefined,
  c: Compilation,
): Step {
  const bound = c.compile(value, scope);
  const inner = c.bind(nameOf(name, call), scope);
  const step = c.compile(body, inner);
  const { slot } = inner;
  return (frame) => {
    frame.slots[slot] = bound(frame);
    return step(frame);
  };
}

/** `default(expr, other)`: the other for null and for a missing key; any other failure stays one. */
const defaultTo: Macro = {
  arity: [2],
  usage: 'default(value, other)',
  compile(call, scope, c) {
    const [value, other] = call.args.map((arg) => c.compile(arg, scope)) as [Step, Step];
    return (frame) => {
      try {
        const found = value(frame);
        if (found !== null) return found;
      } catch (error) {
        if (absorbable(error).reason !== 'no_such_key') throw error;
      }
      return other(frame);
    };
  },
};

/** `coalesce(...)`: the first value that is neither null nor a failure; else null if one was null, else the last failure. */
const coalesce: Macro = {
  arity: Array.from({ length: 32 }, (_, index) => index + 1),
  usage: 'coalesce(a, b, ...)',
  compile(call, scope, c) {
    const steps = call.args.map((arg) => c.compile(arg, scope));
    return (frame) => {
      let failure: CelEvaluationError | undefined;
      let sawNull = false;
      for (const step of steps) {
        try {
          const value = step(frame);
          if (value !== null) return value;
          sawNull = true;
        } catch (error) {
          failure = absorbable(error);
        }
      }
      if (failure === undefined || sawNull) return null;
      throw failure;
    };
  },
};

/** `optional.or(other)` and `optional.orValue(other)`: the argument runs only when the optional is empty. */
function alternative(unwrap: boolean): Macro {
  return {
    arity: [1],
    usage: unwrap ? 'optional.orValue(other)' : 'optional.or(other)',
    compile(call, scope, c) {
      const target = c.compile(call.target as Node, scope);
      const other = c.compile(call.args[0] as Node, scope);
      return (frame) => {
        const optional = target(frame);
        if (!(optional instanceof CelOptional)) {
          throw new CelEvaluationError('no_such_overload', `\`${call.name}\` needs an optional`);
        }
        if (optional.value !== undefined) return unwrap ? optional.value : optional;
        return other(frame);
      };
    },
  };
}

/** `variables()`: all roots of the place that are set. */
const variables: Macro = {
  arity: [0],
  usage: 'variables()',
  compile(call, _scope, c) {
    const names = [...c.variables];
    const roots = names.map((name) => {
      c.note(name, call);
      return c.root(name);
    });
    return (frame) => {
      const all = new Map<MapKey, Value>();
      roots.forEach((root, index) => {
        const value = root(frame);
        if (value !== null) all.set(names[index] as string, value);
      });
      return all;
    };
  },
};

/** All macros by name, as in `functions/index.ts`. */
export const MACROS: ReadonlyMap<string, Macro> = new Map<string, Macro>([
  ['has', { arity: [1], usage: 'has(value.member)', compile: compileHas }],
  ...LOOPS,
  [
    '.with',
    {
      arity: [2],
      usage: 'value.with(x, expression)',
      compile: (call, scope, c) =>
        bind(call, call.args[0] as Node, call.target as Node, call.args[1] as Node, scope, c),
    },
  ],
  [
    'cel.bind',
    {
      arity: [3],
      usage: 'cel.bind(x, value, expression)',
      compile: (call, scope, c) =>
        bind(call, call.args[0] as Node, call.args[1] as Node, call.args[2] as Node, scope, c),
    },
  ],
  ['default', defaultTo],
  ['coalesce', coalesce],
  ['.or', alternative(false)],
  ['.orValue', alternative(true)],
  ['variables', variables],
]);
