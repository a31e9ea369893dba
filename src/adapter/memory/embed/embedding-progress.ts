import type { Log } from '../../../core/log.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import type { Store } from '../store.ts';

/** Logs how far the embedding of many texts has come: at once after a change of the embedder, otherwise if it takes long. */
export class EmbeddingProgress {
  readonly #store: Pick<Store, 'unembeddedCount' | 'textCount'>;
  readonly #embedder: string;
  readonly #log: Log;
  readonly #startedAt = Date.now();
  #saidAt = Date.now();
  #hasSaid = false;

  constructor(store: Pick<Store, 'unembeddedCount' | 'textCount'>, embedder: string, log: Log) {
    this.#store = store;
    this.#embedder = embedder;
    this.#log = log;
  }

  /** Called before each page of texts. */
  async next(isAgain: boolean): Promise<void> {
    const isFirst = isAgain && !this.#hasSaid;
    if (!isFirst && Date.now() - this.#saidAt < MEMORY_STORE_LIMITS.embeddingReport) return;
    const [pending, total] = [
      await this.#store.unembeddedCount(this.#embedder),
      await this.#store.textCount(),
    ];
    this.#say(isAgain ? 'embedding all texts again, with another embedder' : 'embedding texts', {
      done: Math.max(0, total - pending),
      total,
    });
  }

  /** Called when no text is left. */
  end(): void {
    if (this.#hasSaid) this.#say('all texts are embedded', { ms: Date.now() - this.#startedAt });
  }

  #say(message: string, fields: Readonly<Record<string, number>>): void {
    this.#hasSaid = true;
    this.#saidAt = Date.now();
    this.#log.info('memory::embedding', message, { embedder: this.#embedder, ...fields });
  }
}
