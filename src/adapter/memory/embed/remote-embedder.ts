import { setTimeout as sleep } from 'node:timers/promises';
import type { Agent, Dispatcher } from 'undici';
import { AppError } from '../../../core/errors.ts';
import { errorCode, jsonIn, membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { undici } from '../../../core/undici.ts';
import { type Embedder, MODEL_SCORING, normalise, type Scoring } from './embedder.ts';

export interface RemoteOptions {
  /** Full URL of the endpoint: `…/embeddings`, or `…/api/embed` of Ollama. */
  readonly url: URL;
  readonly model: string;
  /** Sent in the Authorization header and nowhere else. */
  readonly apiKey: string | undefined;
  /** The fused value that becomes score 0.7. */
  readonly pivot?: number | undefined;
  /** Length that the service is asked for; undefined for that of the model. */
  readonly dimensions: number | undefined;
  /** Whether vectors longer than requested are truncated instead of refused. */
  readonly truncate: boolean;
}

/** Ollama's own endpoint (https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings). */
export const OLLAMA_PATH = '/api/embed';

/** Statuses after which another attempt may succeed. */
const PASSING = new Set([408, 409, 425, 429, 500, 502, 503, 504]);
const FIRST_WAIT = 200;

/** Advice for statuses that a wrong configuration causes. */
const ADVICE: Readonly<Record<number, string>> = {
  400: ': check EMBEDDING_MODEL, and whether the model supports EMBEDDING_DIMENSIONS',
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
 * An OpenAI-compatible embedding service, or Ollama. Sends 64 texts per call, one call at a time; each response is
 * validated and normalized to length 1.
 */
export function createRemoteEmbedder(options: RemoteOptions): Embedder {
  const agent = new (undici().Agent)({
    connect: { timeout: LIMITS.connectTimeout },
    headersTimeout: MEMORY_STORE_LIMITS.embeddingTimeout,
    bodyTimeout: MEMORY_STORE_LIMITS.embeddingTimeout,
    maxHeaderSize: LIMITS.headerBytes,
  });
  // The length of the first vector: one of another length could not be compared with it.
  let length = options.dimensions;
  const service: Service = {
    ...options,
    agent,
    check(vector) {
      length ??= vector.length;
      return vector.length === length
        ? undefined
        : `sent embeddings of ${vector.length} numbers after some of ${length}: was the model changed? Restart to use it`;
    },
  };
  const scoring: Scoring = {
    ...MODEL_SCORING,
    ...(options.pivot === undefined ? {} : { pivot: options.pivot }),
  };
  return {
    id: `${options.model}/${options.dimensions ?? 'native'}`,
    scoring,
    isImmediate: false,
    async embedQuery(text, signal) {
      const input = prepared(text);
      if (input === '') return new Float32Array(length ?? 1);
      const got = await call(service, [input], signal, MEMORY_STORE_LIMITS.embeddingQueryTimeout);
      signal?.throwIfAborted();
      if (!Array.isArray(got)) throw got.error;
      return got[0] ?? new Float32Array(length ?? 1);
    },
    async embed(texts, signal, progress) {
      // A service refuses an empty text, whose vector is zero anyway.
      const wanted = [...texts.keys()].filter((index) => (texts[index] ?? '').trim() !== '');
      const vectors: (Float32Array | undefined)[] = texts.map(() => undefined);
      for (let start = 0; start < wanted.length; start += MEMORY_STORE_LIMITS.embeddingInputs) {
        const batch = wanted.slice(start, start + MEMORY_STORE_LIMITS.embeddingInputs);
        const inputs = batch.map((index) => prepared(texts[index] ?? ''));
        const got = await withRetries(() => call(service, inputs, signal), signal);
        for (const [place, index] of batch.entries()) vectors[index] = got[place];
        progress?.((batch.at(-1) ?? 0) + 1);
      }
      progress?.(texts.length);
      return vectors.map((vector) => vector ?? new Float32Array(length ?? 1));
    },
    close: () => agent.destroy(),
  };
}

function prepared(text: string): string {
  return text.trim() === '' ? '' : text.slice(0, MEMORY_STORE_LIMITS.embeddingInputLength).toWellFormed();
}

interface Service extends RemoteOptions {
  readonly agent: Agent;
  /** What is wrong with the length of a vector. */
  check(vector: Float32Array): string | undefined;
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
  service: Service,
  input: readonly string[],
  signal: AbortSignal | undefined,
  timeout: number = MEMORY_STORE_LIMITS.embeddingTimeout,
): Promise<Float32Array[] | Failure> {
  const { agent, url, apiKey } = service;
  const deadline = AbortSignal.timeout(timeout);
  const headers = ['content-type', 'application/json', 'accept', 'application/json'];
  if (apiKey !== undefined) headers.push('authorization', `Bearer ${apiKey}`);
  try {
    const response = await agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST',
      headers,
      body: JSON.stringify(requestBody(service, input)),
      signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
    });
    if (response.statusCode !== 200) return await refused(url, response);
    const body = await read(response.body);
    if (body === undefined)
      return final(url, `sent more than ${MEMORY_STORE_LIMITS.embeddingResponseBytes} bytes`);
    const vectors = vectorsIn(body, input.length, service);
    return Array.isArray(vectors) ? vectors : final(url, vectors.problem);
  } catch (cause) {
    return unanswered(url, cause, deadline.aborted, timeout);
  }
}

