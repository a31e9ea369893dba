import { AppError } from '../../../core/errors.ts';
import type { Embedder } from './embedder.ts';
import { createHashEmbedder } from './hash-embedder.ts';
import { createRemoteEmbedder } from './remote-embedder.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that select the embedder, for help texts and manual pages. */
export const EMBEDDER_VARIABLES = {
  EMBEDDINGS_URL:
    'OpenAI-compatible embedding service, such as https://api.openai.com; without it, a built-in offline embedder is used',
  EMBEDDING_MODEL: 'its model (default: text-embedding-3-small)',
  EMBEDDING_API_KEY: 'its key',
  EMBEDDING_SCORE_PIVOT: 'the cosine that becomes score 0.7 (default: 0.4)',
  EMBEDDING_TRUNCATE: 'true: truncate longer vectors of a model without support for "dimensions"',
} as const;

const MODEL = 'text-embedding-3-small';
/** For text-embedding-3-small, as reported by its users; not measured here. */
const PIVOT = 0.4;
/** Characters allowed in a header. */
const KEY = /^[\x21-\x7e]+$/;

function wrong(name: keyof typeof EMBEDDER_VARIABLES, problem: string): AppError {
  return new AppError('bad_request', { message: `${name}: ${problem}` });
}

/** Accepts `https://host`, `https://host/v1` and the full URL. */
function embeddingsUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw wrong('EMBEDDINGS_URL', 'expected an http or https address, such as https://api.openai.com');
  if (url.username !== '' || url.password !== '')
    throw wrong('EMBEDDINGS_URL', 'contains a name or password: set EMBEDDING_API_KEY instead');
  url.hash = '';
  const path = url.pathname.replace(/\/+$/, '');
  if (path.endsWith('/embeddings')) url.pathname = path;
  else url.pathname = /\/v\d+$/.test(path) ? `${path}/embeddings` : `${path}/v1/embeddings`;
  return url;
}

function pivotOf(text: string | undefined): number {
  const pivot = text === undefined ? PIVOT : Number(text);
  if (text?.trim() === '' || !(pivot > 0 && pivot < 1))
    throw wrong('EMBEDDING_SCORE_PIVOT', 'expected a number between 0 and 1, such as 0.4');
  return pivot;
}

function truth(text: string | undefined): boolean {
  if (text === undefined || text === 'false' || text === '0') return false;
  if (text === 'true' || text === '1') return true;
  throw wrong('EMBEDDING_TRUNCATE', 'expected true or false');
}

/**
 * The embedder that the environment selects. Empty variables count as unset.
 *
 * @throws AppError `bad_request` that names the variable
 */
export function embedderFrom(env: Environment): Embedder {
  const value = (name: keyof typeof EMBEDDER_VARIABLES): string | undefined => env[name] || undefined;
  const address = value('EMBEDDINGS_URL');
  if (address === undefined) {
    const useless = (['EMBEDDING_MODEL', 'EMBEDDING_API_KEY'] as const).find((name) => value(name));
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
    pivot: pivotOf(value('EMBEDDING_SCORE_PIVOT')),
    truncate: truth(value('EMBEDDING_TRUNCATE')),
  });
}
