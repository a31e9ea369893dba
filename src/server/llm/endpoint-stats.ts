import type { DumpEndpointInfo } from '../../core/config-dump.ts';
import { goDuration } from '../../core/go-duration.ts';
import { LIMITS } from '../../core/limits.ts';

/** Weight of the newest call in the averages: about the last ten count. */
const NEWEST = 0.2;

/** When an endpoint that fails is left alone, and for how long. Without a condition one failure is enough. */
export interface Eviction {
  /** In ms, for the first time; the second in a row lasts twice as long. The provider's own wish when absent. */
  readonly duration?: number | undefined;
  readonly consecutiveFailures?: number | undefined;
  /** Health, from 0 to 1, below which a failure evicts. */
  readonly healthThreshold?: number | undefined;
  /** Health on return; as it was when absent. */
  readonly restoreHealth?: number | undefined;
}

/** How a call ended. */
export interface Outcome {
  /** Of the answer; 0 when there was none. */
  readonly status: number;
  readonly isFailure: boolean;
  /** When the provider wants to be asked again, in ms. */
  readonly retryAfter?: number | undefined;
}

/** How one endpoint of a provider does, until its response headers. A few additions per call. */
export class EndpointStats {
  /** Set for endpoints that others can stand in for. */
  eviction: Eviction | undefined;
  #pending = 0;
  #total = 0;
  #failures = 0;
  /** Average of 1 for a call that worked and 0 for one that did not. */
  #health = 1;
  /** Average in ms. */
  #latency = 0;
  #ejections = 0;
  /** Without a call that worked in between. */
  #ejectionsInARow = 0;
  /** Of `performance.now()`. */
  #evictedUntil: number | undefined;

  /** A call begins. Returns when, for `ended`. */
  began(): number {
    this.#pending += 1;
    this.#total += 1;
    return performance.now();
  }

  /** The client left before there was an answer, which says nothing of the provider. */
  left(): void {
    this.#pending -= 1;
  }

  ended(began: number, { status, isFailure, retryAfter }: Outcome): void {
    this.#pending -= 1;
    this.#failures = isFailure ? this.#failures + 1 : 0;
    this.#health += NEWEST * ((isFailure ? 0 : 1) - this.#health);
    const now = performance.now();
    if (isFailure) this.#evict(now, retryAfter);
    else this.#ejectionsInARow = 0;
    // Failures are quick, and would make their endpoint the fastest.
    if (status === 0 || isFailure) return;
    const took = now - began;
    this.#latency = this.#latency === 0 ? took : this.#latency + NEWEST * (took - this.#latency);
  }

  #evict(now: number, retryAfter: number | undefined): void {
    const { eviction } = this;
    if (eviction === undefined || this.isEvicted(now)) return;
    const { consecutiveFailures, healthThreshold, duration } = eviction;
    const hasCondition = consecutiveFailures !== undefined || healthThreshold !== undefined;
    const isOver =
      this.#failures >= (consecutiveFailures ?? Number.POSITIVE_INFINITY) ||
      this.#health < (healthThreshold ?? 0);
    if (hasCondition && !isOver) return;
    this.#ejections += 1;
    this.#ejectionsInARow += 1;
    const wanted = (duration ?? retryAfter ?? LIMITS.eviction) * this.#ejectionsInARow;
    this.#evictedUntil = now + Math.min(wanted, LIMITS.evictionMax);
  }

  /** `now` as `performance.now()` gives it. */
  isEvicted(now: number): boolean {
    if (this.#evictedUntil === undefined) return false;
    if (now < this.#evictedUntil) return true;
    this.#evictedUntil = undefined;
    this.#health = this.eviction?.restoreHealth ?? this.#health;
    return false;
  }

  /** How long a caller would wait here, in no unit: for comparing endpoints. An unknown one is tried. */
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
