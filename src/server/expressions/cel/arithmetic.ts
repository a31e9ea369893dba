import { CelEvaluationError } from './errors.ts';
import { chargeItems, chargeText } from './limits.ts';
import { Duration, Timestamp } from './time.ts';
import { isBytes, isList, typeName, Uint, type Value } from './values.ts';

const MIN_INT = -(2n ** 63n);
const MAX_INT = 2n ** 63n - 1n;
const MAX_UINT = 2n ** 64n - 1n;

/** Checks the range of a signed 64-bit int. Throws `overflow`. */
export function int(value: bigint): bigint {
  if (value < MIN_INT || value > MAX_INT)
    throw new CelEvaluationError('overflow', 'the result does not fit in an int');
  return value;
}

/** Makes an unsigned 64-bit int. Throws `overflow`. */
export function uint(value: bigint): Uint {
  if (value < 0n || value > MAX_UINT)
    throw new CelEvaluationError('overflow', 'the result does not fit in a uint');
  return new Uint(value);
}

function noOverload(operator: string, a: Value, b: Value): CelEvaluationError {
  return new CelEvaluationError(
    'no_such_overload',
    `${typeName(a)} ${operator} ${typeName(b)} is not defined`,
  );
}

/** CEL `+`: numbers of one type, texts, bytes, lists, times. */
export function add(a: Value, b: Value): Value {
  if (typeof a === 'string' && typeof b === 'string') {
    chargeText(a.length + b.length);
    return a + b;
  }
  if (typeof a === 'bigint' && typeof b === 'bigint') return int(a + b);
  if (typeof a === 'number' && typeof b === 'number') return a + b;
  if (isList(a) && isList(b)) {
    chargeItems(a.length + b.length);
    return [...a, ...b];
  }
  if (isBytes(a) && isBytes(b)) {
    chargeText(a.length + b.length);
    return Buffer.concat([a, b]);
  }
  if (a instanceof Uint && b instanceof Uint) return uint(a.value + b.value);
  if (a instanceof Duration && b instanceof Duration) return new Duration(a.nanos + b.nanos);
  if (a instanceof Timestamp && b instanceof Duration) return new Timestamp(a.nanos + b.nanos);
  if (a instanceof Duration && b instanceof Timestamp) return new Timestamp(a.nanos + b.nanos);
  throw noOverload('+', a, b);
}

/** CEL `-` with two operands. */
export function subtract(a: Value, b: Value): Value {
  if (typeof a === 'bigint' && typeof b === 'bigint') return int(a - b);
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (a instanceof Uint && b instanceof Uint) return uint(a.value - b.value);
  if (a instanceof Duration && b instanceof Duration) return new Duration(a.nanos - b.nanos);
  if (a instanceof Timestamp && b instanceof Duration) return new Timestamp(a.nanos - b.nanos);
  if (a instanceof Timestamp && b instanceof Timestamp) return new Duration(int(a.nanos - b.nanos));
  throw noOverload('-', a, b);
}

/** CEL `*`. */
export function multiply(a: Value, b: Value): Value {
  if (typeof a === 'bigint' && typeof b === 'bigint') return int(a * b);
  if (typeof a === 'number' && typeof b === 'number') return a * b;
  if (a instanceof Uint && b instanceof Uint) return uint(a.value * b.value);
  throw noOverload('*', a, b);
}

/** CEL `/`: ints divide towards zero; doubles by zero give infinity. */
export function divide(a: Value, b: Value): Value {
  if (typeof a === 'bigint' && typeof b === 'bigint') return int(a / nonZero(b));
  if (typeof a === 'number' && typeof b === 'number') return a / b;
  if (a instanceof Uint && b instanceof Uint) return uint(a.value / nonZero(b.value));
  throw noOverload('/', a, b);
}

/** CEL `%`: ints only, with the sign of the left side. */
export function remainder(a: Value, b: Value): Value {
  if (typeof a === 'bigint' && typeof b === 'bigint') return a % nonZero(b);
  if (a instanceof Uint && b instanceof Uint) return uint(a.value % nonZero(b.value));
  throw noOverload('%', a, b);
}

function nonZero(value: bigint): bigint {
  if (value === 0n) throw new CelEvaluationError('division_by_zero', 'division by zero');
  return value;
}

/** CEL `-` with one operand. */
export function negate(value: Value): Value {
  if (typeof value === 'bigint') return int(-value);
  if (typeof value === 'number') return -value;
  throw new CelEvaluationError('no_such_overload', `-${typeName(value)} is not defined`);
}

/** CEL `!`. */
export function not(value: Value): boolean {
  if (typeof value === 'boolean') return !value;
  throw new CelEvaluationError('no_such_overload', `!${typeName(value)} is not defined`);
}
