import { setTimeout as sleep } from 'node:timers/promises';
import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import type { Store } from './store.ts';

/** Failures that are counted: beyond, the delay would not grow any more. */
const COUNTED_FAILURES = 30;

/** What a queue does with the texts of a store. */
export interface Job {
  /** Only one process does it on a store at a time. */
  readonly lock: string;
  /** Does everything that is left. A failure repeats it after a delay. */
  readonly pass: (signal: AbortSignal) => Promise<void>;
  /** Called after a failed pass, before the delay of `wait` ms. */
  readonly onFailure: (error: unknown, wait: number) => void;
  /** Called when nothing is left, and when the queue is closed. */
  readonly onIdle?: () => void;
}

export interface BackgroundQueueOptions {
  readonly store: Pick<Store, 'exclusively'>;
  readonly job: Job;
  /** First delay after a failure, in ms. Default: `MEMORY_STORE_LIMITS.queueDelay`. */
  readonly delay?: number | undefined;
}

/**
 * Does a job in the background whenever it is woken. The job finds what is left in the store, so that nothing is lost by a
 * failure or a kill. After a failure it is repeated with a growing delay.
 */
export class BackgroundQueue {
  readonly #store: Pick<Store, 'exclusively'>;
  readonly #job: Job;
  readonly #delay: number;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #woken = false;
  #failures = 0;
  /** Ends the delay after a failure. */
  #retry: AbortController | undefined;

  constructor({ store, job, delay = MEMORY_STORE_LIMITS.queueDelay }: BackgroundQueueOptions) {
    this.#store = store;
    this.#job = job;
    this.#delay = delay;
  }

  /** Does what is left now. Returns immediately. */
  wake(): void {
    if (this.#stop.signal.aborted) return;
    this.#woken = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#woken) this.wake();
    });
  }

  /** Whether something is left, also while a failing service is waited for. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Whether the last attempt failed. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** The service that the job uses has worked: a delay ends, and the next failure gets the first delay again. */
  worked(): void {
    this.#failures = 0;
    this.#retry?.abort();
  }

  /** Counts a failure. Returns the delay before the next attempt, in ms: doubled each time, up to a quarter less. */
  failed(): number {
    const longest = Math.min(this.#delay * 2 ** this.#failures, MEMORY_STORE_LIMITS.queueMaxDelay);
    this.#failures = Math.min(this.#failures + 1, COUNTED_FAILURES);
    return longest * (1 - Math.random() / 4);
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the memory backend is closing'));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (this.#woken && !signal.aborted) {
      this.#woken = false;
      const wait = await this.#attempt();
      if (wait === undefined) continue;
      this.#woken = true;
      this.#retry = new AbortController();
      const ended = AbortSignal.any([this.#retry.signal, signal]);
      await sleep(wait, undefined, { signal: ended }).catch(() => undefined);
      this.#retry = undefined;
    }
    this.#job.onIdle?.();
  }

  /** Returns undefined, or the delay before the next attempt, in ms. */
  async #attempt(): Promise<number | undefined> {
    const { signal } = this.#stop;
    try {
      const isDone = await this.#store.exclusively(this.#job.lock, async () => {
        await this.#job.pass(signal);
        return true;
      });
      // Otherwise, another process does it on the same store.
      return isDone === undefined ? this.#delay : undefined;
    } catch (error) {
      if (signal.aborted) return undefined;
      const wait = this.failed();
      this.#job.onFailure(error, wait);
      return wait;
    }
  }
}

type Write =
  | 'putDocument'
  | 'putEntities'
  | 'changeGraph'
  | 'putExtraction'
  | 'importBatch'
  | 'erase'
  | 'expire';

/** The store, which wakes a queue after each of these writes, because it may leave something to do. */
export function wakingAfter(store: Store, writes: readonly Write[], wake: () => void): Store {
  const waking = writes.map((name) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passes on the arguments that it gets
    const write = store[name] as (...args: readonly unknown[]) => Promise<unknown>;
    return [
      name,
      async (...args: readonly unknown[]) => {
        const result = await write(...args);
        wake();
        return result;
      },
    ];
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a function for each name
  return { ...store, ...(Object.fromEntries(waking) as Pick<Store, Write>) };
}
