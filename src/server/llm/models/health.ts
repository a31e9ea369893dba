import { z } from 'zod';
import { durationSchema, durationText, goDuration } from '../../../core/duration.ts';
import { LIMITS } from '../../../core/limits.ts';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { CelEvaluationError } from '../../expressions/cel/expression.ts';
import { ResponseView } from '../../expressions/request-variables.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { DumpEndpointInfo } from '../../kernel/config-dump.ts';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { Shared } from '../../kernel/shared-state.ts';
import { providerReplyScope } from '../variables.ts';

const share = z.number().min(0).max(1);

export const healthSchema = z.lazy(() =>
  mapping('What counts as a failure of the model. Used by virtual models with `failover`.', {
    unhealthyExpression: nonEmpty
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
  }),
);

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

/**
 * Retry time in ms: `retry-after-ms`, which OpenAI's clients prefer, `Retry-After` (RFC 9110 §10.2.3; some servers send
 * fractions), else the rate-limit headers of OpenAI and others.
 */
function retryAfter(headers: HeaderList): number | undefined {
  const exact = headers.get('retry-after-ms');
  if (exact !== undefined && NUMBER.test(exact)) return Math.min(Number(exact), LIMITS.evictionMax);
  const after = headers.get('retry-after');
  if (after !== undefined) {
    const wait = NUMBER.test(after) ? Number(after) * 1000 : dateOf(after) - Date.now();
    if (wait >= 0) return Math.min(wait, LIMITS.evictionMax);
  }
  const resets = ['', '-requests', '-tokens'].flatMap((suffix) => {
    const text = headers.get(`x-ratelimit-reset${suffix}`);
    return text === undefined ? [] : (resetIn(text) ?? []);
  });
  // The headers do not tell which limit was hit. Too short a wait is corrected by the next failure, too long a one is
  // not.
  return resets.length === 0 ? undefined : Math.min(...resets, LIMITS.evictionMax);
}

/** A date of RFC 9110 §5.6.7, all of whose forms have a time of day. `Date.parse` makes a day of other texts, too: 2049 of `49.5`. */
const dateOf = (text: string): number => (/\d:\d\d:\d\d/.test(text) ? Date.parse(text) : Number.NaN);

const NUMBER = /^\d+(?:\.\d+)?$/;

const UNITS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);
/** Larger numbers are Unix times, not durations. */
const MAX_SECONDS = 1e9;

/** Parses `6m0s`, `20ms`, seconds or Unix time to ms from now. */
function resetIn(text: string): number | undefined {
  if (NUMBER.test(text)) {
    const seconds = Number(text);
    return seconds < MAX_SECONDS ? seconds * 1000 : Math.max(0, seconds * 1000 - Date.now());
  }
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g))
    total += Number(amount) * (UNITS.get(unit) ?? 0);
  return total;
}

/** Weight of the newest call in the moving averages: about the last ten calls count. */
const NEWEST_WEIGHT = 0.2;

/** When a failing endpoint is evicted, and for how long. Without a condition, the first failure evicts. */
interface Eviction {
  /**
   * In ms. The n-th eviction in a row lasts n times as long, up to `LIMITS.evictionMax`. Default: the provider's retry
   * time, else `LIMITS.eviction`.
   */
  readonly duration?: number | undefined;
  /** Failures in a row that evict. */
  readonly consecutiveFailures?: number | undefined;
  /** Health, from 0 to 1, below which a failure evicts. */
  readonly healthThreshold?: number | undefined;
  /** Health after the eviction, from 0 to 1. Default: unchanged. */
  readonly restoreHealth?: number | undefined;
}

/** The outcome of a call. */
export interface Outcome {
  /** Status of the response; 0 if there was none. */
  readonly status: number;
  readonly isFailure: boolean;
  /** Time until the provider accepts a retry, in ms. */
  readonly retryAfter?: number | undefined;
}

/** Decides when failures evict an endpoint. With several workers, one rule counts the calls of all of them. */
class EvictionRule {
  readonly #eviction: Eviction;
  /** Consecutive. */
  #failures = 0;
  #health = 1;
  /** Evictions without a successful call in between. */
  #inARow = 0;
  /** Time of `performance.now()`. */
  #evictedUntil: number | undefined;

  constructor(eviction: Eviction) {
    this.#eviction = eviction;
  }

