import { hash } from 'node:crypto';
import { z } from 'zod';
import { durationSchema, goDuration } from '../../core/duration.ts';
import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Expression, VariableResolver } from '../kernel/expression.ts';
import type { HeaderList } from '../kernel/header-list.ts';
import { definePolicy, type PolicyRoute } from '../kernel/policy.ts';
import { tokenListeners } from '../kernel/shared-slots.ts';
import { TokenBucket } from './token-bucket.ts';

const limitSchema = z.strictObject({
  maxTokens: z.int().min(1).describe('Size of the bucket: the largest burst.'),
  tokensPerFill: z.int().min(1).default(1).describe('Tokens added per `fillInterval`.'),
  fillInterval: durationSchema
    .refine((value) => value > 0, { error: 'expected a duration over zero' })
    .describe('Interval at which tokens are added.'),
  type: z
    .enum(['requests', 'tokens'])
    .default('requests')
    .describe(
      'What is counted: requests, or LLM tokens of calls to `llm` backends, which are deducted when a call has ended.',
    ),
  key: z
    .string()
    .min(1)
    .optional()
    .describe(
      'CEL expression such as `source.address`: each value has its own bucket. By default, all requests share one.',
    ),
});

const schema = z
  .array(limitSchema)
  .min(1)
  .describe(
    'Token buckets of this process. If any bucket is empty, the request is rejected with 429. Buckets start full.',
  );

/** Rate limits, counted in this process only. */
export const localRateLimit = definePolicy({
  key: 'localRateLimit',
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
    const compiled = limits.map((limit, index) => ({
      buckets: new Buckets(limit),
      key: limit.key === undefined ? undefined : context.at(index, 'key').cel(limit.key, requestScope),
    }));
    for (const [index, { buckets }] of compiled.entries()) {
      context.inspection.bounds.push({
        name: 'localRateLimit.keys',
        at: context.at(index).path.join('.'),
        max: LIMITS.rateLimitKeys,
        used: () => buckets.size,
      });
    }
    /** The bucket with the fewest tokens, by request, for the headers `x-ratelimit-*`. */
    const lowestBuckets = new WeakMap<object, TokenBucket>();
    return {
      request(ctx) {
        const now = performance.now();
        const lookup = resolverFor(ctx);
        const buckets = compiled.map(({ buckets: set, key }) => set.find(keyOf(key, lookup), now));
        // Listing models uses no tokens, so clients with an empty bucket may still do it.
        const isFree = ctx.api?.usesTokens(ctx) === false;
        const empty = buckets.find(
          (bucket, index) => !(isFree && limits[index]?.type === 'tokens') && bucket.remaining(now) < 1,
        );
        const lowest = empty ?? buckets.reduce((a, b) => (b.remaining(now) < a.remaining(now) ? b : a));
        lowestBuckets.set(ctx, lowest);
        if (empty !== undefined) {
          ctx.observer?.policy({
            kind: 'localRateLimit',
            action: 'deny',
            reason: 'the bucket is empty',
            snapshot: { limit: empty.size },
          });
          throw new AppError('rate_limited', {
            headers: ['retry-after', String(Math.max(1, empty.secondsUntil(1, now)))],
          });
        }
        // Taken from all buckets or from none: a rejected request costs nothing.
        for (const [index, bucket] of buckets.entries()) {
          if (limits[index]?.type === 'requests') bucket.take(1);
          else tokenListeners.ensure(ctx, () => []).push((tokens) => bucket.take(tokens));
        }
        ctx.observer?.policy({
          kind: 'localRateLimit',
          action: 'apply',
          reason: 'no bucket is empty',
          snapshot: { remaining: Math.floor(lowest.remaining(now)) },
        });
        return undefined;
      },
      response(ctx, reply) {
        const bucket = lowestBuckets.get(ctx);
        // The headers of an upstream with its own rate limit are more accurate.
        if (bucket !== undefined && !reply.headers.has('x-ratelimit-limit'))
          setHeaders(reply.headers, bucket);
      },
    };
  },
});

function setHeaders(headers: HeaderList, bucket: TokenBucket): void {
  const now = performance.now();
  headers.set('x-ratelimit-limit', String(bucket.size));
  headers.set('x-ratelimit-remaining', String(Math.max(0, Math.floor(bucket.remaining(now)))));
  headers.set('x-ratelimit-reset', String(bucket.secondsUntilFill(now)));
}

/** Key of requests whose expression fails: they share one bucket, so that a failing key does not bypass the limit. */
const UNKNOWN = '';

function keyOf(key: Expression | undefined, lookup: VariableResolver): string {
  if (key === undefined) return UNKNOWN;
  const text = JSON.stringify(tryEvaluate(key, lookup)) ?? UNKNOWN;
  // Long keys are hashed, so that the memory of `LIMITS.rateLimitKeys` keys is bounded.
  return text.length <= 64 ? text : hash('sha256', text, 'base64url');
}

type Limit = z.output<typeof limitSchema>;

/** The buckets of one limit by key. Over `LIMITS.rateLimitKeys` keys, the least recently used bucket is removed. */
class Buckets {
  readonly #limit: Limit;
  readonly #byKey = new Map<string, TokenBucket>();

  constructor(limit: Limit) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#byKey.size;
  }

  find(key: string, now: number): TokenBucket {
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      this.#byKey.delete(key);
      this.#byKey.set(key, known);
      return known;
    }
    if (this.#byKey.size >= LIMITS.rateLimitKeys)
      this.#byKey.delete(this.#byKey.keys().next().value as string);
    const { maxTokens, tokensPerFill, fillInterval } = this.#limit;
    const bucket = new TokenBucket(maxTokens, tokensPerFill, fillInterval, now);
    this.#byKey.set(key, bucket);
    return bucket;
  }
}

function warnAboutUncountedTokens(
  limits: z.output<typeof schema>,
  { name, backends }: PolicyRoute,
  context: CompileContext,
): void {
  if (backends.some(({ llm }) => llm !== undefined)) return;
  for (const [index, { type }] of limits.entries())
    if (type === 'tokens')
      context.at(index, 'type').report({
        code: 'AGW0303',
        severity: 'warning',
        message: `a limit of \`tokens\` has no effect: route \`${name}\` has no \`llm\` backend`,
        label: 'only `llm` backends count tokens',
        help: 'configure the provider as an `llm` backend, or limit `requests`',
      });
}
