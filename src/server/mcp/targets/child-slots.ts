import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';

/** A session that may be ended to make room for another. */
export interface Evictable {
  /** From when on it counts as idle, on the clock of `performance.now()`. */
  readonly idleFrom: number;
  /** Ends it; resolves when its processes are gone. */
  evict(): Promise<void>;
}

/** Gives the session that is, or will be, idle first. */
export type EvictableSource = () => Evictable | undefined;

/**
 * The places for child processes, over all sessions. At the limit, the session that was idle for longest is evicted for a
 * new child. One that was used a moment ago is waited for instead: with more active clients than places, they would evict
 * each other for ever.
 */
export class ChildSlots {
  readonly max: number;
  readonly #sources = new Set<EvictableSource>();
  #count = 0;
  #waiting = 0;
  /** One at a time makes room: each would end a session, where one session may have several children. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(max: number) {
    this.max = max;
  }

  get count(): number {
    return this.#count;
  }

  /** Adds sessions that may be evicted. Returns what removes them again. */
  addSource(source: EvictableSource): () => void {
    this.#sources.add(source);
    return () => void this.#sources.delete(source);
  }

  /** Takes a place, which `release` gives back. Rejects with `overloaded` when there is none in time. */
  async take(): Promise<void> {
    if (this.#waiting === 0 && this.#count < this.max) {
      this.#count += 1;
      return;
    }
    if (this.#waiting >= this.max) throw this.#refused();
    this.#waiting += 1;
    const deadline = performance.now() + LIMITS.childSlotWait;
    const turn = this.#last.then(() => this.#makeRoom(deadline));
    this.#last = turn.catch(() => undefined);
    try {
      await turn;
    } finally {
      this.#waiting -= 1;
    }
  }

  release(): void {
    this.#count -= 1;
  }

  async #makeRoom(deadline: number): Promise<void> {
    while (this.#count >= this.max) {
      const first = this.#firstIdle();
      if (first === undefined || Math.max(first.idleFrom, performance.now()) > deadline)
        throw this.#refused();
      const wait = first.idleFrom - performance.now();
      // It may be used again meanwhile, or end by itself.
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(wait, LIMITS.childSlotLook)));
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

  #refused(): AppError {
    const processes = this.max === 1 ? '1 child process' : `${this.max} child processes`;
    return new AppError('overloaded', {
      message: `the gateway already runs ${processes} (config.mcp.maxChildren), and no session is idle`,
      headers: ['retry-after', '5'],
    });
  }
}
