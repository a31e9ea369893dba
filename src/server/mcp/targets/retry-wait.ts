import { setTimeout } from 'node:timers/promises';
import { LIMITS } from '../../../core/limits.ts';
import type { StreamPosition } from './http-body.ts';

/** Waits between two attempts to open an event stream: longer after each failure in a row. */
export class RetryWait {
  /** Attempts in a row that failed. */
  failures = 0;

  failed(): void {
    this.failures += 1;
  }

  succeeded(): void {
    this.failures = 0;
  }

  /**
   * Resolves when it is time for the next attempt: never before the time that the server asked for (`retry`), and never at
   * once, because a server that says `retry: 0` and ends each stream would be asked in a tight loop.
   */
  async next({ retry }: StreamPosition, signal: AbortSignal): Promise<void> {
    const backOff = Math.min(LIMITS.retryFirst * 2 ** Math.max(0, this.failures - 1), LIMITS.retryLast);
    // Up to a fifth longer, so that the sessions of a target that restarts do not all return at the same moment.
    const own = backOff * (1 + Math.random() / 5);
    const wait = Math.max(own, Math.min(retry ?? 0, LIMITS.streamRetryMax));
    // Rejects when it is aborted; the caller looks at the signal.
    await setTimeout(wait, undefined, { signal }).catch(() => undefined);
  }
}
