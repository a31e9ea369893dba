import { availableParallelism } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { AppError, messageOf } from '../../../../core/errors.ts';
import { loadSentenceModel } from './sentence-model.ts';

// The thread that computes: a batch occupies it for up to a second. One thread, because each would hold a copy of the
// model, and the computation of one batch already uses several cores.

export interface Batch {
  readonly texts: readonly string[];
  readonly kind: 'document' | 'query';
}

export type Answer =
  | { readonly kind: 'loaded'; readonly embedder: string; readonly dimensions: number }
  | { readonly kind: 'refused'; readonly message: string; readonly isInput: boolean }
  | { readonly kind: 'vectors'; readonly vectors: readonly Float32Array[] }
  | { readonly kind: 'failure'; readonly message: string };

const port = parentPort;
if (port === null) throw new Error('onnx/worker.ts runs as a worker thread');
const answer = (message: Answer): void => port.postMessage(message);

/** Cores that one computation uses at most: more make it hardly faster, and the gateway needs some too. */
const CORES = 4;

try {
  const threads = Math.min(CORES, availableParallelism());
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `onnx-embedder.ts` starts this thread with it
  const model = await loadSentenceModel((workerData as { folder: string }).folder, threads);
  answer({ kind: 'loaded', embedder: model.id, dimensions: model.dimensions });
  port.on('message', ({ texts, kind }: Batch) => {
    model.embed(texts, kind).then(
      (vectors) => answer({ kind: 'vectors', vectors }),
      (error: unknown) => answer({ kind: 'failure', message: messageOf(error) }),
    );
  });
} catch (error) {
  answer({ kind: 'refused', message: messageOf(error), isInput: error instanceof AppError });
}
