import { CelEvaluationError } from '../errors.ts';
import { mapKeys } from '../maps.ts';
import { Duration } from '../time.ts';
import { CelOptional, isBytes, isList, NONE, Uint, type Value } from '../values.ts';
import { type FunctionDefinition, fn, given, method } from './define.ts';

const isOptional = (value: Value): value is CelOptional => value instanceof CelOptional;

function isZero(value: Value): boolean {
  switch (typeof value) {
    case 'object':
      break;
    default:
      return value === false || value === 0n || value === 0 || value === '';
  }
  if (value === null) return true;
  if (isList(value) || isBytes(value)) return value.length === 0;
  if (value instanceof Uint) return value.value === 0n;
  if (value instanceof Duration) return value.nanos === 0n;
  return mapKeys(value)?.length === 0;
}

function content(optional: CelOptional): Value {
  if (optional.value === undefined) throw new CelEvaluationError('no_such_key', 'the optional is empty');
  return optional.value;
}

/** Optional values. `or` and `orValue` are macros (`macros.ts`), because they skip their argument. */
export const optionals: readonly FunctionDefinition[] = [
  fn('optional.none', 0, () => NONE),
  fn('optional.of', 1, (value) => new CelOptional(value)),
  fn('optional.ofNonZeroValue', 1, (value) => (isZero(given(value)) ? NONE : new CelOptional(value))),
  method(isOptional, 'hasValue', 0, (optional) => optional.value !== undefined),
  method(isOptional, 'value', 0, content),
];
