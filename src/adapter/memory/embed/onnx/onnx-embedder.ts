import { Worker } from 'node:worker_threads';
import { AppError } from '../../../../core/errors.ts';
import { MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import { type Embedder, MODEL_SCORING } from '../embedder.ts';
import type { Answer, Batch } from './worker.ts';

/** Texts per batch: a query waits for the batch that is being computed, so batches are small. */
const BATCH = 8;

interface Waiting {
  readonly texts: readonly string[];
  readonly kind: Batch['kind'];
  readonly resolve: (vectors: readonly Float32Array[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * An embedding model in a folder, computed on this machine in a thread of its own.
 *
 * @param folder export of a sentence-transformer: `model.onnx` or `onnx/model.onnx`, with `tokenizer.json`
 * @throws AppError `bad_request` that names the missing file or package, or what the model needs and we do not support
 */
export async function createOnnxEmbedder(folder: string, pivot: number | undefined): Promise<Embedder> {
  const thread = new ModelThread(folder);
  const { embedder, dimensions } = await thread.loaded;
  return {
    id: embedder,
    scoring: { ...MODEL_SCORING, ...(pivot === undefined ? {} : { pivot }) },
    isImmediate: false,
    async embed(texts, signal, progress) {
      const vectors: Float32Array[] = texts.map(() => new Float32Array(dimensions));
      // Similar lengths together, because a batch is as wide as its longest text.
      const order = [...texts.keys()]
        .filter((index) => texts[index]?.trim() !== '')
        .sort((a, b) => (texts[a] ?? '').length - (texts[b] ?? '').length);
      for (let start = 0; start < order.length; start += BATCH) {
        signal?.throwIfAborted();
        const batch = order.slice(start, start + BATCH);
        const input = batch.map((index) => cut(texts[index] ?? ''));
        const got = await thread.embed(input, 'document');
        for (const [place, index] of batch.entries())
          vectors[index] = got[place] ?? new Float32Array(dimensions);
        progress?.(start + batch.length);
      }
      progress?.(texts.length);
      return vectors;
    },
    async embedQuery(text, signal) {
      signal?.throwIfAborted();
      if (text.trim() === '') return new Float32Array(dimensions);
      const [vector] = await thread.embed([cut(text)], 'query');
      return vector ?? new Float32Array(dimensions);
    },
    close: () => thread.close(),
  };
}

function cut(text: string): string {
  return text.slice(0, MEMORY_STORE_LIMITS.embeddingInputLength).toWellFormed();
}

/** The caller's side of `worker.ts`: one batch at a time, queries before documents. */
class ModelThread {
  readonly loaded: Promise<Extract<Answer, { kind: 'loaded' }>>;
  readonly #worker: Worker;
  readonly #load: {
    resolve: (loaded: Extract<Answer, { kind: 'loaded' }>) => void;
    reject: (error: AppError) => void;
  };
  readonly #queries: Waiting[] = [];
  readonly #documents: Waiting[] = [];
  #current: Waiting | undefined;
  #gone: AppError | undefined;

  constructor(folder: string) {
    const { promise, resolve, reject } = Promise.withResolvers<Extract<Answer, { kind: 'loaded' }>>();
    this.loaded = promise;
    this.#load = { resolve, reject };
    // The name of the bundled file is that in scripts/build-program.mjs.
    const file = import.meta.url.endsWith('.ts') ? './worker.ts' : './onnx-worker.js';
    this.#worker = new Worker(new URL(file, import.meta.url), { workerData: { folder }, name: 'agctl-onnx' });
    this.#worker.on('message', (answer: Answer) => this.#take(answer));
    this.#worker.on('error', (error) => this.#end(failed(String(error))));
    this.#worker.on('exit', () => this.#end(failed('its thread has ended')));
  }

  embed(texts: readonly string[], kind: Batch['kind']): Promise<readonly Float32Array[]> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    const queue = kind === 'query' ? this.#queries : this.#documents;
    if (queue.length >= MEMORY_STORE_LIMITS.embeddingQueue)
      return Promise.reject(new AppError('memory_busy'));
    const { promise, resolve, reject } = Promise.withResolvers<readonly Float32Array[]>();
    queue.push({ texts, kind, resolve, reject });
    this.#next();
    return promise;
  }

  #next(): void {
    if (this.#current !== undefined) return;
    this.#current = this.#queries.shift() ?? this.#documents.shift();
    if (this.#current === undefined) return;
    const { texts, kind } = this.#current;
    this.#worker.postMessage({ texts, kind } satisfies Batch);
  }

  #take(answer: Answer): void {
    if (answer.kind === 'loaded') this.#load.resolve(answer);
    else if (answer.kind === 'refused') {
      this.#load.reject(
        answer.isInput ? new AppError('bad_request', { message: answer.message }) : failed(answer.message),
      );
      void this.#worker.terminate();
    } else {
      const done = this.#current;
      this.#current = undefined;
      if (answer.kind === 'vectors') done?.resolve(answer.vectors);
      else done?.reject(failed(answer.message));
      this.#next();
    }
  }

  #end(error: AppError): void {
    this.#gone ??= error;
    this.#load.reject(this.#gone);
    for (const waiting of [this.#current, ...this.#queries, ...this.#documents]) waiting?.reject(this.#gone);
    this.#current = undefined;
    this.#queries.length = 0;
    this.#documents.length = 0;
  }

  async close(): Promise<void> {
    this.#end(new AppError('memory_unavailable', { message: 'the embedding model is closed' }));
    await this.#worker.terminate();
  }
}

function failed(problem: string): AppError {
  return new AppError('upstream_invalid', { message: `the embedding model failed: ${problem}` });
}
