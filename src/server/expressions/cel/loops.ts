import type { Compilation, Frame, Scope, Step } from './compilation.ts';
import { absorbable, CelEvaluationError } from './errors.ts';
import { charge } from './limits.ts';
import { type Call, type Macro, nameOf } from './macro.ts';
import { iterable, mapEntries } from './maps.ts';
import type { Node } from './syntax.ts';
import type { MapKey, Value } from './values.ts';

/** A loop over a range with one name bound: what most macros are made of. */
interface Loop {
  readonly range: Step;
  readonly slot: number;
  readonly body: Step;
  readonly weight: number;
}

function compileLoop(
  call: Call,
  scope: Scope | undefined,
  c: Compilation,
  body = call.args[1] as Node,
): Loop {
  const range = c.compile(call.target as Node, scope);
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
    const { step, weight } = c.compileLoop(call.args[2] as Node, inner);
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
export const LOOPS: readonly (readonly [string, Macro])[] = [
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
