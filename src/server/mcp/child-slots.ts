import { AppError } from '../../core/errors.ts';
import type { Limits } from '../../core/limits.ts';

/** A session, or a child without a session, that may be ended to make room for another. */
export interface Evictable {
  /** Time from which the session counts as idle, in ms of `performance.now()`. */
  readonly idleFrom: number;
  /** Ends the session. Resolves when its processes have exited. */
  evict(): Promise<void>;
}

/** Returns the session that becomes idle first; undefined if no session can be evicted. */
export type EvictableSource = () => Evictable | undefined;

/**
 * Limits the number of child processes of all sessions (`config.mcp.maxChildren`). At the limit, the longest idle session is
 * evicted for a new child. A recently used session is not evicted until it is idle: otherwise more active clients than slots
 * would keep evicting each other.
 */
export class ChildSlots {
  readonly max: number;
  readonly #limits: Limits;
  readonly #sources = new Set<EvictableSource>();
  #count = 0;
  #waiting = 0;
  /** Waiting callers run one at a time: evicting one session may free several slots. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(max: number, limits: Limits) {
    this.max = max;
    this.#limits = limits;
  }

  /** Number of slots in use. */
  get count(): number {
    return this.#count;
  }

  /** Adds a source of sessions that may be evicted. Returns a function that removes it. */
  addSource(source: EvictableSource): () => void {
    this.#sources.add(source);
    return () => void this.#sources.delete(source);
  }

  /** Takes a slot until `release`. Rejects with `overloaded` (503) if none becomes free within `LIMITS.childSlotTimeout`. */
  async take(): Promise<void> {
    if (this.#waiting === 0 && this.#count < this.max) {
      this.#count += 1;
      return;
    }
    if (this.#waiting >= this.max) throw this.#overloaded();
    this.#waiting += 1;
    const deadline = performance.now() + this.#limits.childSlotTimeout;
    const turn = this.#last.then(() => this.#makeRoom(deadline));
    this.#last = turn.catch(() => undefined);
    try {
      await turn;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Takes a free slot, unless a session waits for one. Returns whether it did. */
  takeFree(): boolean {
    if (this.#waiting > 0 || this.#count >= this.max) return false;
    this.#count += 1;
    return true;
  }

  /** Returns a slot. Called once per successful `take` or `takeFree`. */
  release(): void {
    this.#count -= 1;
  }

  async #makeRoom(deadline: number): Promise<void> {
    while (this.#count >= this.max) {
      const first = this.#firstIdle();
      if (first === undefined || Math.max(first.idleFrom, performance.now()) > deadline)
        throw this.#overloaded();
      const wait = first.idleFrom - performance.now();
      // Checked again after a short wait: the session may be used or end meanwhile.
      if (wait > 0)
        await new Promise((resolve) =>
          setTimeout(resolve, Math.min(wait, this.#limits.childSlotPollInterval)),
        );
      else await first.evict();
    }
    this.#count += 1;
  }

  #firstIdle(): Evictable | undefined {
    let first: Evictable | undefined;
    for (const source of this.#sources) {
      const own = source();
      if (own !== undefined && (first === undefined || own.idleFrom < first.idleFrom)) first = own;
    }
    return first;
  }

  #overloaded(): AppError {
    const processes = this.max === 1 ? '1 child process' : `${this.max} child processes`;
    return new AppError('overloaded', {
      message: `the gateway already runs ${processes} (config.mcp.maxChildren), and no session is idle`,
      headers: ['retry-after', '5'],
    });
  }
}
