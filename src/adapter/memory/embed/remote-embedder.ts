import { setTimeout as sleep } from 'node:timers/promises';
import type { Agent, Dispatcher } from 'undici';
import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { undici } from '../../../core/undici.ts';
import { DIMENSIONS } from '../store.ts';
import { type Embedder, normalise } from './embedder.ts';

export interface RemoteOptions {
  /** Full URL of the `embeddings` endpoint. */
  readonly url: URL;
  readonly model: string;
  /** Sent in the Authorization header and nowhere else. */
  readonly apiKey: string | undefined;
  /** The cosine that becomes score 0.7. */
  readonly pivot: number;
  /** Whether vectors longer than requested are truncated instead of refused. */
  readonly truncate: boolean;
}

/** Statuses after which another attempt may succeed. */
const PASSING = new Set([408, 409, 425, 429, 500, 502, 503, 504]);
const FIRST_WAIT = 200;

/** Advice for statuses that a wrong configuration causes. */
const ADVICE: Readonly<Record<number, string>> = {
  400: ': check EMBEDDING_MODEL, and whether the model takes "dimensions"',
  401: ': check EMBEDDING_API_KEY',
  403: ': check EMBEDDING_API_KEY',
  404: ': check EMBEDDINGS_URL and EMBEDDING_MODEL',
  429: ': its rate limit is exceeded',
};

interface Failure {
  readonly error: AppError;
  /** Delay before another attempt in ms; undefined if another attempt is useless. */
  readonly wait: number | undefined;
}

/**
 * An OpenAI-compatible embedding service. Sends 64 texts per call, one call at a time; each response is validated and
 * normalized to length 1.
 */
export function createRemoteEmbedder(options: RemoteOptions): Embedder {
  const agent = new (undici().Agent)({
    connect: { timeout: LIMITS.connectTimeout },
    headersTimeout: MEMORY_STORE_LIMITS.embeddingTimeout,
    bodyTimeout: MEMORY_STORE_LIMITS.embeddingTimeout,
    maxHeaderSize: LIMITS.headerBytes,
  });
  return {
    id: `${options.model}/${DIMENSIONS}`,
    scoring: { by: 'cosine', pivot: options.pivot },
    async embed(texts, signal, progress) {
      // A service refuses an empty text, whose vector is zero anyway.
      const wanted = [...texts.keys()].filter((index) => (texts[index] ?? '').trim() !== '');
      const vectors: Float32Array[] = texts.map(() => new Float32Array(DIMENSIONS));
      for (let start = 0; start < wanted.length; start += MEMORY_STORE_LIMITS.embeddingInputs) {
        const batch = wanted.slice(start, start + MEMORY_STORE_LIMITS.embeddingInputs);
        const inputs = batch.map((index) =>
          (texts[index] ?? '').slice(0, MEMORY_STORE_LIMITS.embeddingInputLength).toWellFormed(),
        );
        const got = await withRetries(() => call(agent, options, inputs, signal), signal);
        for (const [place, index] of batch.entries())
          vectors[index] = got[place] ?? new Float32Array(DIMENSIONS);
        progress?.((batch.at(-1) ?? 0) + 1);
      }
      progress?.(texts.length);
      return vectors;
    },
    close: () => agent.destroy(),
  };
}

async function withRetries(
  attempt: () => Promise<Float32Array[] | Failure>,
  signal: AbortSignal | undefined,
): Promise<Float32Array[]> {
  for (let tried = 1; ; tried += 1) {
    signal?.throwIfAborted();
    const outcome = await attempt();
    if (Array.isArray(outcome)) return outcome;
    signal?.throwIfAborted();
    if (outcome.wait === undefined || tried >= MEMORY_STORE_LIMITS.embeddingAttempts) throw outcome.error;
    const backoff = FIRST_WAIT * 2 ** (tried - 1) * (1 + Math.random());
    await sleep(Math.max(outcome.wait, backoff), undefined, signal === undefined ? {} : { signal });
  }
}

async function call(
  agent: Agent,
  options: RemoteOptions,
  input: readonly string[],
  signal: AbortSignal | undefined,
): Promise<Float32Array[] | Failure> {
  const { url, model, apiKey, truncate } = options;
  const deadline = AbortSignal.timeout(MEMORY_STORE_LIMITS.embeddingTimeout);
  const headers = ['content-type', 'application/json', 'accept', 'application/json'];
  if (apiKey !== undefined) headers.push('authorization', `Bearer ${apiKey}`);
  try {
    const response = await agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST',
      headers,
      body: JSON.stringify({ model, input, dimensions: DIMENSIONS, encoding_format: 'float' }),
      signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
    });
    if (response.statusCode !== 200) return await refused(url, response);
    const body = await read(response.body);
    if (body === undefined)
      return final(url, `sent more than ${MEMORY_STORE_LIMITS.embeddingResponseBytes} bytes`);
    const vectors = vectorsIn(body, input.length, truncate);
    return Array.isArray(vectors) ? vectors : final(url, vectors.problem);
  } catch (cause) {
    return unanswered(url, cause, deadline.aborted);
  }
}

