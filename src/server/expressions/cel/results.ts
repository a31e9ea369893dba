import type { CelResult } from '../../kernel/expression.ts';
import { Flattened, markFlattened } from './flattened.ts';
import { chargeItems, chargeRead } from './limits.ts';
import { mapEntries } from './maps.ts';
import { Duration, Timestamp } from './time.ts';
import { CelOptional, CelType, isBytes, isList, Keyed, Uint, type Value } from './values.ts';

/**
 * Takes a value out of CEL. Ints and uints become numbers up to 2^53 and decimal texts beyond (the form that
 * protobuf's JSON mapping gives 64-bit ints); timestamps RFC 3339 texts, durations `1.5s`, types their names, addresses
 * their texts, optionals their content or null. Maps become objects without a prototype. Charges for what it copies,
 * because a small expression can build a large tree of shared parts.
 */
export function fromCel(value: Value): CelResult {
  switch (typeof value) {
    case 'bigint':
      return plainInt(value);
    case 'string':
      chargeRead(value.length);
      return value;
    case 'object':
      return value === null ? null : objectFromCel(value);
    default:
      return value;
  }
}

function plainInt(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}

function objectFromCel(value: Value & object): CelResult {
  if (isBytes(value)) return value;
  if (isList(value)) {
    chargeItems(value.length);
    return value.map(fromCel);
  }
  if (value instanceof Uint) return plainInt(value.value);
  if (value instanceof Timestamp || value instanceof Duration) return value.toString();
  if (value instanceof CelType) return value.name;
  if (value instanceof CelOptional) return value.value === undefined ? null : fromCel(value.value);
  if (value instanceof Keyed) return value.key;
  if (value instanceof Flattened) return markFlattened(fromCel(value.value), value.isRecursive);
  const result: { [key: string]: CelResult } = Object.create(null);
  for (const [key, entry] of mapEntries(value) ?? []) result[String(key)] = fromCel(entry);
  return result;
}
