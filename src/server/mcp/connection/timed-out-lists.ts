import type { Target } from './target.ts';
import { timeoutMessage, withTimeout } from './target-failure.ts';

interface TimedOutList {
  /** The request is still in flight. */
  isPending: boolean;
  /** The late result, for the next caller. */
  arrived?: { readonly items: unknown; readonly at: number };
}

/**
 * List requests to one target that exceeded `LIMITS.targetResponseWait`, by method. Until the result arrives, callers get an error
 * at once instead of waiting, and share one request in flight per method. The late result is kept for the next caller, for
 * at most `LIMITS.listPageTimeout`.
 */
export class TimedOutLists {
  readonly #late = new Map<string, TimedOutList>();
  readonly #target: Pick<Target, 'limits'>;

  constructor(target: Pick<Target, 'limits'>) {
    this.#target = target;
  }

  /**
   * The result of `send`, or a rejection after `LIMITS.targetResponseWait` ms. `onArrival` runs when a list that timed out has
   * arrived after all.
   */
  request<Items>(method: string, send: () => Promise<Items>, onArrival: () => void): Promise<Items> {
    const late = this.#late.get(method);
    if (late === undefined || this.#isExpired(late)) {
      this.#late.delete(method);
      const sent = send();
      return withTimeout(sent, this.#target.limits, () => this.#follow(method, sent, onArrival));
    }
    if (late.arrived !== undefined) {
      this.#late.delete(method);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers request each method with one type
      return Promise.resolve(late.arrived.items as Items);
    }
    if (!late.isPending) this.#follow(method, send(), onArrival);
    return Promise.reject(new Error(timeoutMessage(this.#target.limits.targetResponseWait)));
  }

  /** The target sent `list_changed`: late results are outdated. */
  changed(): void {
    for (const [method, { arrived }] of this.#late) if (arrived !== undefined) this.#late.delete(method);
  }

  #isExpired({ arrived }: TimedOutList): boolean {
    return arrived !== undefined && performance.now() - arrived.at > this.#target.limits.listPageTimeout;
  }

  #follow(method: string, sent: Promise<unknown>, onArrival: () => void): void {
    const late: TimedOutList = { isPending: true };
    this.#late.set(method, late);
    sent.then(
      (items) => {
        // Before the result is stored: it sends `list_changed`, which removes stored results.
        onArrival();
        late.arrived = { items, at: performance.now() };
      },
      () => {
        late.isPending = false;
      },
    );
  }
}
