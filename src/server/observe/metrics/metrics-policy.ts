import { z } from 'zod';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import { resolverFor } from '../../expressions/resolver.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { RequestContext } from '../../kernel/request-context.ts';
import { logScope } from '../scopes.ts';

export const metricsSchema = z
  .strictObject({
    remove: z
      .array(z.string().min(1))
      .default([])
      .describe('Metrics to leave out, by name: `gw_requests_total`, or `requests`.'),
    fields: z
      .strictObject({
        add: z
          .record(
            z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/, { error: 'expected letters, digits and `_`' }),
            z.string().min(1),
          )
          .default({})
          .describe(
            'Labels to add to the metrics of requests, as CEL expressions. What is no text becomes `unknown`. Few values only: each combination is a series of its own.',
          ),
      })
      .prefault({})
      .describe('Labels.'),
  })
  .describe('The metrics.');

/** Changes to the metrics, compiled. */
export interface MetricsPolicy {
  /** Whether a metric of this name, without `_total`, is left out. */
  isRemoved(name: string): boolean;
  readonly labels: readonly string[];
  /** Values of those labels for a request that has ended; undefined where there is no text. */
  values(ctx: RequestContext): (string | undefined)[];
}

export function compileMetricsPolicy(
  { remove, fields }: z.output<typeof metricsSchema>,
  context: CompileContext,
): MetricsPolicy {
  const expressions = Object.entries(fields.add).map(([name, source]) =>
    context.at('fields', 'add', name).cel(source, logScope),
  );
  const removed = new Set(remove.map(shortName));
  return {
    isRemoved: (name) => removed.has(shortName(name)),
    labels: Object.keys(fields.add),
    values: (ctx) =>
      expressions.map((expression) => {
        const value = tryEvaluate(expression, resolverFor(ctx));
        return typeof value === 'string' ? value : undefined;
      }),
  };
}

/** With or without prefix, unit and `_total`, as upstream compares. */
function shortName(name: string): string {
  return name
    .replace(/^(?:gw|agentgateway)_/, '')
    .replace(/_total$/, '')
    .replace(/_(?:seconds|bytes)$/, '');
}
