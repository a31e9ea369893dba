import { tryEvaluate } from '../expressions/cel/expression.ts';
import type { Expression, VariableResolver } from '../kernel/expression.ts';
import type { CallBody } from './call-body.ts';

export interface FieldChanges {
  readonly overrides: readonly (readonly [field: string, value: unknown])[];
  readonly transformations: readonly (readonly [field: string, value: Expression])[];
  readonly defaults: readonly (readonly [field: string, value: unknown])[];
}

/**
 * Changes the fields of a request. Expressions read the client's request (`lookup`), not the result of another
 * expression. A transformation takes precedence over an override of the same field; one that fails removes the field.
 * Defaults then set missing fields (the specification's "Transformation", design table row 19).
 */
export function changeFields(
  body: CallBody,
  { overrides, transformations, defaults }: FieldChanges,
  lookup: VariableResolver,
): void {
  const results = transformations.map(([field, expression]) => [field, attempt(expression, lookup)] as const);
  for (const [field, value] of overrides) body.set(field, value);
  for (const [field, value] of results) {
    if (value === undefined) body.remove(field);
    else body.set(field, value);
  }
  for (const [field, value] of defaults) if (!body.has(field)) body.set(field, value);
}

/** The value of an expression; undefined if it fails or cannot be represented in JSON. */
function attempt(expression: Expression, lookup: VariableResolver): unknown {
  const value = tryEvaluate(expression, lookup);
  const hasNoJson = value instanceof Uint8Array || (typeof value === 'number' && !Number.isFinite(value));
  return hasNoJson ? undefined : value;
}