  /** Records the outcome of a call. Returns for how many ms it evicts the endpoint, if it does. */
  record({ isFailure, retryAfter }: Outcome): number | undefined {
    const { consecutiveFailures, healthThreshold, duration, restoreHealth } = this.#eviction;
    const now = performance.now();
    if (this.#evictedUntil !== undefined && now >= this.#evictedUntil) {
      this.#evictedUntil = undefined;
      this.#health = restoreHealth ?? this.#health;
    }
    this.#failures = isFailure ? this.#failures + 1 : 0;
    this.#health = averaged(this.#health, isFailure ? 0 : 1);
    if (!isFailure) this.#inARow = 0;
    if (!isFailure || this.#evictedUntil !== undefined) return undefined;
    const hasCondition = consecutiveFailures !== undefined || healthThreshold !== undefined;
    const isMet =
      this.#failures >= (consecutiveFailures ?? Number.POSITIVE_INFINITY) ||
      this.#health < (healthThreshold ?? 0);
    if (hasCondition && !isMet) return undefined;
    this.#inARow += 1;
    const length = (duration ?? retryAfter ?? LIMITS.eviction) * this.#inARow;
    this.#evictedUntil = now + Math.min(length, LIMITS.evictionMax);
    return this.#evictedUntil - now;
  }
}

const averaged = (average: number, newest: number): number => average + NEWEST_WEIGHT * (newest - average);

/**
 * Health of one provider endpoint, and its latency, measured until the response headers. Costs a few additions per call. With
 * several workers, they are those of this process; only evictions are common to all.
 */
export class EndpointStats {
  #pending = 0;
  #total = 0;
  #failures = 0;
  /** Moving average of 1 for a successful call and 0 for a failed one. */
  #health = 1;
  /** Moving average in ms. */
  #latency = 0;
  #ejections = 0;
  /** Time of `performance.now()`. */
  #evictedUntil: number | undefined;
  #restoreHealth: number | undefined;
  /** Set for endpoints with alternatives. Undefined: never evicted. */
  #evictions: Shared<{ record(outcome: Outcome): void }> | undefined;

  /** Evicts the endpoint when it fails. `name` is unique in the component that is being compiled. */
  evictBy(eviction: Eviction, name: string, context: CompileContext): void {
    if (this.#evictions !== undefined) return;
    this.#restoreHealth = eviction.restoreHealth;
    const rule = new EvictionRule(eviction);
    const evictions = context.shared(
      name,
      {
        record: (outcome: Outcome): void => {
          const length = rule.record(outcome);
          if (length === undefined) return;
          this.#evictFor(length);
          evictions.publish(length);
        },
      },
      (length: number) => this.#evictFor(length),
    );
    this.#evictions = evictions;
  }

  /** Releases the shared eviction state. */
  close(): void {
    this.#evictions?.release();
  }

  /** Records the start of a call. */
  callStarted(): void {
    this.#pending += 1;
    this.#total += 1;
  }

  /** Records that a call no longer waits for the response headers, which came after `latency` ms; undefined for none, or a failure. */
  callAnswered(latency: number | undefined): void {
    this.#pending -= 1;
    // Fast failures would otherwise make a failing endpoint look like the fastest.
    if (latency === undefined) return;
    this.#latency = this.#latency === 0 ? latency : averaged(this.#latency, latency);
  }

  /**
   * Records the outcome of a call: a success at the end of its response. Returns a promise if another process decides about evictions:
   * it resolves when all workers are being told.
   */
  callEnded(outcome: Outcome): void | Promise<void> {
    const { isFailure } = outcome;
    this.#failures = isFailure ? this.#failures + 1 : 0;
    this.#health = averaged(this.#health, isFailure ? 0 : 1);
    return this.#evictions?.call.record(outcome);
  }

  #evictFor(length: number): void {
    this.#ejections += 1;
    this.#evictedUntil = performance.now() + length;
  }

  /** Whether the endpoint is evicted at `now` (`performance.now()`). */
  isEvicted(now: number): boolean {
    if (this.#evictedUntil === undefined) return false;
    if (now < this.#evictedUntil) return true;
    this.#evictedUntil = undefined;
    this.#health = this.#restoreHealth ?? this.#health;
    return false;
  }

  /**
   * Expected waiting time, without a unit: only for comparing endpoints. Low for an unused endpoint, so that it is
   * tried.
   */
  get cost(): number {
    return ((this.#latency + 1) * (this.#pending + 1)) / Math.max(this.#health, 0.05);
  }

  get info(): DumpEndpointInfo {
    const now = performance.now();
    const left = this.isEvicted(now) ? (this.#evictedUntil ?? now) - now : 0;
    return {
      health: Math.round(this.#health * 1000) / 1000,
      requestLatency: Math.round(this.#latency) / 1000,
      pendingRequests: this.#pending,
      totalRequests: this.#total,
      consecutiveFailures: this.#failures,
      timesEjected: this.#ejections,
      evictedUntil: left > 0 ? goDuration(Math.ceil(left / 100) * 100) : null,
    };
  }
}
