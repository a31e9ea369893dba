import { z } from 'zod';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { resolverFor } from '../expressions/resolver.ts';
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
        'Fields to add to each line, as CEL expressions. One that fails or gives null is left out. A field of a known name replaces it.',
      ),
    remove: z.array(z.string().min(1)).default([]).describe('Names of fields to leave out.'),
    filter: z
      .string()
      .min(1)
      .optional()
      .describe('CEL expression: only requests for which it is true are logged.'),
  })
  .describe('The access log.');

/** Changes to access-log lines, compiled. */
export interface AccessLogPolicy {
  /** Names of base fields that are not printed. */
  readonly removed: ReadonlySet<string>;
  /** Whether a line is written for this request. */
  isWanted(ctx: RequestContext): boolean;
  /** Added fields in the order of the configuration, without those that have no value. */
  added(ctx: RequestContext): (readonly [name: string, value: Exclude<CelResult, null>])[];
}

export function compileAccessLogPolicy(
  { add, remove, filter }: z.output<typeof accessLogSchema>,
  context: CompileContext,
): AccessLogPolicy {
  const fields = Object.entries(add).map(
    ([name, source]) => [name, context.at('add', name).cel(source, logScope)] as const,
  );
  const wanted = filter === undefined ? undefined : context.at('filter').condition(filter, logScope);
  return {
    removed: new Set([...remove, ...fields.map(([name]) => name)]),
    // A filter that fails drops the line, as upstream does: `filter` says what to keep.
    isWanted: (ctx) => wanted === undefined || tryEvaluate(wanted, resolverFor(ctx)) === true,
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
