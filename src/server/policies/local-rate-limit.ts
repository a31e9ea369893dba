import { hash } from 'node:crypto';
import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { goDuration } from '../../core/go-duration.ts';
import { LIMITS } from '../../core/limits.ts';
import { durationSchema } from '../../core/schema/duration.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { resolverFor } from '../expressions/resolver.ts';
import { requestScope } from '../expressions/scopes.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Expression, VariableResolver } from '../kernel/expression.ts';
import type { HeaderList } from '../kernel/header-list.ts';
import type { PolicyRoute } from '../kernel/policy.ts';
import { definePolicy } from '../kernel/policy.ts';
import { tokenListeners } from '../kernel/token-usage.ts';
import { TokenBucket } from './token-bucket.ts';

const limitSchema = z.strictObject({
  maxTokens: z.int().min(1).describe('Size of the bucket: how many requests may come at once.'),
  tokensPerFill: z.int().min(1).default(1).describe('How much is added each time.'),
  fillInterval: durationSchema
    .refine((value) => value > 0, { error: 'expected a duration over zero' })
    .describe('How often it is added.'),
  type: z
    .enum(['requests', 'tokens'])
    .default('requests')
    .describe(
      'What is counted: requests, or tokens of calls to `llm` backends, which are known and taken when a call has ended.',
    ),
  key: z
    .string()
    .min(1)
    .optional()
    .describe(
      'CEL expression: each value has a bucket of its own, as in `source.address`. One bucket for all when absent.',
    ),
});

const schema = z
  .array(limitSchema)
  .min(1)
  .describe(
    'Token buckets of this process; every one must have room, or the request gets 429. Buckets start full.',
  );

/** Limits counted in this process. */
export const localRateLimit = definePolicy({
  key: 'localRateLimit',
  schema,
  trace: { kind: 'local_rate_limit', stage: 'local rate limit' },
  dump: (limits) => ({
    localRateLimit: limits.map(({ fillInterval, ...limit }) => ({
      ...limit,
      fillInterval: goDuration(fillInterval),
    })),
  }),
  checkRoute: warnOfUncountedTokens,
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
    /** The bucket with the least room, whose state the client is told. */
    const tightest = new WeakMap<object, TokenBucket>();
    return {
      request(ctx) {
        const now = performance.now();
        const lookup = resolverFor(ctx);
        const buckets = compiled.map(({ buckets: set, key }) => set.find(keyOf(key, lookup), now));
        // The list of models uses no tokens: a client without any left still finds out what there is.
        const isFree = ctx.api?.usesTokens(ctx) === false;
        const full = buckets.find(
          (bucket, index) => !(isFree && limits[index]?.type === 'tokens') && bucket.remaining(now) < 1,
        );
        const least = full ?? buckets.reduce((a, b) => (b.remaining(now) < a.remaining(now) ? b : a));
        tightest.set(ctx, least);
        if (full !== undefined) {
          ctx.observer?.policy({
            kind: 'localRateLimit',
            action: 'deny',
            reason: 'the bucket is empty',
            snapshot: { limit: full.size },
          });
          throw new AppError('rate_limited', {
            headers: ['retry-after', String(Math.max(1, full.secondsUntil(1, now)))],
          });
        }
        // Taken from all or from none: a refused request costs nothing.
        for (const [index, bucket] of buckets.entries()) {
          if (limits[index]?.type === 'requests') bucket.take(1);
          else tokenListeners.ensure(ctx, () => []).push((tokens) => bucket.take(tokens));
        }
        ctx.observer?.policy({
          kind: 'localRateLimit',
          action: 'apply',
          reason: 'every bucket has room',
          snapshot: { remaining: Math.floor(least.remaining(now)) },
        });
        return undefined;
      },
      response(ctx, reply) {
        const bucket = tightest.get(ctx);
        // An upstream that limits too knows better how much it will still take.
        if (bucket !== undefined && !reply.headers.has('x-ratelimit-limit')) describe(reply.headers, bucket);
      },
    };
  },
});

function describe(headers: HeaderList, bucket: TokenBucket): void {
  const now = performance.now();
  headers.set('x-ratelimit-limit', String(bucket.size));
  headers.set('x-ratelimit-remaining', String(Math.max(0, Math.floor(bucket.remaining(now)))));
  headers.set('x-ratelimit-reset', String(bucket.secondsUntilFill(now)));
}

/** Requests whose key cannot be told share one bucket: a limit must not be escaped by making its key fail. */
const UNKNOWN = '';

function keyOf(key: Expression | undefined, lookup: VariableResolver): string {
  if (key === undefined) return UNKNOWN;
  const text = JSON.stringify(tryEvaluate(key, lookup)) ?? UNKNOWN;
  // Ten thousand keys of any length would be memory without a bound.
  return text.length <= 64 ? text : hash('sha256', text, 'base64url');
}

type Limit = z.output<typeof limitSchema>;

/** The buckets of one limit, by key. Bounded: beyond that many keys, the one used longest ago starts anew. */
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

function warnOfUncountedTokens(
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
        help: 'reach the provider through `llm: { … }`, or limit `requests`',
      });
}
