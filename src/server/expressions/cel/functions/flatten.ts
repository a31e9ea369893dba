import { Flattened } from '../flattened.ts';
import { mapEntries } from '../maps.ts';
import { isList, type Value } from '../values.ts';
import { type FunctionDefinition, fn, mismatch } from './define.ts';

function flatten(value: Value | undefined, isRecursive: boolean): Value {
  if (value === undefined || (!isList(value) && mapEntries(value) === undefined))
    throw mismatch('list or map', value);
  return new Flattened(value, isRecursive);
}

const flattenRecursive = (value?: Value): Value => flatten(value, true);

/** Functions for fields of the access log and attributes of spans. */
export const logFields: readonly FunctionDefinition[] = [
  fn('flatten', 1, (value) => flatten(value, false)),
  fn('flattenRecursive', 1, flattenRecursive),
  // The former name.
  fn('flatten_recursive', 1, flattenRecursive),
];
