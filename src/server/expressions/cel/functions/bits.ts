import { isBytes, Uint, type Value } from '../values.ts';
import { type FunctionDefinition, fn, invalid, mismatch } from './define.ts';
import { shiftCount } from './math.ts';

type BitOperation = (a: bigint, b: bigint) => bigint;

const MAX_BYTES = 32;

/** Bits of ints, of uints, or of byte strings up to 32 bytes; a number beside bytes takes the part in its width. */
function combine(operation: BitOperation): (a?: Value, b?: Value) => Value {
  return (a, b) => {
    if (typeof a === 'bigint' && typeof b === 'bigint') return BigInt.asIntN(64, operation(a, b));
    if (a instanceof Uint && b instanceof Uint) return new Uint(operation(a.value, b.value));
    if (a !== undefined && b !== undefined && (isBytes(a) || isBytes(b)))
      return combineBytes(operation, a, b);
    throw mismatch('pair of ints, uints or bytes', b);
  };
}

function combineBytes(operation: BitOperation, a: Value, b: Value): Value {
  const result = operation(bitsOf(a), bitsOf(b));
  if (isBytes(a) && isBytes(b)) return toBytes(result, Math.max(a.length, b.length));
  const low = BigInt.asUintN(64, result);
  return a instanceof Uint || b instanceof Uint ? new Uint(low) : BigInt.asIntN(64, low);
}

function bitsOf(value: Value): bigint {
  if (value instanceof Uint) return value.value;
  if (typeof value === 'bigint') {
    if (value < 0n) throw invalid('bits of a negative int cannot be combined with bytes');
    return value;
  }
  if (!isBytes(value)) throw mismatch('int, uint or bytes', value);
  if (value.length > MAX_BYTES) throw invalid(`bit functions take at most ${MAX_BYTES} bytes`);
  return BigInt(`0x0${Buffer.from(value).toString('hex')}`);
}

function toBytes(bits: bigint, length: number): Uint8Array {
  return Buffer.from(bits.toString(16).padStart(length * 2, '0'), 'hex');
}

function not(value: Value | undefined): Value {
  if (typeof value === 'bigint') return ~value;
  if (value instanceof Uint) return new Uint(BigInt.asUintN(64, ~value.value));
  throw mismatch('int or uint', value);
}

function shiftLeft(value: Value | undefined, count: Value | undefined): Value {
  const by = shiftCount(count);
  if (typeof value === 'bigint') return by === undefined ? 0n : BigInt.asIntN(64, value << by);
  if (value instanceof Uint) return new Uint(by === undefined ? 0n : BigInt.asUintN(64, value.value << by));
  throw mismatch('int or uint', value);
}

// The sign is shifted like any other bit (cel-go's math.bitShiftRight).
function shiftRight(value: Value | undefined, count: Value | undefined): Value {
  const by = shiftCount(count);
  if (typeof value === 'bigint')
    return by === undefined ? 0n : BigInt.asIntN(64, BigInt.asUintN(64, value) >> by);
  if (value instanceof Uint) return new Uint(by === undefined ? 0n : value.value >> by);
  throw mismatch('int or uint', value);
}

/** Bit functions of the math extension. */
export const bits: readonly FunctionDefinition[] = [
  fn(
    'math.bitAnd',
    2,
    combine((a, b) => a & b),
  ),
  fn(
    'math.bitOr',
    2,
    combine((a, b) => a | b),
  ),
  fn(
    'math.bitXor',
    2,
    combine((a, b) => a ^ b),
  ),
  fn('math.bitNot', 1, not),
  fn('math.bitShiftLeft', 2, shiftLeft),
  fn('math.bitShiftRight', 2, shiftRight),
];
