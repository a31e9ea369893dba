import { compileHas } from './access.ts';
import { type Compilation, type Frame, problem, type Scope, type Step } from './compilation.ts';
import { absorbable, CelEvaluationError } from './errors.ts';
import { charge } from './limits.ts';
import { iterable, mapEntries, NoMembersError } from './maps.ts';
import type { Node, NodeOf } from './syntax.ts';
import { CelOptional, type MapKey, type Value } from './values.ts';

type Call = NodeOf<'call'>;

/** Something that looks like a call and is none: it binds a name, or does not run all of its arguments. */
interface Macro {
  /** The counts of arguments that it takes, without what stands before the dot. */
  readonly arity: readonly number[];
  /** How it is written, for the reference. */
  readonly usage: string;
  compile(call: Call, scope: Scope | undefined, c: Compilation): Step;
}

/** The variable name in the first argument of a macro. Throws `CelSyntaxError` if that argument is not a name. */
function nameOf(node: Node | undefined, call: Call): string {
  if (node?.kind === 'name') return node.name;
  throw problem(
    'AGW0201',
    node ?? call,
    `the first argument of \`${call.name}\` must be a new name, as in \`${call.name}(x, ...)\``,
  );
}

/** An argument that the arity of a macro guarantees. */
function argument({ args, name }: Call, index: number): Node {
  const node = args[index];
  if (node === undefined) throw new Error(`\`${name}\` was compiled without its arguments`);
  return node;
}

/** What stands before the dot of a method, whose name begins with one. */
function receiver({ target, name }: Call): Node {
  if (target === undefined) throw new Error(`\`${name}\` was compiled without its receiver`);
  return target;
}

/** A loop over a range with one name bound: what most macros are made of. */
interface Loop {
  readonly range: Step;
  readonly slot: number;
  readonly body: Step;
  readonly weight: number;
}

function compileLoop(call: Call, scope: Scope | undefined, c: Compilation, body = argument(call, 1)): Loop {
  const range = c.compile(receiver(call), scope);
  const inner = c.bind(nameOf(call.args[0], call), scope);
  const { step, weight } = c.compileLoop(body, inner);
  return { range, slot: inner.slot, body: step, weight };
}

function bool(value: Value, macro: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new CelEvaluationError('no_such_overload', `the condition of \`${macro}\` must be a bool`);
}

/** Runs the body for one item. */
function turn(loop: Loop, frame: Frame, item: Value): Value {
  charge(loop.weight);
  frame.slots[loop.slot] = item;
  return loop.body(frame);
}

/** `all` ends at the first false, `exists` at the first true; an error counts only when no item ends the loop. */
function quantifier(name: string, decisive: boolean): Macro {
  return {
    arity: [2],
    usage: `list.${name}(x, condition)`,
    compile(call, scope, c) {
      const loop = compileLoop(call, scope, c);
      return (frame) => {
        let failure: CelEvaluationError | undefined;
        for (const item of iterable(loop.range(frame))) {
          try {
            if (bool(turn(loop, frame, item), name) === decisive) return decisive;
          } catch (error) {
            const own = absorbable(error);
            failure ??= own;
          }
        }
        if (failure !== undefined) throw failure;
        return !decisive;
      };
    },
  };
}

const existsOne = (name: string): Macro => ({
  arity: [2],
  usage: `list.${name}(x, condition)`,
  compile(call, scope, c) {
    const loop = compileLoop(call, scope, c);
    return (frame) => {
      let count = 0;
      for (const item of iterable(loop.range(frame))) if (bool(turn(loop, frame, item), call.name)) count++;
      return count === 1;
    };
  },
});

const filter: Macro = {
  arity: [2],
  usage: 'list.filter(x, condition)',
  compile(call, scope, c) {
    const loop = compileLoop(call, scope, c);
    return (frame) => iterable(loop.range(frame)).filter((item) => bool(turn(loop, frame, item), 'filter'));
  },
};

