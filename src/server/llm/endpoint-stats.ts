import type { DumpEndpointInfo } from '../../core/config-dump.ts';

/** Weight of the newest call in the averages: about the last ten count. */
const NEWEST = 0.2;

/** How one endpoint of a provider does, until its response headers. A few additions per call. */
export class EndpointStats {
  #pending = 0;
  #total = 0;
  #failures = 0;
  /** Average of 1 for a call that worked and 0 for one that did not. */
  #health = 1;
  /** Average in ms. */
  #latency = 0;

  /** A call begins. Returns when, for `ended`. */
  began(): number {
    this.#pending += 1;
    this.#total += 1;
    return performance.now();
  }

  /** It was answered, or failed (0). Refusals such as 400 are the client's doing. */
  ended(began: number, status: number): void {
    this.#pending -= 1;
    const works = status !== 0 && status < 500 && status !== 429;
    this.#failures = works ? 0 : this.#failures + 1;
    this.#health += NEWEST * ((works ? 1 : 0) - this.#health);
    if (status === 0) return;
    const took = performance.now() - began;
    this.#latency = this.#latency === 0 ? took : this.#latency + NEWEST * (took - this.#latency);
  }

  get info(): DumpEndpointInfo {
    return {
      health: Math.round(this.#health * 1000) / 1000,
      requestLatency: Math.round(this.#latency) / 1000,
      pendingRequests: this.#pending,
      totalRequests: this.#total,
      consecutiveFailures: this.#failures,
      timesEjected: 0,
      evictedUntil: null,
    };
  }
}
