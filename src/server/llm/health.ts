import { z } from 'zod';
import { LIMITS } from '../../core/limits.ts';
import { durationSchema, durationText } from '../../core/schema/duration.ts';
import { CelEvaluationError } from '../expressions/cel/expression.ts';
import { ResponseView } from '../expressions/request-variables.ts';
import { resolverFor } from '../expressions/resolver.ts';
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
        'CEL expression over the `response` (`code`, `headers`): an answer for which it is true is a failure. 5xx and 429 by default; no answer always is one.',
      ),
    eviction: z
      .strictObject({
        duration: durationSchema
          .optional()
          .describe(
            `How long: the first time, twice that the second time in a row, and so on, up to ${durationText(LIMITS.evictionMax)}. By default what \`Retry-After\` or \`x-ratelimit-reset…\` of the failure say, else ${durationText(LIMITS.eviction)}.`,
          ),
        consecutiveFailures: z
          .int()
          .min(1)
          .optional()
          .describe('Failures in a row before it. Without this and `healthThreshold` one is enough.'),
        healthThreshold: share
          .optional()
          .describe(
            'A failure evicts below this health: the share of calls that worked, of about the last ten.',
          ),
        restoreHealth: share.optional().describe('Health on return; as it was by default.'),
      })
      .default({})
      .describe('When the model is left alone for a while, where others can stand in for it.'),
  })
  .describe('What counts as a failure of the model. Virtual models with `failover` choose by it.');

/** How calls of one model are judged. */
export interface Health {
  readonly eviction: Eviction;
  /** What an answer says of the endpoint. */
  judge(ctx: RequestContext, reply: Reply): Outcome;
}

/** Compiles `health` of a model, which may be absent. */
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

/** When a provider wants to be asked again, in ms: RFC 9110 §10.2.3, else the rate-limit headers of OpenAI and others. */
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
  // Which of the limits was hit is not said. Too short a time is found out, too long a one is not.
  return resets.length === 0 ? undefined : Math.min(...resets);
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** A larger number of seconds is a time since 1970. */
const LONGEST = 1e9;

/** `6m0s`, `20ms`, seconds, or seconds since 1970. */
function resetIn(text: string): number | undefined {
  if (/^\d+(?:\.\d+)?$/.test(text)) {
    const seconds = Number(text);
    return seconds < LONGEST ? seconds * 1000 : Math.max(0, seconds * 1000 - Date.now());
  }
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g))
    total += Number(amount) * (UNITS[unit as string] as number);
  return total;
}