const map: Macro = {
  arity: [2, 3],
  usage: 'list.map(x[, condition], expression)',
  compile(call, scope, c) {
    const loop = compileLoop(call, scope, c);
    if (call.args.length === 2)
      return (frame) => iterable(loop.range(frame)).map((item) => turn(loop, frame, item));
    const inner: Scope = { name: nameOf(call.args[0], call), slot: loop.slot, outer: scope };
    const { step, weight } = c.compileLoop(argument(call, 2), inner);
    return (frame) => {
      const result: Value[] = [];
      for (const item of iterable(loop.range(frame))) {
        if (!bool(turn(loop, frame, item), 'map')) continue;
        charge(weight);
        result.push(step(frame));
      }
      return result;
    };
  },
};

/** `m.mapValues(v, expr)` and `m.filterKeys(k, condition)`: a map with the same keys, or with some of them. */
function overEntries(
  name: string,
  keep: (loop: Loop, frame: Frame, key: MapKey, value: Value) => Value | undefined,
): Macro {
  return {
    arity: [2],
    usage: `map.${name}(x, ${name === 'mapValues' ? 'expression' : 'condition'})`,
    compile(call, scope, c) {
      const loop = compileLoop(call, scope, c);
      return (frame) => {
        const entries = mapEntries(loop.range(frame));
        if (entries === undefined)
          throw new CelEvaluationError('no_such_overload', `\`${name}\` needs a map`);
        const result = new Map<MapKey, Value>();
        for (const [key, value] of entries) {
          const kept = keep(loop, frame, key, value);
          if (kept !== undefined) result.set(key, kept);
        }
        return result;
      };
    },
  };
}

/** Macros that run a part of the expression once per item. */
const LOOPS: readonly (readonly [string, Macro])[] = [
  ['.all', quantifier('all', false)],
  ['.exists', quantifier('exists', true)],
  ['.exists_one', existsOne('exists_one')],
  ['.existsOne', existsOne('existsOne')],
  ['.filter', filter],
  ['.map', map],
  ['.mapValues', overEntries('mapValues', (loop, frame, _key, value) => turn(loop, frame, value))],
  [
    '.filterKeys',
    overEntries('filterKeys', (l, f, key, value) =>
      bool(turn(l, f, key), 'filterKeys') ? value : undefined,
    ),
  ],
  [
    '.removeKeys',
    overEntries('removeKeys', (l, f, key, value) =>
      bool(turn(l, f, key), 'removeKeys') ? undefined : value,
    ),
  ],
];

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

/** `default(expr, other)`: the other for null and for a missing key; any other failure stays one, also a member of a text. */
const defaultTo: Macro = {
  arity: [2],
  usage: 'default(value, other)',
  compile(call, scope, c) {
    const [value, other] = [c.compile(argument(call, 0), scope), c.compile(argument(call, 1), scope)];
    return (frame) => {
      try {
        const found = value(frame);
        if (found !== null) return found;
      } catch (error) {
        if (absorbable(error).reason !== 'no_such_key' || error instanceof NoMembersError) throw error;
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
      const target = c.compile(receiver(call), scope);
      const other = c.compile(argument(call, 0), scope);
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
    const roots = [...c.variables].map((name) => {
      c.note(name, call);
      return [name, c.root(name)] as const;
    });
    return (frame) => {
      const all = new Map<MapKey, Value>();
      for (const [name, root] of roots) {
        const value = root(frame);
        if (value !== null) all.set(name, value);
      }
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
      compile: (call, scope, c) => bind(call, argument(call, 0), receiver(call), argument(call, 1), scope, c),
    },
  ],
  [
    'cel.bind',
    {
      arity: [3],
      usage: 'cel.bind(x, value, expression)',
      compile: (call, scope, c) =>
        bind(call, argument(call, 0), argument(call, 1), argument(call, 2), scope, c),
    },
  ],
  ['default', defaultTo],
  ['coalesce', coalesce],
  ['.or', alternative(false)],
  ['.orValue', alternative(true)],
  ['variables', variables],
]);
