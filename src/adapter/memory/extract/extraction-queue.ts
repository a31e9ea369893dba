import { AppError, messageOf } from '../../../core/errors.ts';
import type { Log } from '../../../core/log.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import type { QueueStatus } from '../../../core/memory-model.ts';
import { BackgroundQueue } from '../background-queue.ts';
import { embeddedText } from '../embed/embedder.ts';
import type { Searched } from '../search/query-vector.ts';
import { EXTRACTION } from '../sql/vectors.ts';
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

/** Whether the service works, but not with this text. */
function isRefusal(error: unknown): boolean {
  return error instanceof AppError && error.code === 'upstream_invalid';
}

/**
 * Extracts entities and relations from stored texts. A text without a mark is in the queue, after a failure of the service
 * and a kill alike. Nothing waits for it.
 */
export class ExtractionQueue {
  readonly #options: ExtractionQueueOptions;
  readonly #store: Store;
  readonly #queue: BackgroundQueue;
  /** Row of the last text that was refused. */
  #probed = 0;
  #failure: { readonly problem: string; readonly retryAt: number } | undefined;

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
        onFailure: (error, wait) => {
          const problem = messageOf(error);
          this.#failure = { problem, retryAt: Date.now() + wait };
          log.warn('memory::extraction', 'no entities are extracted until the service works again', {
            problem,
            retryMs: Math.round(wait),
          });
        },
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

  async status(): Promise<QueueStatus> {
    const failure = this.#queue.isFailing ? this.#failure : undefined;
    return {
      state: failure !== undefined ? 'waiting' : this.#queue.isRunning ? 'running' : 'idle',
      pending: await this.#store.unembeddedCount(EXTRACTION),
      ...(failure && { problem: failure.problem, retryAt: new Date(failure.retryAt).toISOString() }),
    };
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  /** All texts in order, one call each. Texts that are refused while others are not are left out for good. */
  async #pass(signal: AbortSignal): Promise<void> {
    const store = this.#store;
    const refused: UnembeddedText[] = [];
    let isAccepted = this.#queue.isFailing && (await this.#probe(signal));
    let problem: unknown;
    for (let after = 0; ; ) {
      const page = { after, limit: MEMORY_STORE_LIMITS.extractionPage };
      const texts = await store.unembedded(EXTRACTION, page);
      for (const text of texts) {
        signal.throwIfAborted();
        // An entity is what is extracted, so nothing is extracted from it.
        if (text.type === 'entity') {
          await this.#mark(text);
          continue;
        }
        try {
          await this.#extract(text, signal);
          isAccepted = true;
        } catch (error) {
          if (!isRefusal(error)) throw error;
          refused.push(text);
          problem = error;
          this.#probed = text.row;
          // More likely a wrong configuration than so many bad texts.
          if (!isAccepted && refused.length >= MEMORY_STORE_LIMITS.extractionRefused) throw error;
        }
        if (isAccepted) for (const one of refused.splice(0)) await this.#again(one, signal);
      }
      const last = texts.at(-1);
      if (last === undefined) break;
      after = last.row;
    }
    if (refused.length > 0) throw problem;
  }

  /**
   * After a failure: one call, for the text after the last that was refused, because each call costs and one text may be what the service
   * refuses. Returns whether there was a text.
   */
  async #probe(signal: AbortSignal): Promise<boolean> {
    const next = (after: number) =>
      this.#store.unembedded(EXTRACTION, { after, limit: MEMORY_STORE_LIMITS.extractionPage });
    const texts = [...(await next(this.#probed)), ...(await next(0))];
    const text = texts.find(({ type }) => type !== 'entity');
    if (text === undefined) return false;
    this.#probed = text.row;
    await this.#extract(text, signal);
    return true;
  }

  async #extract(text: UnembeddedText, signal: AbortSignal): Promise<void> {
    const { searched, extractor } = this.#options;
    const earlier = text.type === 'chat_message' ? await earlierTurns(searched, text.id, signal) : [];
    const { entities, relations, outdated } = await extractor.extract(
      embeddedText(text),
      earlier.map(({ statement }) => statement),
      signal,
    );
    this.#queue.worked();
    await this.#store.putExtraction({
      row: text.row,
      entities,
      relations,
      outdated: outdated.flatMap((place) => earlier[place]?.id ?? []),
    });
    await this.#mark(text);
  }

  /** Most models answer something else the next time (mem0ai/mem0#4540). A text that is refused twice is left out. */
  async #again(text: UnembeddedText, signal: AbortSignal): Promise<void> {
    try {
      await this.#extract(text, signal);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      await this.#mark(text);
      this.#options.log.warn(
        'memory::extraction',
        'the service refuses a text twice, whose entities are not extracted',
        { text: text.id, problem: messageOf(error) },
      );
    }
  }

  #mark({ row }: UnembeddedText): Promise<void> {
    return this.#store.putVectors(EXTRACTION, [{ row, embedding: undefined }]);
  }
}
