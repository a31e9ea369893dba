import { AppError } from '../../../core/errors.ts';
import type { Embedder } from './embedder.ts';
import { createHashEmbedder } from './hash-embedder.ts';
import { createRemoteEmbedder } from './remote-embedder.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that choose the embedder, for help texts and manual pages. */
export const EMBEDDER_VARIABLES = {
  EMBEDDINGS_URL:
    'OpenAI-compatible service that embeds, such as https://api.openai.com; without it a built-in embedder is used, offline',
  EMBEDDING_MODEL: 'its model; by default text-embedding-3-small',
  EMBEDDING_API_KEY: 'its key',
  EMBEDDING_SCORE_PIVOT: 'the cosine that counts as similar and is shown as score 0.7; by default 0.4',
  EMBEDDING_TRUNCATE: 'true: cut longer vectors of a model that does not know "dimensions"',
} as const;

const MODEL = 'text-embedding-3-small';
/** Of text-embedding-3-small, as reported by its users; not measured here. */
const PIVOT = 0.4;
/** What may stand in a header. */
const KEY = /^[\x21-\x7e]+$/;

function wrong(name: keyof typeof EMBEDDER_VARIABLES, problem: string): AppError {
  return new AppError('bad_request', { message: `${name}: ${problem}` });
}

/** `https://host`, `https://host/v1` and the whole address are all taken. */
function embeddingsUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw wrong('EMBEDDINGS_URL', 'expected an http or https address, such as https://api.openai.com');
  if (url.username !== '' || url.password !== '')
    throw wrong('EMBEDDINGS_URL', 'holds a name or password: put the key into EMBEDDING_API_KEY');
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
 * The embedder that the environment asks for. Empty variables count as unset.
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
    throw wrong('EMBEDDING_API_KEY', 'holds a space or another character that no key has');
  return createRemoteEmbedder({
    url: embeddingsUrl(address),
    model: value('EMBEDDING_MODEL') ?? MODEL,
    apiKey,
    pivot: pivotOf(value('EMBEDDING_SCORE_PIVOT')),
    truncate: truth(value('EMBEDDING_TRUNCATE')),
  });
}
