import { AppError, messageOf } from '../../../core/errors.ts';
import type { Log } from '../../../core/log.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { BackgroundQueue } from '../background-queue.ts';
import { embeddedText } from '../embed/embedder.ts';
import type { Searched } from '../search/query-vector.ts';
import { EXTRACTED } from '../sql/vectors.ts';
import type { Store, UnembeddedText } from '../store.ts';
import type { Extractor } from './chat-extractor.ts';
import { earlierTurns } from './earlier-turns.ts';

const LOCK = 'extraction';

export interface ExtractionQueueOptions {
  /** What the texts are in, and how earlier turns are searched. */
  readonly searched: Searched;
  readonly extractor: Extractor;
  readonly log: Log;
  /** First delay after a failure, in ms. Default: `MEMORY_STORE_LIMITS.queueDelay`. */
  readonly delay?: number | undefined;
}

/**
 * Extracts entities and relations from stored texts. A text without a mark is in the queue, after a failure of the service
 * and a kill alike. Nothing waits for it.
 */
export class ExtractionQueue {
  readonly #options: ExtractionQueueOptions;
  readonly #store: Store;
  readonly #queue: BackgroundQueue;

  constructor(options: ExtractionQueueOptions) {
    const { log, delay } = options;
    const { store } = options.searched;
    this.#options = options;
    this.#store = store;
    this.#queue = new BackgroundQueue({
      store,
      delay,
      job: {
        lock: LOCK,
        pass: (signal) => this.#pass(signal),
        onFailure: (error, wait) =>
          log.warn('memory::extraction', 'no entities are extracted until the service works again', {
            problem: messageOf(error),
            retryMs: Math.round(wait),
          }),
      },
    });
  }

  /** Extracts from what is stored now. Returns immediately. */
  wake(): void {
    this.#queue.wake();
  }

  /** Whether texts are being read; not while a failing service is waited for. */
  get isBusy(): boolean {
    return this.#queue.isRunning && !this.#queue.isFailing;
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  /** All texts in order, one call each. Texts that are refused while others are not are left out for good. */
  async #pass(signal: AbortSignal): Promise<void> {
    const store = this.#store;
    const refused: UnembeddedText[] = [];
    let isAccepted = false;
    let problem: unknown;
    for (let after = 0; ; ) {
      const page = { after, limit: MEMORY_STORE_LIMITS.extractionPage };
      const texts = await store.unembedded(EXTRACTED, page);
      for (const text of texts) {
        signal.throwIfAborted();
        try {
          await this.#extract(text, signal);
          isAccepted = true;
          this.#queue.worked();
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
  }

  /** An entity is what is extracted, so nothing is extracted from it. */
  async #extract(text: UnembeddedText, signal: AbortSignal): Promise<void> {
    const store = this.#store;
    const { searched, extractor } = this.#options;
    if (text.type !== 'entity') {
      const earlier = text.type === 'chat_message' ? await earlierTurns(searched, text.id, signal) : [];
      const { entities, relations, outdated } = await extractor.extract(
        embeddedText(text),
        earlier.map(({ statement }) => statement),
        signal,
      );
      await store.putExtraction({
        row: text.row,
        entities,
        relations,
        outdated: outdated.flatMap((place) => earlier[place]?.id ?? []),
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
    return this.#store.putVectors(
      EXTRACTED,
      texts.map(({ row }) => ({ row, embedding: undefined })),
    );
  }
}
