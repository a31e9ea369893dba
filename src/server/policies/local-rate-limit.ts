import { hash } from 'node:crypto';
import { z } from 'zod';
import { durationSchema, durationText, goDuration } from '../../core/duration.ts';
import { AppError, ERRORS, messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { choice, nonEmpty } from '../../core/schema/mapping.ts';
import { CelEvaluationError } from '../expressions/cel/errors.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { VariableResolver } from '../kernel/expression.ts';
import { definePolicy, type PolicyRoute } from '../kernel/policy.ts';
import type { HeaderList } from '../kernel/request/header-list.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { tokenListeners } from '../kernel/request/shared-slots.ts';
import type { Remote } from '../kernel/shared-state.ts';
import { type SharedStore, sharedStore, withStore } from '../kernel/shared-store.ts';
import { RateLimits, type Taken } from './limits/rate-limits.ts';
import { StoreBuckets } from './limits/store-buckets.ts';
import { TokenBucket } from './limits/token-bucket.ts';
import { TokenLeases } from './limits/token-leases.ts';

const limitSchema = z.lazy(() =>
  z.strictObject({
    maxTokens: z.int().min(1).describe('Size of the bucket: the largest burst.'),
    tokensPerFill: z
      .int()
      .min(1)
      .default(1)
      .describe(
        'Tokens added per `fillInterval`. By default one: a full bucket of 100 with `fillInterval: 1m` admits 100 requests, then one per minute; write 100 for 100 per minute.',
      ),
    fillInterval: durationSchema
      .refine((value) => value > 0, { error: 'expected a duration over zero' })
      .describe('Interval at which tokens are added.'),
    type: choice(
      'What is counted: requests, or LLM tokens of calls of models, which are deducted when a call has ended.',
      ['requests', 'tokens'],
      'requests',
    ),
    key: nonEmpty
      .optional()
      .describe(
        'CEL expression such as `source.address`: each value has its own bucket. By default, all requests share one. Requests for which the expression fails share a bucket too, so that they are limited; the first of them is logged.',
      ),
  }),
);

const schema = z
  .array(limitSchema)
  .min(1)
  .describe(
    'Token buckets of this gateway, which its workers share; with `config.shared`, of all gateways that do. If any bucket is empty, the request is rejected with 429. Buckets start full.',
  );

/** Rate limits, counted in this gateway, or in the store of `config.shared`. */
export const localRateLimit = definePolicy({
  key: 'localRateLimit',
  conditional: true,
  requestExpressions: ['[].key'],
  schema,
  trace: { kind: 'local_rate_limit', stage: 'local rate limit' },
  dump: (limits) => ({
    localRateLimit: limits.map(({ fillInterval, ...limit }) => ({
      ...limit,
      fillInterval: goDuration(fillInterval),
    })),
  }),
  checkRoute: warnAboutUncountedTokens,
  compile(limits, context) {
    noteDefaultFill(limits, context);
    const own = new RateLimits(limits);
    const shared = context.shared('buckets', {
      take: (keys: readonly string[], isFreeOfTokens: boolean) => own.take(keys, isFreeOfTokens),
      deduct: (index: number, key: string, tokens: number) => own.deduct(index, key, tokens),
      lease: (keys: readonly string[], wanted: number, used: number) => own.lease(keys, wanted, used),
      giveBack: (keys: readonly string[], used: number, unused: number) => own.giveBack(keys, used, unused),
    });
    // LLM tokens are deducted when calls have ended: a lease of several calls would not see an empty bucket.
    const leases =
      shared.isRemote && limits.every(({ type }) => type === 'requests')
        ? new TokenLeases(shared.call)
        : undefined;
    const counted =
      leases === undefined
        ? shared.call
        : { ...shared.call, take: (keys: readonly string[]) => leases.take(keys) };
    const store = sharedStore.get(context.settings);
    const counts =
      store === undefined
        ? counted
        : storeRateLimits(new StoreBuckets(limits, store, context.identity('buckets')), counted, store);
    const keys = limits.map(({ key }, index) =>
      key === undefined ? undefined : bucketKey(key, context.at(index, 'key')),
    );
    for (const index of limits.keys())
      context.inspection.bounds.push({
        name: 'localRateLimit.keys',
        at: context.at(index).path.join('.'),
        max: LIMITS.rateLimitKeys,
        used: () => own.size(index),
      });
    /** The bucket with the fewest tokens, by request, for the headers `x-ratelimit-*`. */
    const lowestBuckets = new WeakMap<object, TokenBucket>();
    const decide = (ctx: RequestContext, keysOfRequest: readonly string[], taken: Taken): undefined => {
      const now = performance.now();
      const lowest = TokenBucket.of(taken.lowest, now);
      lowestBuckets.set(ctx, lowest);
      if (taken.isDenied) {
        ctx.observer?.policy({
          kind: 'localRateLimit',
          action: 'deny',
          reason: 'the bucket is empty',
          snapshot: { limit: lowest.size },
        });
        const empty = taken.empty ?? 0;
        throw exceeded(limits[empty], context.at(empty), Math.max(1, lowest.secondsUntil(1, now)));
      }
      for (const [index, { type }] of limits.entries())
        if (type === 'tokens')
          tokenListeners
            .ensure(ctx, () => [])
            .push((tokens) => {
              // Fails in a worker if the process that counts has ended: a new one starts with full buckets.
              Promise.resolve(counts.deduct(index, keysOfRequest[index] ?? '', tokens)).catch(
                (error: unknown) =>
                  context.log.debug('proxy::rate_limit', 'tokens could not be deducted', {
                    problem: messageOf(error),
                  }),
              );
            });
      ctx.observer?.policy({
        kind: 'localRateLimit',
        action: 'apply',
        reason: 'no bucket is empty',
        snapshot: { remaining: Math.floor(lowest.remaining(now)) },
      });
      return undefined;
    };
    return {
      request(ctx) {
        const lookup = resolverFor(ctx);
        const keysOfRequest = keys.map((key) => key?.(lookup) ?? SHARED);
        // Listing models uses no tokens, so clients with an empty bucket may still do it.
        const taken = counts.take(keysOfRequest, ctx.api?.usesTokens(ctx) === false);
        if (!(taken instanceof Promise)) return decide(ctx, keysOfRequest, taken);
        // No outcome: a reload has removed this limit since the request began.
        return taken.then((outcome: Taken | undefined) => outcome && decide(ctx, keysOfRequest, outcome));
      },
      response(ctx, reply) {
        const bucket = lowestBuckets.get(ctx);
        // The headers of an upstream with its own rate limit are more accurate.
        if (bucket !== undefined && !reply.headers.has('x-ratelimit-limit'))
          setHeaders(reply.headers, bucket);
      },
      close() {
        leases?.close();
        shared.release();
      },
    };
  },
});

/** The refusal of a request by a limit. Logs have the text of the specification. `wait` in seconds. */
function exceeded(limit: Limit | undefined, { path }: CompileContext, wait: number): AppError {
  const { text } = ERRORS.rate_limited;
  const what = limit === undefined ? '' : `: ${limitText(limit)}`;
  return new AppError('rate_limited', {
    message: `${text}${what}; try again in ${wait} s`,
    logged: text,
    detail: path.join('.'),
    headers: ['retry-after', String(wait)],
  });
}

type Limit = z.output<typeof limitSchema>;

/** A size and an interval read like a rate: 60 and 1m like 60 per minute. The default of one is that of Envoy's token bucket. */
function noteDefaultFill(limits: readonly Limit[], context: CompileContext): void {
  for (const [index, { maxTokens, fillInterval, type }] of limits.entries()) {
    if (maxTokens === 1 || context.at(index, 'tokensPerFill').isWritten()) continue;
    const interval = durationText(fillInterval);
    context.at(index, 'maxTokens').report({
      code: 'AGW0321',
      severity: 'note',
      message: `once ${maxTokens} ${type} are used up, one more is admitted every ${interval}`,
      label: 'only the size of the bucket: `tokensPerFill` says how many are added, one by default',
      help: `for ${maxTokens} every ${interval}, write \`tokensPerFill: ${maxTokens}\`; to keep the limit, write \`tokensPerFill: 1\``,
    });
  }
}

/** A limit for its clients. Not its expression, which is the operator's. */
function limitText({ type, maxTokens, tokensPerFill, fillInterval, key }: Limit): string {
  const unit = type === 'tokens' ? 'LLM token' : 'request';
  const most = `${maxTokens} ${unit}${maxTokens === 1 ? '' : 's'}`;
  const owner = key === undefined ? 'all requests here together' : 'requests with your key';
  return `at most ${most}, and ${tokensPerFill} more every ${durationText(fillInterval)}, for ${owner}`;
}

function setHeaders(headers: HeaderList, bucket: TokenBucket): void {
  const now = performance.now();
  headers.set('x-ratelimit-limit', String(bucket.size));
  headers.set('x-ratelimit-remaining', String(Math.max(0, Math.floor(bucket.remaining(now)))));
  headers.set('x-ratelimit-reset', String(bucket.secondsUntilFill(now)));
}

/** Key of all requests of a limit without `key`, and of those whose expression fails: failing does not bypass the limit. */
const SHARED = '';

/** The bucket of a request by an expression. Its first failure is logged: clients then share one bucket, unseen. */
function bucketKey(source: string, context: CompileContext): (lookup: VariableResolver) => string {
  const expression = context.cel(source, requestScope);
  let hasWarned = false;
  return (lookup) => {
    let text: string;
    try {
      text = JSON.stringify(expression.evaluate(lookup));
    } catch (error) {
      if (!(error instanceof CelEvaluationError)) throw error;
      if (!hasWarned)
        context.log.warn('proxy::policy', 'the key of a rate limit fails: such requests share one bucket', {
          at: context.path.join('.'),
          key: source,
          problem: error.message,
        });
      hasWarned = true;
      return SHARED;
    }
    // Long keys are hashed, so that the memory of `LIMITS.rateLimitKeys` keys is bounded.
    return text.length <= 64 ? text : hash('sha256', text, 'base64url');
  };
}

function warnAboutUncountedTokens(
  limits: z.output<typeof schema>,
  { name, backends }: PolicyRoute,
  context: CompileContext,
): void {
  if (backends.some(({ countsTokens }) => countsTokens)) return;
  for (const [index, { type }] of limits.entries())
    if (type === 'tokens')
      context.at(index, 'type').report({
        code: 'AGW0303',
        message: `a limit of \`tokens\` has no effect: route \`${name}\` has no \`llm\` or \`ai\` backend`,
        label: 'only calls of models have tokens',
        help: 'configure the provider as an `llm` or `ai` backend, or limit `requests`',
      });
}

/** What counts requests: the buckets of this gateway, or of a store that several gateways share. */
type Counts = Remote<Pick<RateLimits, 'take' | 'deduct'>>;

/**
 * Counts in the shared store. While it is not available, requests are counted by `own`, whose buckets are full at first, or
 * rejected; tokens that a call has used are deducted there as well.
 */
function storeRateLimits(buckets: StoreBuckets, own: Counts, store: SharedStore): Counts {
  return {
    async take(keys, isFreeOfTokens): Promise<Awaited<Taken>> {
      const taken = await withStore(store, 'rateLimits', () => buckets.take(keys, isFreeOfTokens), {
        code: 'rate_limit_failed',
      });
      return taken ?? own.take(keys, isFreeOfTokens);
    },
    async deduct(index, key, tokens): Promise<void> {
      const isDeducted = await withStore(store, 'rateLimits', async () => {
        await buckets.deduct(index, key, tokens);
        return true;
      });
      if (isDeducted !== true) await own.deduct(index, key, tokens);
    },
  };
}
