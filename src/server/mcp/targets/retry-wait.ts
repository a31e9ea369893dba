import { setTimeout } from 'node:timers/promises';
import { LIMITS } from '../../../core/limits.ts';
import type { StreamPosition } from './http-body.ts';

/** Waits between attempts to open an event stream, with exponential back-off. */
export class RetryWait {
  /** Number of consecutive failures. */
  failures = 0;

  failed(): void {
    this.failures += 1;
  }

  succeeded(): void {
    this.failures = 0;
  }

  /**
   * Resolves at the time of the next attempt, or when `signal` is aborted. Waits at least as long as the server requested
   * (`retry`, at most `LIMITS.streamRetryMax`), and at least `LIMITS.retryFirst`, since a server that sends `retry: 0` and
   * ends each stream would otherwise cause a tight loop.
   */
  async next({ retry }: StreamPosition, signal: AbortSignal): Promise<void> {
    const backOff = Math.min(LIMITS.retryFirst * 2 ** Math.max(0, this.failures - 1), LIMITS.retryLast);
    // Jitter of up to a fifth, so that the sessions of a restarted target do not all reconnect at the same moment.
    const own = backOff * (1 + Math.random() / 5);
    const wait = Math.max(own, Math.min(retry ?? 0, LIMITS.streamRetryMax));
    // Rejects when aborted; the caller checks the signal.
    await setTimeout(wait, undefined, { signal }).catch(() => undefined);
  }
}
