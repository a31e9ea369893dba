import { charge } from './limits.ts';

/**
 * Values while an expression runs. CEL int is `bigint`, double is `number`; text, bool, null, bytes and list are their
 * JavaScript selves. A map is a `Map` when the expression built it, and a plain object when it came from outside (JSON,
 * claims): the latter is read lazily, so that one field of a large body costs one field.
 */
export type Value =
  | string
  | bigint
  | number
  | boolean
  | null
  | Uint8Array
  | readonly Value[]
  | MapValue
  | CelObject
  | HostMap;

export type MapKey = string | bigint | boolean;
export type MapValue = ReadonlyMap<MapKey, Value>;

/** A JSON object or the like. Its members are JavaScript values and pass `toCel` when read. */
export interface HostMap {
  readonly [key: string]: unknown;
}

/** Base of every class that may appear as a value. Instances of any other class read as null. */
export abstract class CelObject {
  /** What `type(x)` names it. */
  abstract readonly typeName: string;
}

/** A value with named members that are computed when read, for the variables of a request. */
export abstract class CelStruct extends CelObject {
  readonly typeName = 'map';
  /** A member as any value that `toCel` takes; undefined when it does not exist or has no value. */
  abstract field(name: string): unknown;
  /** Names for `map`, `variables()` and the like. */
  abstract fields(): readonly string[];
}

export class Uint extends CelObject {
  readonly typeName = 'uint';
  readonly value: bigint;

  constructor(value: bigint) {
    super();
    this.value = value;
  }
}

/** A type as a value: `type(1) == int`. */
export class CelType extends CelObject {
  readonly typeName = 'type';
  readonly name: string;

  constructor(name: string) {
    super();
    this.name = name;
  }
}

/** `optional.of(x)`; `optional.none()` holds undefined. */
export class CelOptional extends CelObject {
  readonly typeName = 'optional_type';
  readonly value: Value | undefined;

  constructor(value: Value | undefined) {
    super();
    this.value = value;
  }
}

/** A value that is its text, such as an address: equal to another of its type when the texts are. */
export abstract class Keyed extends CelObject {
  abstract readonly key: string;
}

export const NONE = new CelOptional(undefined);

export function isHostMap(value: object): value is HostMap {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * Brings a JavaScript value into CEL. Integral numbers become ints, so `1.0` in a JSON text is an int too: JavaScript
 * keeps no difference. Integers over 2^53 stay doubles, because their digits are lost already. Functions,
 * symbols and instances of unknown classes read as null, so that no object of the host is reachable. Objects and texts
 * are not copied, and their members convert when they are read; lists are copied only when they hold numbers or lists.
 */
export function toCel(value: unknown): Value {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return value;
    case 'number':
      return Number.isSafeInteger(value) ? BigInt(value) : value;
    case 'object':
      if (value === null) return null;
      if (Array.isArray(value)) return listToCel(value);
      if (
        isHostMap(value) ||
        value instanceof CelObject ||
        value instanceof Map ||
        value instanceof Uint8Array
      ) {
        return value as Value;
      }
      return null;
    default:
      return null;
  }
}

function listToCel(list: readonly unknown[]): readonly Value[] {
  // Not free: a member is converted each time a loop reads it.
  charge(1 + (list.length >> 5));
  for (const item of list) {
    if (typeof item === 'string') continue;
    if (typeof item !== 'object' || item === null || Array.isArray(item) || !isHostMap(item))
      return copyList(list);
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts and objects, as the loop has found
  return list as readonly Value[];
}

function copyList(list: readonly unknown[]): readonly Value[] {
  charge(list.length >> 3);
  return list.map(toCel);
}

/** The CEL name of a value's type, as `type(x)` gives it. */
export function typeName(value: Value): string {
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'int';
  if (typeof value === 'number') return 'double';
  if (value === null) return 'null_type';
  if (Array.isArray(value)) return 'list';
  if (value instanceof Uint8Array) return 'bytes';
  if (value instanceof CelObject) return value.typeName;
  return 'map';
}

export function isBytes(value: Value): value is Uint8Array {
  return value instanceof Uint8Array;
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}
