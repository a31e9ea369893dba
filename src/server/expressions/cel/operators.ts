import { CelEvaluationError } from './errors.ts';
import { chargeItems, chargeRead, chargeText } from './limits.ts';
import { isMap, item, mapKeys } from './maps.ts';
import { Duration, Timestamp } from './time.ts';
import { CelOptional, CelType, isBytes, isList, Keyed, typeName, Uint, type Value } from './values.ts';

/** The number behind a numeric value, or undefined. `bigint` and `number` compare exactly in JavaScript. */
export function numeric(value: Value): bigint | number | undefined {
  if (typeof value === 'bigint' || typeof value === 'number') return value;
  return value instanceof Uint ? value.value : undefined;
}

/** CEL `==`: numbers compare across types, values of different types are not equal, never an error. */
export function equal(a: Value, b: Value): boolean {
  if (typeof a === 'string') {
    if (typeof b !== 'string' || a.length !== b.length) return false;
    if (a.length > 256) chargeRead(a.length);
    return a === b;
  }
  if (a === b) return true;
  if (typeof a === 'boolean' || a === null || b === null) return false;
  const left = numeric(a);
  if (left !== undefined) {
    const right = numeric(b);
    // biome-ignore lint/suspicious/noDoubleEquals: only loose equality compares bigint with number.
    return right !== undefined && left == right;
  }
  if (isList(a)) return isList(b) && listsEqual(a, b);
  if (isBytes(a)) return isBytes(b) && compareBytes(a, b) === 0;
  if (isMap(a)) return isMap(b) && mapsEqual(a, b);
  return objectsEqual(a, b);
}

function objectsEqual(a: Value, b: Value): boolean {
  if (
    (a instanceof Timestamp && b instanceof Timestamp) ||
    (a instanceof Duration && b instanceof Duration)
  ) {
    return a.nanos === b.nanos;
  }
  if (a instanceof CelType) return b instanceof CelType && a.name === b.name;
  if (a instanceof Keyed) return b instanceof Keyed && a.typeName === b.typeName && a.key === b.key;
  if (!(a instanceof CelOptional && b instanceof CelOptional)) return false;
  if (a.value === undefined || b.value === undefined) return a.value === b.value;
  return equal(a.value, b.value);
}

function listsEqual(a: readonly Value[], b: readonly Value[]): boolean {
  if (a.length !== b.length) return false;
  chargeItems(a.length);
  return a.every((value, index) => equal(value, b[index] ?? null));
}

function mapsEqual(a: Value, b: Value): boolean {
  const keys = mapKeys(a) ?? [];
  if (keys.length !== (mapKeys(b) ?? []).length) return false;
  return keys.every((key) => {
    const other = item(b, key);
    return other !== undefined && equal(item(a, key) ?? null, other);
  });
}

/**
 * Order of two values: negative, zero or positive, NaN when there is none (NaN itself). Throws `no_such_overload` for
 * types without an order or of different kinds.
 */
export function compare(a: Value, b: Value): number {
  const left = numeric(a);
  const right = numeric(b);
  if (left !== undefined && right !== undefined)
    return left < right ? -1 : left > right ? 1 : left >= right ? 0 : Number.NaN;
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  if (isBytes(a) && isBytes(b)) return compareBytes(a, b);
  if (
    (a instanceof Timestamp && b instanceof Timestamp) ||
    (a instanceof Duration && b instanceof Duration)
  ) {
    return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0;
  }
  throw new CelEvaluationError('no_such_overload', `${typeName(a)} and ${typeName(b)} cannot be compared`);
}

// JavaScript orders by UTF-16 unit, CEL by code point: they differ where only one side has a surrogate.
function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  chargeRead(length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right)
      return isSurrogate(left) === isSurrogate(right) ? left - right : isSurrogate(left) ? 1 : -1;
  }
  return a.length - b.length;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  chargeRead(Math.min(a.length, b.length));
  return Buffer.compare(a, b);
}

/**
 * CEL `in`: item of a list or key of a map. A text is an error, as in cel-spec: upstream's substring test makes
 * `"admin" in jwt.roles` true for `superadmin` where a provider writes a list of one as a string.
 */
export function contains(container: Value, value: Value): boolean {
  if (isList(container)) {
    // Texts are equal only to themselves, and finding one is eight times faster than asking `equal`.
    const isText = typeof value === 'string';
    chargeItems(isText ? container.length >> 3 : container.length);
    return isText ? container.includes(value) : container.some((entry) => equal(entry, value));
  }
  if (isMap(container)) return isKey(value) && item(container, value) !== undefined;
  const hint = typeof container === 'string' ? '; `contains` finds substrings' : '';
  throw new CelEvaluationError(
    'no_such_overload',
    `\`in\` needs a list or map, not ${typeName(container)}${hint}`,
  );
}

function isKey(value: Value): boolean {
  return typeof value === 'string' || typeof value === 'boolean' || numeric(value) !== undefined;
}

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
