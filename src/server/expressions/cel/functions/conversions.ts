import { entryIn } from '../../../../core/foreign.ts';
import { CelEvaluationError } from '../errors.ts';
import { chargeRead } from '../limits.ts';
import { int, uint } from '../operators.ts';
import { Duration, Timestamp } from '../time.ts';
import { CelType, isBytes, Keyed, typeName, Uint, type Value } from '../values.ts';
import { asString, type FunctionDefinition, fn, given, invalid, mismatch } from './define.ts';

const SECOND = 1_000_000_000n;
// Longer texts than any 64-bit number has; without a bound BigInt() takes quadratic time.
const MAX_DIGITS = 32;
const INTEGER = /^-?\d+$/;
const DOUBLE = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

function toInt(value: Value): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number') return int(integral(value));
  if (value instanceof Uint) return int(value.value);
  if (value instanceof Timestamp) return value.seconds;
  const digits = asString(value);
  if (digits.length > MAX_DIGITS || !INTEGER.test(digits)) throw invalid('int() needs a whole number');
  return int(BigInt(digits));
}

function toUint(value: Value): Uint {
  if (value instanceof Uint) return value;
  if (typeof value === 'bigint') return uint(value);
  if (typeof value === 'number') return uint(integral(value));
  const digits = asString(value);
  if (digits.length > MAX_DIGITS || !/^\d+$/.test(digits))
    throw invalid('uint() needs a whole number without a sign');
  return uint(BigInt(digits));
}

// cel-spec refuses -2^63 too, because doubles near it round to it.
function integral(value: number): bigint {
  if (!Number.isFinite(value) || value <= -(2 ** 63))
    throw new CelEvaluationError('overflow', 'the result does not fit in an int');
  return BigInt(Math.trunc(value));
}

const NAMED_DOUBLES: Record<string, number> = {
  nan: Number.NaN,
  inf: Number.POSITIVE_INFINITY,
  infinity: Number.POSITIVE_INFINITY,
};

function toDouble(value: Value): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof Uint) return Number(value.value);
  const digits = asString(value);
  if (digits.length > 400) throw invalid('double() needs a number');
  const named = entryIn(NAMED_DOUBLES, digits.replace(/^[+-]/, '').toLowerCase());
  if (named !== undefined) return digits.startsWith('-') ? -named : named;
  if (!DOUBLE.test(digits)) throw invalid('double() needs a number');
  return Number(digits);
}

/** The text of a value. Bytes that are not UTF-8 get replacement characters (upstream; cel-go fails there). */
function toText(value: Value): string {
  switch (typeof value) {
    case 'string':
      return value;
    case 'bigint':
    case 'boolean':
      return String(value);
    case 'number':
      return Number.isFinite(value)
        ? String(value)
        : Number.isNaN(value)
          ? 'NaN'
          : value > 0
            ? '+Inf'
            : '-Inf';
    default:
      return objectText(value);
  }
}

function objectText(value: Value): string {
  if (isBytes(value)) {
    chargeRead(value.length);
    return Buffer.from(value).toString();
  }
  if (value instanceof Uint) return value.value.toString();
  if (value instanceof Timestamp || value instanceof Duration) return value.toString();
  if (value instanceof CelType) return value.name;
  if (value instanceof Keyed) return value.key;
  throw mismatch('scalar value', value);
}

// What Go's strconv.ParseBool takes, which cel-spec refers to.
const BOOLS: Record<string, boolean> = Object.assign(Object.create(null), {
  true: true,
  True: true,
  TRUE: true,
  t: true,
  '1': true,
  false: false,
  False: false,
  FALSE: false,
  f: false,
  '0': false,
});

function toBool(value: Value): boolean {
  if (typeof value === 'boolean') return value;
  const bool = BOOLS[asString(value)];
  if (bool === undefined) throw invalid('bool() needs true or false');
  return bool;
}

function toBytes(value: Value): Uint8Array {
  if (isBytes(value)) return value;
  const source = asString(value);
  chargeRead(source.length);
  return Buffer.from(source);
}

/** A point in time from unix seconds. */
export function timestampOf(seconds: bigint): Timestamp {
  return new Timestamp(seconds * SECOND);
}

/** Conversions between types, named after their result. */
export const conversions: readonly FunctionDefinition[] = [
  fn('int', 1, (value) => toInt(given(value))),
  fn('uint', 1, (value) => toUint(given(value))),
  fn('double', 1, (value) => toDouble(given(value))),
  fn('string', 1, (value) => toText(given(value))),
  fn('bool', 1, (value) => toBool(given(value))),
  fn('bytes', 1, (value) => toBytes(given(value))),
  fn('dyn', 1, (value) => given(value)),
  fn('type', 1, (value) => new CelType(typeName(given(value)))),
];
