import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, messageOf } from '../../../core/errors.ts';
import type { Log } from '../../../core/log.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { embeddedText } from '../embed/embedder.ts';
import { EXTRACTED } from '../sql/vectors.ts';
import type { Store, UnembeddedText } from '../store.ts';
import type { Extractor } from './chat-extractor.ts';

const LOCK = 'extraction';

export interface ExtractionQueueOptions {
  readonly store: Store;
  readonly extractor: Extractor;
  readonly log: Log;
  /** First delay after a failure, in ms. Default: `MEMORY_STORE_LIMITS.embeddingDelay`. */
  readonly delay?: number | undefined;
}

/**
 * Extracts entities and relations from stored texts, in the background. Like that of the embedding queue, its queue is
 * the store: a text without a mark is in it, after a failure of the service and a kill alike. While the service fails, it
 * is called again after a growing delay; nothing else waits for it.
 */
export class ExtractionQueue {
  readonly #options: ExtractionQueueOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #woken = false;
  #failures = 0;

  constructor(options: ExtractionQueueOptions) {
    this.#options = options;
  }

  /** Extracts from what is stored now. Returns immediately. */
  wake(): void {
    if (this.#stop.signal.aborted) return;
    this.#woken = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#woken) this.wake();
    });
  }

  /** Whether texts are being read; not while a failing service is waited for. */
  get isBusy(): boolean {
    return this.#running !== undefined && this.#failures === 0;
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the memory backend is closing'));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { store, log, delay = MEMORY_STORE_LIMITS.embeddingDelay } = this.#options;
    const { signal } = this.#stop;
    while (this.#woken && !signal.aborted) {
      this.#woken = false;
      let wait = delay;
      try {
        const isDone = await store.exclusively(LOCK, () => this.#pass());
        if (isDone === true) continue;
        // Another process extracts from the same store.
      } catch (error) {
        if (signal.aborted) return;
        wait = Math.min(delay * 2 ** this.#failures, MEMORY_STORE_LIMITS.embeddingMaxDelay);
        this.#failures = Math.min(this.#failures + 1, 30);
        log.warn('memory::extraction', 'no entities are extracted until the service works again', {
          problem: messageOf(error),
          retryMs: wait,
        });
      }
      this.#woken = true;
      await sleep(wait, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** All texts in order, one call each. Texts that are refused while others are not are left out for good. */
  async #pass(): Promise<true> {
    const { store } = this.#options;
    const refused: UnembeddedText[] = [];
    let isAccepted = false;
    let problem: unknown;
    for (let after = 0; ; ) {
      const page = { after, limit: MEMORY_STORE_LIMITS.extractionPage };
      const texts = await store.unembedded(EXTRACTED, page);
      for (const text of texts) {
        this.#stop.signal.throwIfAborted();
        try {
          await this.#extract(text);
          isAccepted = true;
          this.#failures = 0;
        } catch (error) {
          if (!(error instanceof AppError) || error.code !== 'upstream_invalid') throw error;
          refused.push(text);
          problem = error;
          // More likely a wrong configuration than so many bad texts.
          if (!isAccepted && refused.length >= MEMORY_STORE_LIMITS.extractionPage) throw error;
        }
        if (isAccepted) await this.#leaveOut(refused.splice(0), problem);
      }
      const last = texts.at(-1);
      if (last === undefined) break;
      after = last.row;
    }
    if (refused.length > 0) throw problem;
    return true;
  }

  /** An entity is what is extracted, so nothing is extracted from it. */
  async #extract(text: UnembeddedText): Promise<void> {
    const { store, extractor } = this.#options;
    if (text.type !== 'entity') {
      const { entities, relations } = await extractor.extract(embeddedText(text), this.#stop.signal);
      if (entities.length > 0 || relations.length > 0)
        await store.changeGraph({
          origin: 'extracted',
          createEntities: entities,
          createRelations: relations,
        });
    }
    await this.#mark([text]);
  }

  async #leaveOut(texts: readonly UnembeddedText[], problem: unknown): Promise<void> {
    if (texts.length === 0) return;
    await this.#mark(texts);
    this.#options.log.warn(
      'memory::extraction',
      'the service refuses a text, whose entities are not extracted',
      {
        texts: texts.length,
        problem: messageOf(problem),
      },
    );
  }

  #mark(texts: readonly UnembeddedText[]): Promise<void> {
    return this.#options.store.putVectors(
      EXTRACTED,
      texts.map(({ row }) => ({ row, embedding: undefined })),
    );
  }
}

/** The store, which wakes the queue after each write that may bring texts. */
export function wakingAfterWrites(store: Store, queue: ExtractionQueue): Store {
  const waking =
    <Args extends unknown[], Result>(write: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const result = await write(...args);
      queue.wake();
      return result;
    };
  return {
    ...store,
    putDocument: waking(store.putDocument),
    putEntities: waking(store.putEntities),
    importBatch: waking(store.importBatch),
  };
}
