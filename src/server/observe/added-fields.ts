import { REDACTED } from '../../core/credentials.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Redactor } from '../../core/redact.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { fieldsOf } from '../expressions/cel/flattened.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { CelResult } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { logScope } from './scopes.ts';

/** The result of an added field. */
export type AddedValue = Exclude<CelResult, null>;

/** Computes the fields that a configuration adds to a log line or span, in its order, without those that failed or are null. */
export type AddedFields = (ctx: RequestContext) => (readonly [name: string, value: AddedValue])[];

/**
 * Compiles fields that are CEL expressions. Secrets of the configuration are redacted in their values: a header that a policy has set may be
 * the credential that the gateway sends to its backend, which is not the client's and which no log may have.
 */
export function compileAddedFields(add: Readonly<Record<string, string>>, at: CompileContext): AddedFields {
  const fields = Object.entries(add).map(
    ([name, source]) => [name, at.at(name).cel(source, logScope)] as const,
  );
  if (fields.length === 0) return () => [];
  return (ctx) => {
    const redactor = at.redactor();
    return fields.flatMap(([name, expression]) => {
      const value = tryEvaluate(expression, resolverFor(ctx));
      if (value === undefined) return [];
      return fieldsOf(name, value).map(([each, found]) => [each, clean(found, redactor, 0)] as const);
    });
  };
}

/** A copy without the secrets of the configuration. */
function clean(value: AddedValue, redactor: Redactor, depth: number): AddedValue {
  if (typeof value === 'string') return redactor.known(value);
  if (typeof value !== 'object' || value instanceof Uint8Array) return value;
  if (depth > LIMITS.redactedDepth) return REDACTED;
  const inside = (each: CelResult): CelResult => (each === null ? null : clean(each, redactor, depth + 1));
  if (Array.isArray(value)) return value.map(inside);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, inside(each)]));
}
