// Queued ingest and re-embedding in the loop of kill-harness.ts: what the victim does and finds, and what must be there.
import { type Embedder, MODEL_SCORING } from '../../../src/adapter/memory/embed/embedder.ts';
import { EmbeddingQueue } from '../../../src/adapter/memory/embed/embedding-queue.ts';
import { createHashEmbedder } from '../../../src/adapter/memory/embed/hash-embedder.ts';
import type { Store } from '../../../src/adapter/memory/store.ts';
import type { Log } from '../../../src/core/log.ts';
import { documentOf } from './records.ts';

/** Pages, which are replaced again and again while their earlier texts are embedded. */
const PAGES = 40;

export interface PageLine {
  readonly kind: 'page';
  readonly page: number;
  readonly version: number;
}

export interface FoundTexts {
  /** Version and number of chunks by page. */
  readonly pages: Readonly<Record<string, readonly [version: number, chunks: number]>>;
  /** Chunks found by word, those with a vector of the model, and those that are still to be embedded. */
  readonly words: number;
  readonly vectors: number;
  readonly pending: number;
}

/** Stores texts that are embedded later, like those of a model in a service, by a model of this name. */
export function textsOf(store: Store, model: string, log: Log) {
  const inner = createHashEmbedder();
  const embedder: Embedder = { ...inner, id: model, isImmediate: false, scoring: MODEL_SCORING };
  const queue = new EmbeddingQueue({ store, embedder, log });
  return {
    async write(start: number, say: (line: PageLine) => void): Promise<never> {
      queue.wake();
      for (let version = start; ; version++) {
        const page = version % PAGES;
        const texts = Array.from({ length: 1 + (version % 3) }, (_, part) => `ocelot ${version} ${part}`);
        const document = documentOf(`${page}`, texts, { origin: 'ingest', hash: `${version}` });
        const entities = document.entities.map((one) => ({ ...one, embedding: undefined }));
        await store.putDocument({ ...document, embedder: model, entities });
        say({ kind: 'page', page, version });
        queue.wake();
      }
    },
    async found(): Promise<FoundTexts> {
      const records = await store.documents('ingest');
      const near = await store.nearest(await inner.embedQuery('ocelot'), model, { limit: 5000 });
      return {
        pages: Object.fromEntries(records.map(({ key, hash, chunks }) => [key, [Number(hash), chunks]])),
        words: (await store.lexical(['ocelot'], { limit: 5000 })).length,
        vectors: near.length,
        pending: await store.unembeddedCount(model),
      };
    },
    /** Until nothing is left to embed. */
    settle: () => queue.settled(60_000),
    close: () => queue.close(),
  };
}

/** What was acknowledged of pages. */
export class ExpectedTexts {
  readonly #versions = new Map<string, number>();

  take({ page, version }: PageLine): void {
    this.#versions.set(`${page}`, version);
  }

  /** No acknowledged version is lost, and every chunk has a vector or is still in the queue. */
  problems({ pages, words, vectors, pending }: FoundTexts, isSettled: boolean): string[] {
    const problems: string[] = [];
    for (const [page, version] of this.#versions) {
      const found = pages[page]?.[0] ?? -1;
      if (found < version) problems.push(`version ${version} of page ${page} is lost, ${found} is there`);
    }
    const promised = Object.values(pages).reduce((sum, [, chunks]) => sum + chunks, 0);
    if (words !== promised) problems.push(`${promised} chunks of pages, ${words} found by word`);
    if (vectors + pending !== words)
      problems.push(`${words} texts have ${vectors} vectors, and ${pending} are still to be embedded`);
    if (isSettled && pending > 0) problems.push(`${pending} texts are never embedded`);
    return problems;
  }
}
