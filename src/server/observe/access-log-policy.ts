import { z } from 'zod';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { CelResult, Expression } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { logScope } from './scopes.ts';

export const accessLogSchema = z
  .strictObject({
    add: z
      .record(z.string().min(1), z.string().min(1))
      .default({})
      .describe(
        'Fields to add to each line, as CEL expressions. A field whose expression fails or evaluates to null is omitted. A field with the name of a built-in field replaces it.',
      ),
    remove: z.array(z.string().min(1)).default([]).describe('Names of fields to omit.'),
    filter: z
      .string()
      .min(1)
      .optional()
      .describe('CEL expression: only requests for which it is true are logged.'),
  })
  .describe('The access log.');

/** Compiled `frontendPolicies.accessLog`. */
export interface AccessLogPolicy {
  /** Names of built-in fields that are omitted: removed ones, and those replaced by an added field. */
  readonly removed: ReadonlySet<string>;
  /** Whether a line is written for this request. A filter that fails counts as false. Default: true. */
  isLogged(ctx: RequestContext): boolean;
  /** Added fields in configuration order, without those that failed or are null. */
  added(ctx: RequestContext): (readonly [name: string, value: Exclude<CelResult, null>])[];
}

export function compileAccessLogPolicy(
  { add, remove, filter }: z.output<typeof accessLogSchema>,
  context: CompileContext,
): AccessLogPolicy {
  const fields = Object.entries(add).map(
    ([name, source]) => [name, context.at('add', name).cel(source, logScope)] as const,
  );
  const condition = filter === undefined ? undefined : context.at('filter').condition(filter, logScope);
  return {
    removed: new Set([...remove, ...fields.map(([name]) => name)]),
    // As upstream: a filter that fails drops the line.
    isLogged: (ctx) => condition === undefined || tryEvaluate(condition, resolverFor(ctx)) === true,
    added: (ctx) => (fields.length === 0 ? [] : addedFields(fields, ctx)),
  };
}

function addedFields(
  fields: readonly (readonly [string, Expression])[],
  ctx: RequestContext,
): [string, Exclude<CelResult, null>][] {
  return fields.flatMap(([name, expression]): [string, Exclude<CelResult, null>][] => {
    const value = tryEvaluate(expression, resolverFor(ctx));
    return value === undefined || value === null ? [] : [[name, value]];
  });
}
