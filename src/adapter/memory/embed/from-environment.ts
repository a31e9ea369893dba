import { AppError } from '../../../core/errors.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import type { Embedder } from './embedder.ts';
import { createHashEmbedder } from './hash-embedder.ts';
import { addedModel, isModelName, modelsFolder } from './models/model-store.ts';
import { createRemoteEmbedder, OLLAMA_PATH } from './remote-embedder.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that select the embedder, for help texts and manual pages. */
const EMBEDDER_VARIABLES = {
  MEMORY_EMBEDDER:
    'builtin (default), the name of a model that `agctl memory model add` has added, or onnx:FOLDER for one in a folder, as with --embedder',
  MEMORY_MODELS_DIR: 'folder of added models (default: ~/.local/share/agctl/models)',
  EMBEDDINGS_URL:
    'OpenAI-compatible embedding service, such as https://api.openai.com, or http://localhost:11434/api/embed for Ollama',
  EMBEDDING_MODEL: 'its model (default: text-embedding-3-small)',
  EMBEDDING_API_KEY: 'its key',
  EMBEDDING_DIMENSIONS:
    'length of the vectors that the service is asked for (default: that of the model); the model must support it',
  EMBEDDING_SCORE_PIVOT:
    'the value of words and vectors together that becomes score 0.7 (default: 0.18; see docs/memory.md)',
  EMBEDDING_TRUNCATE: 'true: truncate longer vectors, if the model was trained for that (Matryoshka)',
} as const;

const MODEL = 'text-embedding-3-small';
const ONNX = 'onnx:';
/** Characters allowed in a header. */
const KEY = /^[\x21-\x7e]+$/;

function wrong(name: keyof typeof EMBEDDER_VARIABLES, problem: string): AppError {
  return new AppError('bad_request', { message: `${name}: ${problem}` });
}

/** Accepts `https://host`, `https://host/v1` and the full URL; `/api/embed` is that of Ollama. */
function embeddingsUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw wrong('EMBEDDINGS_URL', 'expected an http or https address, such as https://api.openai.com');
  if (url.username !== '' || url.password !== '')
    throw wrong('EMBEDDINGS_URL', 'contains a name or password: set EMBEDDING_API_KEY instead');
  url.hash = '';
  const path = url.pathname.replace(/(?<!\/)\/+$/, '');
  if (path.endsWith('/embeddings') || path.endsWith(OLLAMA_PATH)) url.pathname = path;
  else url.pathname = /\/v\d+$/.test(path) ? `${path}/embeddings` : `${path}/v1/embeddings`;
  return url;
}

function pivotOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const pivot = Number(text);
  if (text.trim() === '' || !(pivot > 0 && pivot < 1))
    throw wrong('EMBEDDING_SCORE_PIVOT', 'expected a number between 0 and 1, such as 0.2');
  return pivot;
}

function dimensionsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const dimensions = Number(text);
  if (!/^\d+$/.test(text) || dimensions < 1 || dimensions > MEMORY_STORE_LIMITS.dimensions)
    throw wrong(
      'EMBEDDING_DIMENSIONS',
      `expected a whole number from 1 to ${MEMORY_STORE_LIMITS.dimensions}, such as 256`,
    );
  return dimensions;
}

function truth(text: string | undefined): boolean {
  if (text === undefined || text === 'false' || text === '0') return false;
  if (text === 'true' || text === '1') return true;
  throw wrong('EMBEDDING_TRUNCATE', 'expected true or false');
}

/** The folder of the model that `kind` names. */
function folderOf(kind: string, env: Environment): string {
  if (isModelName(kind)) return addedModel(modelsFolder(env), kind);
  if (kind.startsWith(ONNX) && kind.length > ONNX.length) return kind.slice(ONNX.length);
  throw wrong(
    'MEMORY_EMBEDDER',
    `expected builtin, the name of a model that agctl memory model add has added, or onnx:FOLDER, not ${JSON.stringify(kind.slice(0, 100))}`,
  );
}

/**
 * The embedder that `option` or else the environment selects. Empty variables count as unset.
 *
 * @param option value of `--embedder`
 * @throws AppError `bad_request` that names the variable, or the file that a model lacks
 */
export async function embedderFrom(env: Environment, option?: string): Promise<Embedder> {
  const value = (name: keyof typeof EMBEDDER_VARIABLES): string | undefined => env[name] || undefined;
  const kind = option ?? value('MEMORY_EMBEDDER');
  const address = value('EMBEDDINGS_URL');
  const pivot = pivotOf(value('EMBEDDING_SCORE_PIVOT'));
  if (kind !== undefined && address !== undefined)
    throw wrong('EMBEDDINGS_URL', `is set, but the embedder is ${kind}: set one of the two`);
  if (kind !== undefined && kind !== 'builtin') {
    // Loaded only when it is used.
    const { createOnnxEmbedder } = await import('./onnx/onnx-embedder.ts');
    return createOnnxEmbedder(folderOf(kind, env), pivot);
  }
  if (address === undefined) {
    const useless = (['EMBEDDING_MODEL', 'EMBEDDING_API_KEY', 'EMBEDDING_DIMENSIONS'] as const).find((name) =>
      value(name),
    );
    if (useless !== undefined) throw wrong(useless, 'is set, but EMBEDDINGS_URL is not: set both or neither');
    return createHashEmbedder();
  }
  const apiKey = value('EMBEDDING_API_KEY');
  if (apiKey !== undefined && !KEY.test(apiKey))
    throw wrong('EMBEDDING_API_KEY', 'contains a space or another character that a key cannot have');
  return createRemoteEmbedder({
    url: embeddingsUrl(address),
    model: value('EMBEDDING_MODEL') ?? MODEL,
    apiKey,
    pivot,
    dimensions: dimensionsOf(value('EMBEDDING_DIMENSIONS')),
    truncate: truth(value('EMBEDDING_TRUNCATE')),
  });
}
