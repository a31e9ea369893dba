import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';

export interface BatchQueueOptions<Item> {
  /** Plural of what is sent, for the log. */
  readonly what: string;
  /** The target of the log. */
  readonly target: string;
  /** Host and port of what takes them, for the log; undefined if it is one of several. */
  readonly collector?: string | undefined;
  readonly log: Log;
  /** Sends a batch. Rejects if it was lost; must settle within `LIMITS.spanExportTimeout`. */
  send(batch: readonly Item[]): Promise<void>;
  /** Called with the number of lost items. */
  lost?(count: number): void;
}

/**
 * Items for a collector, sent in batches, one at a time. A slow or unreachable collector loses items, which are counted and
 * reported, but never delays requests or grows memory.
 */
export class BatchQueue<Item> {
  readonly #options: BatchQueueOptions<Item>;
  #items: Item[] = [];
  #inFlight = 0;
  #sending: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #lastWarning = Number.NEGATIVE_INFINITY;
  /** Items lost because the queue was full or the collector did not take them. */
  dropped = 0;

  constructor(options: BatchQueueOptions<Item>) {
    this.#options = options;
  }

  /** Items waiting, without those being sent. At most `LIMITS.spanQueue`. */
  get queued(): number {
    return this.#items.length;
  }

  add(item: Item): void {
    if (this.#isClosed || this.#items.length >= LIMITS.spanQueue) {
      this.lost(1, 'the queue is full');
      return;
    }
    this.#items.push(item);
    this.#schedule();
  }

  /** Sends what is queued. */
  async flush(): Promise<void> {
    while (this.#items.length > 0 || this.#sending !== undefined) await (this.#sending ?? this.#send());
  }

  /** Sends what is queued, for at most `LIMITS.spanFlush` ms. Items left after that are counted as lost. */
  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LIMITS.spanFlush);
    });
    await Promise.race([this.flush(), late]);
    clearTimeout(timer);
    clearTimeout(this.#timer);
    const left = this.#items.length + this.#inFlight;
    if (left > 0) this.lost(left, 'the export did not finish before the shutdown timeout');
    this.#items = [];
    this.#isClosed = true;
  }

  /** Counts lost items, and reports them at most once per `LIMITS.spanWarningInterval` ms. */
  lost(count: number, problem: string): void {
    // Those in flight at shutdown are already counted.
    if (this.#isClosed) return;
    const { what, target, collector, log, lost } = this.#options;
    this.dropped += count;
    lost?.(count);
    const now = performance.now();
    if (now - this.#lastWarning < LIMITS.spanWarningInterval) return;
    this.#lastWarning = now;
    log.warn(target, `${what} were lost`, { lost: this.dropped, collector, problem });
  }

  #schedule(): void {
    if (this.#sending !== undefined) return;
    if (this.#items.length >= LIMITS.spanBatch) void this.#send();
    else if (this.#items.length > 0)
      this.#timer ??= setTimeout(() => void this.#send(), LIMITS.spanBatchTime).unref();
  }

  #send(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#items.splice(0, LIMITS.spanBatch);
    this.#inFlight = batch.length;
    this.#sending = this.#options
      .send(batch)
      .catch((error: unknown) => this.lost(batch.length, messageOf(error)))
      .then(() => {
        this.#inFlight = 0;
        this.#sending = undefined;
        if (!this.#isClosed) this.#schedule();
      });
    return this.#sending;
  }
}
