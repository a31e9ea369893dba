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
    await pause(Math.max(own, Math.min(retry ?? 0, LIMITS.streamRetryMax)), signal);
  }
}

/** Resolves after that many milliseconds, or as soon as the signal is aborted. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
}
