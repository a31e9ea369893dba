import type { DumpEndpointInfo } from '../../core/config-dump.ts';
import { goDuration } from '../../core/go-duration.ts';
import { LIMITS } from '../../core/limits.ts';

/** Weight of the newest call in the moving averages: about the last ten calls count. */
const NEWEST_WEIGHT = 0.2;

/** When a failing endpoint is evicted, and for how long. Without a condition, the first failure evicts. */
export interface Eviction {
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

/** Health and latency of one provider endpoint, measured until the response headers. Costs a few additions per call. */
export class EndpointStats {
  /** Set for endpoints with alternatives. Undefined: never evicted. */
  eviction: Eviction | undefined;
  #pending = 0;
  #total = 0;
  #failures = 0;
  /** Moving average of 1 for a successful call and 0 for a failed one. */
  #health = 1;
  /** Moving average in ms. */
  #latency = 0;
  #ejections = 0;
  /** Ejections without a successful call in between. */
  #ejectionsInARow = 0;
  /** Time of `performance.now()`. */
  #evictedUntil: number | undefined;

  /** Records the start of a call. Returns the start time for `callEnded`. */
  callStarted(): number {
    this.#pending += 1;
    this.#total += 1;
    return performance.now();
  }

  /** Records that the client disconnected before a response, which does not affect the provider's health. */
  callAbandoned(): void {
    this.#pending -= 1;
  }

  /** Records the outcome of a call that started at `startedAt`. */
  callEnded(startedAt: number, { status, isFailure, retryAfter }: Outcome): void {
    this.#pending -= 1;
    this.#failures = isFailure ? this.#failures + 1 : 0;
    this.#health += NEWEST_WEIGHT * ((isFailure ? 0 : 1) - this.#health);
    const now = performance.now();
    if (isFailure) this.#evict(now, retryAfter);
    else this.#ejectionsInARow = 0;
    // Fast failures would otherwise make a failing endpoint look like the fastest.
    if (status === 0 || isFailure) return;
    const took = now - startedAt;
    this.#latency = this.#latency === 0 ? took : this.#latency + NEWEST_WEIGHT * (took - this.#latency);
  }

  #evict(now: number, retryAfter: number | undefined): void {
    const { eviction } = this;
    if (eviction === undefined || this.isEvicted(now)) return;
    const { consecutiveFailures, healthThreshold, duration } = eviction;
    const hasCondition = consecutiveFailures !== undefined || healthThreshold !== undefined;
    const isMet =
      this.#failures >= (consecutiveFailures ?? Number.POSITIVE_INFINITY) ||
      this.#health < (healthThreshold ?? 0);
    if (hasCondition && !isMet) return;
    this.#ejections += 1;
    this.#ejectionsInARow += 1;
    const length = (duration ?? retryAfter ?? LIMITS.eviction) * this.#ejectionsInARow;
    this.#evictedUntil = now + Math.min(length, LIMITS.evictionMax);
  }

  /** Whether the endpoint is evicted at `now` (`performance.now()`). */
  isEvicted(now: number): boolean {
    if (this.#evictedUntil === undefined) return false;
    if (now < this.#evictedUntil) return true;
    this.#evictedUntil = undefined;
    this.#health = this.eviction?.restoreHealth ?? this.#health;
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