function requestBody({ url, model, dimensions }: Service, input: readonly string[]): object {
  const wanted = dimensions === undefined ? {} : { dimensions };
  return url.pathname.endsWith(OLLAMA_PATH)
    ? { model, input, truncate: true, ...wanted }
    : { model, input, encoding_format: 'float', ...wanted };
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

function unanswered(url: URL, cause: unknown, isLate: boolean, timeout: number): Failure {
  const code = errorCode(cause);
  const isSlow = isLate || code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT';
  const why = isSlow
    ? `did not answer within ${timeout / 1000} s`
    : `cannot be reached${code === '' ? '' : ` (${code})`}: check EMBEDDINGS_URL`;
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

/** Parses and validates the vectors of a response, in the order of the inputs, normalized to length 1. */
function vectorsIn(body: string, count: number, service: Service): Float32Array[] | Problem {
  const data = dataOf(body);
  if (data === undefined) return { problem: 'did not send a list of embeddings' };
  if (data.length !== count) return { problem: `sent ${data.length} embeddings for ${count} texts` };
  const vectors = new Map<number, Float32Array>();
  for (const [place, item] of data.entries()) {
    const { embedding, index = place } = membersOf(item);
    const vector = vectorOf(embedding, service);
    if ('problem' in vector) return vector;
    const isPlace = Number.isInteger(index) && Number(index) >= 0 && Number(index) < count;
    if (typeof index !== 'number' || !isPlace || vectors.has(index))
      return { problem: 'sent embeddings with wrong indexes' };
    vectors.set(index, vector);
  }
  return [...vectors].sort(([a], [b]) => a - b).map(([, vector]) => vector);
}

/** `data` of OpenAI, or `embeddings` of Ollama, which are vectors without an index. */
function dataOf(body: string): readonly unknown[] | undefined {
  const { data, embeddings } = membersOf(jsonIn(body));
  if (Array.isArray(embeddings)) return embeddings.map((embedding) => ({ embedding }));
  return Array.isArray(data) ? data : undefined;
}

const isFiniteNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value);

function vectorOf(embedding: unknown, service: Service): Float32Array | Problem {
  if (!Array.isArray(embedding)) return { problem: 'sent an embedding that is not a list of numbers' };
  const { dimensions = embedding.length, truncate } = service;
  if (embedding.length < dimensions || (embedding.length > dimensions && !truncate))
    return {
      problem:
        `sent embeddings of ${embedding.length} numbers instead of ${dimensions}` +
        (embedding.length < dimensions
          ? ': EMBEDDING_DIMENSIONS is more than the model has'
          : ': it ignores EMBEDDING_DIMENSIONS. Unset it, or set EMBEDDING_TRUNCATE=true if the model was trained for shortened vectors (Matryoshka)'),
    };
  if (dimensions > MEMORY_STORE_LIMITS.dimensions)
    return {
      problem: `sent embeddings of ${dimensions} numbers, more than ${MEMORY_STORE_LIMITS.dimensions}: use another model, or EMBEDDING_DIMENSIONS`,
    };
  const numbers: unknown[] = embedding.slice(0, dimensions);
  if (!numbers.every(isFiniteNumber))
    return { problem: 'sent an embedding that contains something other than numbers' };
  // In double precision, because very large and very small numbers exceed the range of Float32.
  const length = Math.hypot(...numbers);
  if (!(length > 0) || !Number.isFinite(length)) return { problem: 'sent an embedding of length zero' };
  const vector = normalise(Float32Array.from(numbers, (value) => value / length));
  const problem = service.check(vector);
  return problem === undefined ? vector : { problem };
}