async function refused(url: URL, { statusCode, headers, body }: Dispatcher.ResponseData): Promise<Failure> {
  await body.dump({ limit: LIMITS.headerBytes }).catch(() => undefined);
  const failure = final(url, `answered ${statusCode}${ADVICE[statusCode] ?? ''}`);
  if (!PASSING.has(statusCode)) return failure;
  const wait = Number(headers['retry-after'] ?? 0) * 1000;
  if (!(wait >= 0)) return { ...failure, wait: 0 };
  return wait > MEMORY_STORE_LIMITS.embeddingRetryAfter ? failure : { ...failure, wait };
}

function final(url: URL, what: string): Failure {
  const message = `the embedding service at ${url.host} ${what}`;
  return { error: new AppError('upstream_invalid', { message }), wait: undefined };
}

function unanswered(url: URL, cause: unknown, isLate: boolean): Failure {
  const { code } = cause as { code?: unknown };
  const isSlow = isLate || code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT';
  const why = isSlow
    ? `did not answer within ${MEMORY_STORE_LIMITS.embeddingTimeout / 1000} s`
    : `cannot be reached${typeof code === 'string' ? ` (${code})` : ''}: check EMBEDDINGS_URL`;
  const message = `the embedding service at ${url.host} ${why}`;
  return {
    error: new AppError(isSlow ? 'upstream_timeout' : 'upstream_unreachable', { message, cause }),
    wait: 0,
  };
}

/** The whole body, or undefined if it is too long. */
async function read(body: Dispatcher.ResponseData['body']): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > MEMORY_STORE_LIMITS.embeddingResponseBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

interface Problem {
  /** The problem as a predicate of "the embedding service at HOST". */
  readonly problem: string;
}

/**
 * Parses and validates the vectors of a response, in the order of the inputs, normalized to length 1.
 *
 * @param truncate whether longer vectors are truncated; only models trained for that keep their meaning
 */
function vectorsIn(body: string, count: number, truncate: boolean): Float32Array[] | Problem {
  const data = dataOf(body);
  if (data === undefined) return { problem: 'did not send a list of embeddings' };
  if (data.length !== count) return { problem: `sent ${data.length} embeddings for ${count} texts` };
  const vectors: (Float32Array | undefined)[] = Array.from({ length: count }, () => undefined);
  for (const [place, item] of data.entries()) {
    const { embedding, index = place } = (item ?? {}) as { embedding?: unknown; index?: unknown };
    const vector = vectorOf(embedding, truncate);
    if ('problem' in vector) return vector;
    if (typeof index !== 'number' || !(index in vectors) || vectors[index] !== undefined)
      return { problem: 'sent embeddings with wrong indexes' };
    vectors[index] = vector;
  }
  return vectors as Float32Array[];
}

function dataOf(body: string): unknown[] | undefined {
  try {
    const { data } = JSON.parse(body) as { data?: unknown };
    return Array.isArray(data) ? data : undefined;
  } catch {
    return undefined;
  }
}

function vectorOf(embedding: unknown, truncate: boolean): Float32Array | Problem {
  if (!Array.isArray(embedding)) return { problem: 'sent an embedding that is not a list of numbers' };
  if (embedding.length < DIMENSIONS || (embedding.length > DIMENSIONS && !truncate))
    return {
      problem:
        `sent embeddings of ${embedding.length} numbers instead of ${DIMENSIONS}` +
        (embedding.length < DIMENSIONS
          ? ': use a model with that many'
          : ': use a model that supports "dimensions", or set EMBEDDING_TRUNCATE=true if its vectors may be truncated'),
    };
  const numbers = embedding.slice(0, DIMENSIONS) as unknown[];
  if (!numbers.every((value) => typeof value === 'number' && Number.isFinite(value)))
    return { problem: 'sent an embedding that contains something other than numbers' };
  // In double precision, because very large and very small numbers exceed the range of Float32.
  const length = Math.hypot(...(numbers as number[]));
  if (!(length > 0) || !Number.isFinite(length)) return { problem: 'sent an embedding of length zero' };
  return normalise(Float32Array.from(numbers as number[], (value) => value / length));
}
