import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import { explainUpstreamError, isUnreachable } from './upstream-error.ts';

/** Logs when an upstream becomes unreachable and when it is reachable again, not once per request. */
export class Reachability {
  readonly #address: string;
  readonly #log: Log;
  #isLost = false;
  /** From `performance.now()`. Limits the warnings about an upstream that repeatedly fails and recovers. */
  #quietUntil = 0;

  /** `address` is `host:port` or `unix:path`. */
  constructor(address: string, log: Log) {
    this.#address = address;
    this.#log = log;
  }

  answered(): void {
    if (!this.#isLost) return;
    this.#isLost = false;
    this.#log.info('proxy::upstream', 'an upstream is reachable again', { upstream: this.#address });
  }

  failed(error: unknown): void {
    const now = performance.now();
    if (this.#isLost || now < this.#quietUntil || !isUnreachable(error)) return;
    this.#isLost = true;
    this.#quietUntil = now + LIMITS.upstreamWarning;
    this.#log.warn('proxy::upstream', 'an upstream cannot be reached', {
      upstream: this.#address,
      problem: explainUpstreamError(error),
    });
  }
}
