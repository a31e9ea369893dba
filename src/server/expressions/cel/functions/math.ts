import { chargeItems } from '../limits.ts';
import { compare, int, numeric, uint } from '../operators.ts';
import { isList, Uint, type Value } from '../values.ts';
import { type FunctionDefinition, fn, given, invalid, mismatch } from './define.ts';

const MAX_ARGUMENTS = 32;

/** The smallest (`sign` 1) or largest (-1) of the arguments or of one list; ties keep the first, NaN is skipped. */
function extreme(sign: 1 | -1, args: readonly Value[]): Value | undefined {
  const [first = null] = args;
  const values = args.length === 1 && isList(first) ? first : args;
  chargeItems(values.length);
  let best: Value | undefined;
  for (const value of values) if (best === undefined || compare(value, best) * sign < 0) best = value;
  return best;
}

/** `min` and `max`: of numbers or of texts; null for nothing. */
function anyExtreme(sign: 1 | -1): (...args: Value[]) => Value {
  return (...args) => {
    const best = extreme(sign, args);
    if (best !== undefined && numeric(best) === undefined && typeof best !== 'string')
      throw mismatch('number or string', best);
    return best ?? null;
  };
}

/** `math.least` and `math.greatest`: of numbers only, at least one. */
function numericExtreme(sign: 1 | -1): (...args: Value[]) => Value {
  return (...args) => {
    const best = extreme(sign, args);
    if (best === undefined || numeric(best) === undefined) throw mismatch('number', best);
    return best;
  };
}

function double(value: Value | undefined): number {
  if (typeof value === 'number') return value;
  throw mismatch('double', value);
}

function abs(value: Value): Value {
  if (typeof value === 'bigint') return value < 0n ? int(-value) : value;
  return value instanceof Uint ? value : Math.abs(double(value));
}

function sign(value: Value): Value {
  if (typeof value === 'bigint') return value > 0n ? 1n : value < 0n ? -1n : 0n;
  if (value instanceof Uint) return uint(value.value > 0n ? 1n : 0n);
  return Math.sign(double(value));
}

function sqrt(value: Value): number {
  const number = numeric(value);
  if (number === undefined) throw mismatch('number', value);
  return Math.sqrt(Number(number));
}

// Rounds halves away from zero; Math.round rounds them up.
function round(value: number): number {
  return value < 0 ? -Math.round(-value) : Math.round(value);
}

function doubleFunction(name: string, compute: (value: number) => number | boolean): FunctionDefinition {
  return fn(`math.${name}`, 1, (value) => compute(double(value)));
}

/** Numbers: upstream's `min` and `max`, and the math extension of cel-go (its bit functions are in `bits.ts`). */
export const math: readonly FunctionDefinition[] = [
  fn('min', [0, MAX_ARGUMENTS], anyExtreme(1)),
  fn('max', [0, MAX_ARGUMENTS], anyExtreme(-1)),
  fn('math.least', [1, MAX_ARGUMENTS], numericExtreme(1)),
  fn('math.greatest', [1, MAX_ARGUMENTS], numericExtreme(-1)),
  fn('math.abs', 1, (value) => abs(given(value))),
  fn('math.sign', 1, (value) => sign(given(value))),
  fn('math.sqrt', 1, (value) => sqrt(given(value))),
  doubleFunction('ceil', Math.ceil),
  doubleFunction('floor', Math.floor),
  doubleFunction('round', round),
  doubleFunction('trunc', Math.trunc),
  doubleFunction('isNaN', Number.isNaN),
  doubleFunction('isFinite', Number.isFinite),
  doubleFunction(
    'isInf',
    (value) => value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY,
  ),
  fn('random', 0, () => Math.random()),
];

/** How many bits a shift may move: a negative count is an error, from 64 on nothing is left. */
export function shiftCount(count: Value | undefined): bigint | undefined {
  if (typeof count !== 'bigint') throw mismatch('int', count);
  if (count < 0n) throw invalid('the shift count must not be negative');
  return count >= 64n ? undefined : count;
}
