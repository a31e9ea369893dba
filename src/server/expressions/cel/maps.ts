import { CelEvaluationError } from './errors.ts';
import { HeadersView } from './headers-view.ts';
import { chargeItems } from './limits.ts';
import {
  CelOptional,
  CelStruct,
  isHostMap,
  isList,
  type MapKey,
  toCel,
  typeName,
  Uint,
  type Value,
} from './values.ts';

/**
 * Reading of members and items. Only own members of plain objects count, so that `jwt.constructor` is a missing key and
 * never a function of the host.
 */

/** A member by name, or undefined when the value has none of that name or has no members at all. */
export function member(target: Value, name: string): Value | undefined {
  if (typeof target !== 'object' || target === null) return undefined;
  if (target instanceof CelStruct) {
    const value = target.field(name);
    return value === undefined ? undefined : toCel(value);
  }
  if (target instanceof HeadersView) return target.get(name);
  if (target instanceof Map) return target.get(name);
  if (!isHostMap(target) || !Object.hasOwn(target, name)) return undefined;
  const value = target[name];
  return value === undefined ? undefined : toCel(value);
}

/** What `target[index]` gives, or undefined when it does not exist. Throws on an index of the wrong type. */
export function item(target: Value, index: Value): Value | undefined {
  if (isList(target)) {
    const position = listIndex(index);
    return position === undefined ? undefined : target[position];
  }
  if (typeof index === 'string') return member(target, index);
  const key = mapKey(index);
  if (target instanceof Map) return target.get(key);
  return undefined;
}

function listIndex(index: Value): number | undefined {
  const position = index instanceof Uint ? index.value : index;
  if (typeof position === 'bigint')
    return position >= 0n && position <= 0xffff_ffffn ? Number(position) : undefined;
  if (typeof position === 'number' && Number.isInteger(position)) return position >= 0 ? position : undefined;
  throw new CelEvaluationError('no_such_overload', 'a list index must be an int');
}

/** The key under which a map keeps a value: `1`, `1u` and `1.0` are the same key (cel-spec, "Equality"). */
export function mapKey(value: Value): MapKey {
  if (typeof value === 'string' || typeof value === 'bigint' || typeof value === 'boolean') return value;
  if (value instanceof Uint) return value.value;
  if (typeof value === 'number') {
    // No integral key equals a fraction; -1 under a name of its own finds nothing either.
    return Number.isInteger(value) ? BigInt(value) : `\u0000${value}`;
  }
  throw new CelEvaluationError('no_such_overload', 'a map key must be a string, int, uint or bool');
}

export function isMap(value: Value): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return (
    value instanceof Map ||
    value instanceof HeadersView ||
    value instanceof CelStruct ||
    (isHostMap(value) && !isList(value))
  );
}

/** The keys of a map, or undefined for any other value. Charges for them. */
export function mapKeys(value: Value): MapKey[] | undefined {
  if (typeof value !== 'object' || value === null || !isMap(value)) return undefined;
  const keys: MapKey[] = value instanceof Map ? [...value.keys()] : hostKeys(value);
  chargeItems(keys.length);
  return keys;
}

function hostKeys(value: object): string[] {
  if (value instanceof HeadersView) return value.names();
  if (value instanceof CelStruct) return value.fields().filter((name) => value.field(name) !== undefined);
  return Object.keys(value).filter((name) => Reflect.get(value, name) !== undefined);
}

/** The entries of a map, or undefined for any other value. Charges for them. */
export function mapEntries(value: Value): [MapKey, Value][] | undefined {
  return mapKeys(value)?.map((key) => [key, item(value, key) ?? null]);
}

/** What a comprehension walks over: the items of a list, the keys of a map. Throws for any other value. */
export function iterable(value: Value): readonly Value[] {
  if (isList(value)) {
    chargeItems(value.length);
    return value;
  }
  const keys = mapKeys(value);
  if (keys === undefined)
    throw new CelEvaluationError('no_such_overload', 'only a list or a map can be iterated over');
  return keys;
}

/** Member of an optional: an optional again, empty when anything on the way is missing. Throws for a value without members. */
export function throughOptional(target: CelOptional, read: (inner: Value) => Value | undefined): CelOptional {
  const { value } = target;
  const found = value === undefined ? undefined : read(value);
  const mayBeMissing = value === undefined || value === null || isList(value) || isMap(value);
  if (found === undefined && !mayBeMissing) throw missingMember(value, 'no such key');
  return new CelOptional(found);
}

/** A member was read of a text, a number or the like. `default()` does not replace it: something else may read it in another way. */
export class NoMembersError extends CelEvaluationError {}

/** The error for a member that `target` does not have. Null stands for a value that is not set. */
export function missingMember(target: Value, message: string): CelEvaluationError {
  return target === null || isMap(target)
    ? new CelEvaluationError('no_such_key', message)
    : new NoMembersError('no_such_key', `${message}: ${typeName(target)} has no members`);
}
