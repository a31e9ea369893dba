import { z } from 'zod';
import { LIMITS } from '../../core/limits.ts';
import { durationSchema, durationText } from '../../core/schema/duration.ts';
import { CelEvaluationError } from '../expressions/cel/expression.ts';
import { ResponseView } from '../expressions/request-variables.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { HeaderList } from '../kernel/header-list.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import type { Eviction, Outcome } from './endpoint-stats.ts';
import { providerReplyScope } from './variables.ts';

const share = z.number().min(0).max(1);

export const healthSchema = z
  .strictObject({
    unhealthyExpression: z
      .string()
      .min(1)
      .optional()
      .describe(
        'CEL expression over the `response` (`code`, `headers`). A response for which it is true is a failure. Default: 5xx and 429 are failures. A missing response is always a failure.',
      ),
    eviction: z
      .strictObject({
        duration: durationSchema
          .optional()
          .describe(
            `Duration of the first eviction. The second in a row lasts twice as long, the third three times, up to ${durationText(LIMITS.evictionMax)}. Default: the value of \`Retry-After\` or \`x-ratelimit-reset…\` in the failed response, else ${durationText(LIMITS.eviction)}.`,
          ),
        consecutiveFailures: z
          .int()
          .min(1)
          .optional()
          .describe(
            'Consecutive failures that evict. Without this and `healthThreshold`, the first failure evicts.',
          ),
        healthThreshold: share
          .optional()
          .describe(
            'A failure evicts if the health is below this value. Health is the share of successful calls among about the last ten.',
          ),
        restoreHealth: share.optional().describe('Health after an eviction. Default: unchanged.'),
      })
      .default({})
      .describe('When the model is evicted for a while. Only applies to targets of `failover`.'),
  })
  .describe('What counts as a failure of the model. Used by virtual models with `failover`.');

/** Compiled `health` of a model. */
export interface Health {
  readonly eviction: Eviction;
  /** Classifies a response. An expression that fails counts as no failure. */
  judge(ctx: RequestContext, reply: Reply): Outcome;
}

/** Compiles `health` of a model. Default: 5xx and 429 are failures. */
export function compileHealth(
  config: z.output<typeof healthSchema> | undefined,
  context: CompileContext,
): Health {
  const source = config?.unhealthyExpression;
  const expression =
    source === undefined
      ? undefined
      : context.at('unhealthyExpression').condition(source, providerReplyScope);
  const isFailure = (ctx: RequestContext, { status, headers }: Reply): boolean => {
    if (expression === undefined) return status >= 500 || status === 429;
    const response = new ResponseView(status, headers.raw, () => undefined);
    try {
      return expression.evaluate(resolverFor(ctx, { response })) === true;
    } catch (error) {
      if (error instanceof CelEvaluationError) return false;
      throw error;
    }
  };
  return {
    eviction: config?.eviction ?? {},
    judge(ctx, reply) {
      const failed = isFailure(ctx, reply);
      return {
        status: reply.status,
        isFailure: failed,
        retryAfter: failed ? retryAfter(reply.headers) : undefined,
      };
    },
  };
}

/** Retry time in ms: `Retry-After` (RFC 9110 §10.2.3), else the rate-limit headers of OpenAI and others. */
function retryAfter(headers: HeaderList): number | undefined {
  const after = headers.get('retry-after');
  if (after !== undefined) {
    const wait = /^\d+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - Date.now();
    if (wait >= 0) return wait;
  }
  const resets = ['', '-requests', '-tokens'].flatMap((suffix) => {
    const text = headers.get(`x-ratelimit-reset${suffix}`);
    return text === undefined ? [] : (resetIn(text) ?? []);
  });
  // The headers do not tell which limit was hit. Too short a wait is corrected by the next failure, too long a one is
  // not.
  return resets.length === 0 ? undefined : Math.min(...resets);
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Larger numbers are Unix times, not durations. */
const MAX_SECONDS = 1e9;

/** Parses `6m0s`, `20ms`, seconds or Unix time to ms from now. */
function resetIn(text: string): number | undefined {
  if (/^\d+(?:\.\d+)?$/.test(text)) {
    const seconds = Number(text);
    return seconds < MAX_SECONDS ? seconds * 1000 : Math.max(0, seconds * 1000 - Date.now());
  }
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g))
    total += Number(amount) * (UNITS[unit as string] as number);
  return total;
}
