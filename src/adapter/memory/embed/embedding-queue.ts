import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, messageOf } from '../../../core/errors.ts';
import type { Log } from '../../../core/log.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import type { QueueStatus } from '../../../core/memory-model.ts';
import { BackgroundQueue } from '../background-queue.ts';
import { unrelatedCosine } from '../search/unrelated.ts';
import type { Store, UnembeddedText } from '../store.ts';
import { type Embedder, embeddedText, searchable } from './embedder.ts';
import { EmbeddingProgress } from './embedding-progress.ts';

/** Remembers which embedder the stored vectors belong to. */
const NOTE = 'embedder';
const LOCK = 'embedding';

/** The vector of a query, or none while the embedder fails; and a notice for who searches. */
export interface QueryVector {
  readonly vector: Float32Array | undefined;
  readonly unrelated: number;
  readonly hint: string | undefined;
}

const PARTIAL = 'texts that are not embedded yet are found by words only';

const BUSY = 'the embedder is busy, so search again in a moment to search by meaning, too';

function withoutVector(problem: string): QueryVector {
  return { vector: undefined, unrelated: 0, hint: `search is by words only at the moment: ${problem}` };
}

/** What a promise resolves to, or undefined after `ms`. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const enough = new AbortController();
  const late = sleep(ms, undefined, { signal: enough.signal, ref: false }).catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    enough.abort();
  }
}

export interface EmbeddingQueueOptions {
  readonly store: Store;
  readonly embedder: Embedder;
  readonly log: Log;
  /** First delay after a failure, in ms. Default: `MEMORY_STORE_LIMITS.queueDelay`. */
  readonly delay?: number;
  /** How long a search waits for the vector of its query, in ms. Default: `MEMORY_STORE_LIMITS.embeddingQueryWait`. */
  readonly queryWait?: number;
}

/**
 * Embeds stored texts that have no vector yet. Whatever has no vector of this embedder is in the queue, after a failure
 * of the service, a kill or a change of the model alike.
 */
export class EmbeddingQueue {
  readonly #options: EmbeddingQueueOptions;
  readonly #queue: BackgroundQueue;
  /** Texts up to this row have their vectors, so that a new text is found without reading all. */
  #after = 0;
  #failure: { readonly problem: string; readonly retryAt: number } | undefined;
  /** Callers of `settled`; resolved when all is embedded, or when the embedder fails. */
  #settling = Promise.withResolvers<void>();
  #embedded = 0;

