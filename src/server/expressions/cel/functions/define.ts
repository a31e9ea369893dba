import { isUtf8 } from 'node:buffer';
import { CelEvaluationError } from '../errors.ts';
import { isBytes, typeName, type Value } from '../values.ts';

/**
 * A function of the language. `name` is `size` for a call, `.size` for a method (its receiver is the first argument),
 * `math.abs` for one in a namespace. Several definitions may share a name: the first one whose `on` accepts the receiver
 * runs. `min` and `max` count arguments without the receiver.
 */
export interface FunctionDefinition {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly on: ((receiver: Value) => boolean) | undefined;
  readonly call: (...args: Value[]) => Value;
}

/** A function called by its name or `namespace.name`. `arity` is a count, or the least and the most arguments. */
export function fn(
  name: string,
  arity: number | readonly [number, number],
  call: (...args: Value[]) => Value,
): FunctionDefinition {
  const [min, max] = typeof arity === 'number' ? [arity, arity] : arity;
  return { name, min, max, on: undefined, call };
}

/** A method of the values that `on` accepts. */
export function method<R extends Value>(
  on: (receiver: Value) => receiver is R,
  name: string,
  arity: number | readonly [number, number],
  call: (receiver: R, ...args: Value[]) => Value,
): FunctionDefinition {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `dispatch` calls it for values that `on` accepts
  return { ...fn(`.${name}`, arity, call as (...args: Value[]) => Value), on };
}

/** An argument that the arity guarantees. */
export function given(value: Value | undefined): Value {
  if (value === undefined) throw mismatch('value', value);
  return value;
}

export function isString(value: Value): value is string {
  return typeof value === 'string';
}

/** Narrows an argument. Throws `no_such_overload` naming the types, never the value. */
export function asString(value: Value | undefined): string {
  if (typeof value === 'string') return value;
  throw mismatch('string', value);
}

function asInt(value: Value | undefined): bigint {
  if (typeof value === 'bigint') return value;
  throw mismatch('int', value);
}

/** An int as a JavaScript number; beyond 2^53 the nearest one, which no length of anything reaches. */
export function asIndex(value: Value | undefined): number {
  return Number(asInt(value));
}

/** A text or byte string as bytes. */
export function asBytes(value: Value | undefined): Uint8Array {
  if (typeof value === 'string') return Buffer.from(value);
  if (value !== undefined && isBytes(value)) return value;
  throw mismatch('string or bytes', value);
}

/**
 * A text, or bytes read as UTF-8. Throws `invalid_argument` for other bytes: with replacement characters, an expression
 * would read another text than the backend gets.
 */
export function asUtf8(value: Value | undefined): string {
  if (typeof value === 'string') return value;
  const bytes = asBytes(value);
  if (!isUtf8(bytes)) throw invalid('the bytes are not valid UTF-8');
  return Buffer.from(bytes).toString();
}

export function mismatch(wanted: string, value: Value | undefined): CelEvaluationError {
  const found = value === undefined ? 'nothing' : typeName(value);
  return new CelEvaluationError('no_such_overload', `a ${wanted} is needed here, not ${found}`);
}

export function invalid(message: string): CelEvaluationError {
  return new CelEvaluationError('invalid_argument', message);
}
