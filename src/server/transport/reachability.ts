import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import { explainUpstreamError, isUnreachable } from './upstream-error.ts';

/** Logs that an upstream cannot be reached, and that it answers again: once each, and not for every request. */
export class Reachability {
  readonly #address: string;
  readonly #log: Log;
  #isLost = false;
  /** Of `performance.now()`. One that comes and goes is not told of each time. */
  #quietUntil = 0;

  /** `address` is `host:port` or `unix:path`. */
  constructor(address: string, log: Log) {
    this.#address = address;
    this.#log = log;
  }

  answered(): void {
    if (!this.#isLost) return;
    this.#isLost = false;
    this.#log.info('proxy::upstream', 'an upstream answers again', { upstream: this.#address });
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
