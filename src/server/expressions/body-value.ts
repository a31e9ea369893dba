import type { CelResult, Expression, VariableResolver } from '../kernel/expression.ts';
import { tryEvaluate } from './cel/expression.ts';

/** The value of an expression as a body: texts and bytes as they are, other values as JSON. Undefined if it fails. */
export function bodyOf(expression: Expression, lookup: VariableResolver): Buffer | undefined {
  const value: CelResult | undefined = tryEvaluate(expression, lookup);
  if (value === undefined) return undefined;
  if (value instanceof Uint8Array) return Buffer.from(value);
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
}