  constructor(options: EmbeddingQueueOptions) {
    const { store, embedder, log, delay } = options;
    this.#options = options;
    this.#queue = new BackgroundQueue({
      store,
      delay,
      job: {
        lock: LOCK,
        pass: (signal) => this.#pass(signal),
        onFailure: (error, wait) => {
          this.#failed(error, wait);
          // Rows may have been left out.
          this.#after = 0;
          log.warn('memory::embedding', 'texts are found by words only until they can be embedded', {
            embedder: embedder.id,
            problem: messageOf(error),
            retryMs: Math.round(wait),
          });
          this.#settle();
        },
        onIdle: () => this.#settle(),
      },
    });
  }

  /** Embeds what is stored now. Returns immediately. */
  wake(): void {
    this.#queue.wake();
  }

  /** Wakes the queue, and waits until it is empty, the embedder fails, or `ms` have passed. */
  async settled(ms: number): Promise<void> {
    this.wake();
    if (this.#failure !== undefined) return;
    await within(ms, this.#settling.promise);
  }

  /**
   * The vector of a query. While the embedder fails, it is not called; one that is busy with stored texts is not waited for long. Rejects
   * only with the reason of the signal.
   */
  async query(text: string, signal?: AbortSignal): Promise<QueryVector> {
    const failure = this.#failure;
    if (failure !== undefined && Date.now() < failure.retryAt) return withoutVector(failure.problem);
    const { embedder, queryWait = MEMORY_STORE_LIMITS.embeddingQueryWait } = this.#options;
    try {
      const found = await within(queryWait, this.#vectorOf(text, signal));
      signal?.throwIfAborted();
      if (found === undefined) return withoutVector(BUSY);
      const { vector, unrelated } = found;
      this.#worked();
      const isPartial = this.#queue.isRunning && !embedder.isImmediate;
      return { vector, unrelated, hint: isPartial ? PARTIAL : undefined };
    } catch (error) {
      signal?.throwIfAborted();
      this.#failed(error, this.#queue.failed());
      return withoutVector(messageOf(error));
    }
  }

  async #vectorOf(text: string, signal: AbortSignal | undefined) {
    const { embedder } = this.#options;
    const vector = await embedder.embedQuery(text, signal);
    return { vector, unrelated: await unrelatedCosine(embedder) };
  }

  async status(): Promise<QueueStatus> {
    const failure = this.#failure;
    const { store, embedder } = this.#options;
    const pending = await store.unembeddedCount(embedder.id);
    return {
      state: failure !== undefined ? 'waiting' : this.#queue.isRunning ? 'running' : 'idle',
      pending,
      ...(pending === 0 ? {} : { total: await store.textCount() }),
      ...(failure === undefined
        ? {}
        : { problem: failure.problem, retryAt: new Date(failure.retryAt).toISOString() }),
    };
  }

  /** Whether texts are being embedded; not while a failing embedder is waited for. */
  get isBusy(): boolean {
    return this.#queue.isRunning && this.#failure === undefined;
  }

  /** Texts embedded since the start. */
  get embedded(): number {
    return this.#embedded;
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  #settle(): void {
    this.#settling.resolve();
    this.#settling = Promise.withResolvers();
  }

  /** Called after each success. A success of a query also ends the delay of the queue. */
  #worked(): void {
    if (this.#queue.isFailing)
      this.#options.log.info('memory::embedding', 'the embedder works again', {
        embedder: this.#options.embedder.id,
      });
    this.#failure = undefined;
    this.#queue.worked();
  }

  /** A failure of the store says nothing about the embedder. */
  #failed(error: unknown, wait: number): void {
    if (error instanceof AppError && error.code.startsWith('upstream_'))
      this.#failure = { problem: messageOf(error), retryAt: Date.now() + wait };
  }

  /** Embeds everything that has no vector, page by page; each page is stored before the next is embedded. */
  async #pass(signal: AbortSignal): Promise<void> {
    const { store, embedder, log } = this.#options;
    const note = await store.note(NOTE);
    const progress = new EmbeddingProgress(store, embedder.id, log);
    for (;;) {
      signal.throwIfAborted();
      const page = { after: this.#after, limit: MEMORY_STORE_LIMITS.embeddingPage };
      const texts = await store.unembedded(embedder.id, page);
      const last = texts.at(-1);
      if (last === undefined) break;
      await progress.next(note !== undefined && note !== embedder.id);
      const vectors = await this.#vectors(texts, signal);
      await store.putVectors(
        embedder.id,
        texts.map(({ row }, index) => ({ row, embedding: searchable(vectors[index]) })),
      );
      this.#embedded += texts.length;
      this.#after = last.row;
      this.#worked();
    }
    progress.end();
    if (note !== embedder.id) {
      await store.keepVectorsOf(embedder.id);
      await store.setNote(NOTE, embedder.id);
    }
  }

  /**
   * A service refuses a whole call because of one text. Then each is sent alone, and one that is refused while others
   * are not gets no vector: it is found by its words only.
   */
  async #vectors(texts: readonly UnembeddedText[], signal: AbortSignal): Promise<readonly Float32Array[]> {
    const { embedder, log } = this.#options;
    const inputs = texts.map(embeddedText);
    try {
      return await embedder.embed(inputs, signal);
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'upstream_invalid' || texts.length === 1)
        throw error;
      const vectors: Float32Array[] = [];
      let refused = 0;
      for (const input of inputs) {
        const [vector = new Float32Array()] = await embedder
          .embed([input], signal)
          .catch((alone: unknown) => {
            signal.throwIfAborted();
            if (!(alone instanceof AppError) || alone.code !== 'upstream_invalid') throw alone;
            refused += 1;
            // All of the first ones: the service refuses everything.
            if (refused === vectors.length + 1 && refused >= 3) throw error;
            return [new Float32Array()];
          });
        vectors.push(vector);
      }
      if (refused === texts.length) throw error;
      const what =
        refused > 0
          ? 'texts that the embedder refuses are found by words only'
          : 'the embedder refuses several texts in one call: each is sent alone';
      log.warn('memory::embedding', what, { texts: refused || texts.length, problem: messageOf(error) });
      return vectors;
    }
  }
}
