import { chargeItems, chargeRead } from '../limits.ts';
import { isMap, mapEntries, mapKeys } from '../maps.ts';
import { contains } from '../operators.ts';
import {
  type CelObject,
  type HostMap,
  isBytes,
  isList,
  type MapKey,
  type MapValue,
  type Value,
} from '../values.ts';
import {
  asBytes,
  asString,
  type FunctionDefinition,
  fn,
  given,
  isString,
  method,
  mismatch,
} from './define.ts';

function size(value: Value): bigint {
  if (typeof value === 'string') {
    chargeRead(value.length * 2);
    let count = value.length;
    // A pair of surrogates is one code point.
    for (let i = 1; i < value.length; i++) {
      if ((value.charCodeAt(i) & 0xfc00) === 0xdc00 && (value.charCodeAt(i - 1) & 0xfc00) === 0xd800) count--;
    }
    return BigInt(count);
  }
  if (isList(value) || isBytes(value)) return BigInt(value.length);
  const keys = mapKeys(value);
  if (keys === undefined) throw mismatch('string, bytes, list or map', value);
  return BigInt(keys.length);
}

/** The right side wins; keys keep the place of their first appearance, as in a JSON object that is edited. */
function merge(left: Value, right: Value): Value {
  const added = mapEntries(right);
  if (added === undefined) throw mismatch('map', right);
  const merged = new Map<MapKey, Value>(mapEntries(left));
  for (const [key, value] of added) merged.set(key, value);
  chargeItems(merged.size);
  return merged;
}

const isAnyMap = (value: Value): value is MapValue | HostMap | CelObject => isMap(value);
const isAny = (_value: Value): _value is Value => true;

/** Functions over lists, maps and other values of a size. */
export const collections: readonly FunctionDefinition[] = [
  fn('size', 1, (value) => size(given(value))),
  method(isAny, 'size', 0, size),
  method(isString, 'contains', 1, (value, part) => {
    chargeRead(value.length);
    return value.includes(asString(part));
  }),
  method(isBytes, 'contains', 1, (value, part) => {
    chargeRead(value.length);
    return Buffer.from(value.buffer, value.byteOffset, value.length).includes(asBytes(part));
  }),
  method(isList, 'contains', 1, (items, wanted) => contains(items, given(wanted))),
  method(isAnyMap, 'contains', 1, (map, key) => contains(map, given(key))),
  method(isAnyMap, 'merge', 1, (left, right) => merge(left, given(right))),
];
