import { z } from 'zod';
import { list, mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { metricsExportSchema } from '../otlp/metrics-export.ts';
import { logScope } from '../scopes.ts';

/** Default of `config.metrics.prefix`. */
export const OWN_PREFIX = 'gw_';

export const metricsSchema = z.lazy(() =>
  mapping('The metrics.', {
    prefix: z
      .string()
      .regex(/^(?:[a-zA-Z_][a-zA-Z0-9_]*)?$/, { error: 'expected letters, digits and `_`, or nothing' })
      .default(OWN_PREFIX)
      .describe('First part of the names of all metrics, such as `agentgateway_`.'),
    remove: list('Names of metrics to omit, such as `gw_requests_total` or `requests`.', nonEmpty),
    fields: z
      .strictObject({
        add: z
          .record(
            z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/, { error: 'expected letters, digits and `_`' }),
            nonEmpty,
          )
          .default({})
          .describe(
            'Labels to add to request metrics, as CEL expressions. A result that is not a string becomes `unknown`. Use expressions with few distinct values: each combination of labels is a separate series.',
          ),
      })
      .prefault({})
      .describe('Labels.'),
    otlp: metricsExportSchema.optional(),
  }),
);

/** Compiled `config.metrics`. */
export interface MetricsPolicy {
  /** Whether the metric of this name (without `_total`) is omitted. */
  isRemoved(name: string): boolean;
  /** Names of the added labels. */
  readonly labels: readonly string[];
  /** Values of the added labels for a finished request; undefined where the result is not a string. */
  values(ctx: RequestContext): (string | undefined)[];
}

export function compileMetricsPolicy(
  { prefix, remove, fields }: z.output<typeof metricsSchema>,
  context: CompileContext,
): MetricsPolicy {
  const expressions = Object.entries(fields.add).map(([name, source]) =>
    context.at('fields', 'add', name).cel(source, logScope),
  );
  const removed = new Set(remove.map((name) => shortName(name, prefix)));
  return {
    isRemoved: (name) => removed.has(shortName(name, prefix)),
    labels: Object.keys(fields.add),
    values: (ctx) =>
      expressions.map((expression) => {
        const value = tryEvaluate(expression, resolverFor(ctx));
        return typeof value === 'string' ? value : undefined;
      }),
  };
}

/** Strips prefix, unit and `_total`: upstream compares names without them. */
function shortName(name: string, prefix: string): string {
  const isPrefixed = prefix !== '' && name.startsWith(prefix);
  return (isPrefixed ? name.slice(prefix.length) : name.replace(/^(?:gw|agentgateway)_/, ''))
    .replace(/_total$/, '')
    .replace(/_(?:seconds|bytes)$/, '');
}
