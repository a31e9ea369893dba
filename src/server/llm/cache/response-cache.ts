import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { durationSchema, durationText } from '../../../core/duration.ts';
import { LIMITS } from '../../../core/limits.ts';
import { choice, mapping } from '../../../core/schema/mapping.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { sharedStore } from '../../kernel/shared-store.ts';
import { Slot } from '../../kernel/slot.ts';
import { UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import { gatewayCredential, rareEncodings, redactKey } from '../credentials.ts';
import { clientFormatOf } from '../formats/index.ts';
import type { LlmCall } from '../llm-call.ts';
import type { CallBody } from '../request/call-body.ts';
import { type AnswerStore, type CachedAnswer, OwnAnswers, SharedAnswers } from './answer-store.ts';
import { cacheKey, type OutgoingCall } from './cache-key.ts';

const DEFAULT_TTL = 600_000;
const DEFAULT_BYTES = 64 * 1024 * 1024;

export const responseCacheSchema = z.lazy(() =>
  mapping(
    'Answers that are given again to equal requests, without a call of the provider. Equal means the same bytes, with the same settings. Not for requests with `cache-control: no-store`.',
    {
      ttl: durationSchema
        .default(DEFAULT_TTL)
        .describe(`How long an answer is given again. Default: ${durationText(DEFAULT_TTL)}.`),
      scope: choice(
        'Who gets an answer again. `caller`: the one who got it first, by its key, token or user, or by the credentials that it sends. `shared`: everybody who may call the model.',
        ['caller', 'shared'],
        'caller',
      ),
      maxBytes: z
        .int()
        .min(1024 * 1024)
        .default(DEFAULT_BYTES)
        .describe(
          'Bytes of answers that each process keeps; those used least recently make room. With `config.shared`, answers are in Redis instead.',
        ),
    },
  ),
);

type ResponseCacheConfig = z.output<typeof responseCacheSchema>;

/** Tells clients whether an answer is of the cache: `hit` or `miss`. */
const HEADER = 'x-agctl-cache';

/** An answer that is being recorded, for calls that wait for it. Resolves to undefined if it cannot be given again. */
type Flight = Promise<CachedAnswer | undefined>;

/** `model`: everything that decides what the provider is asked besides the request. */
export function compileCache(
  config: ResponseCacheConfig | undefined,
  model: unknown,
  context: CompileContext,
): ResponseCache | undefined {
  return config === undefined ? undefined : new ResponseCache(config, model, context);
}

/** The answers to the calls of one model. */
export class ResponseCache {
  readonly #answers: AnswerStore;
  readonly #model: string;
  readonly #isShared: boolean;
  readonly #count: (labels: readonly string[]) => void;
  readonly #flights = new Map<string, Flight>();

  constructor(config: ResponseCacheConfig, model: unknown, { settings }: CompileContext) {
    const { ttl, scope, maxBytes } = config;
    const store = sharedStore.get(settings);
    this.#answers = store === undefined ? new OwnAnswers(ttl, maxBytes) : new SharedAnswers(store, ttl);
    this.#model = createHash('sha256').update(JSON.stringify(model)).digest('base64url');
    this.#isShared = scope === 'shared';
    this.#count = settings.counter('llmCache');
  }

  /**
   * The answer to an equal call, or that of the provider (`fetch`), which is then kept. Of equal calls at the same time, one
   * reaches the provider and the others wait for its answer.
   */
  async answer(
    ctx: RequestContext,
    plan: OutgoingCall,
    sent: CallBody,
    fetch: () => Promise<Reply>,
  ): Promise<Reply> {
    const wish = isCacheable(plan) ? wishOf(ctx) : 'no-store';
    if (wish === 'no-store') return fetch();
    const key = cacheKey(ctx, plan, sent, { model: this.#model, isShared: this.#isShared });
    if (wish === 'any') {
      const known = (await this.#answers.find(key)) ?? (await this.#inFlight(ctx, key));
      if (known !== undefined) return this.#hit(plan.call, known);
    }
    this.#count(['miss']);
    return this.#fetch(ctx, plan, key, fetch);
  }

  async #inFlight({ signal }: RequestContext, key: string): Promise<CachedAnswer | undefined> {
    const flight = this.#flights.get(key);
    if (flight === undefined) return undefined;
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined), { once: true });
      void flight.then(resolve);
    });
  }

  #hit(call: LlmCall, { contentType, body, model, at }: CachedAnswer): Reply {
    this.#count(['hit']);
    call.isCacheHit = true;
    call.isFree = true;
    call.responseModel = model;
    const age = Math.max(0, Math.floor((Date.now() - at) / 1000));
    const headers = new HeaderList(['content-type', contentType, HEADER, 'hit', 'age', String(age)]);
    return { status: 200, headers, body };
  }

  async #fetch(
    ctx: RequestContext,
    plan: OutgoingCall,
    key: string,
    fetch: () => Promise<Reply>,
  ): Promise<Reply> {
    const { promise, resolve } = Promise.withResolvers<CachedAnswer | undefined>();
    const settle = (answer: CachedAnswer | undefined): void => {
      if (this.#flights.get(key) === promise) this.#flights.delete(key);
      resolve(answer);
      if (answer !== undefined) void this.#answers.keep(key, answer);
    };
    if (!this.#flights.has(key)) this.#flights.set(key, promise);
    let recording: Recording | undefined;
    try {
      const reply = await fetch();
      recording = Recording.of(reply, plan.call, gatewayCredential(ctx, plan.model).encodings);
      if (recording !== undefined) recordings.ensure(ctx, () => []).push({ recording, settle });
      reply.headers.set(HEADER, 'miss');
      return reply;
    } finally {
      if (recording === undefined) settle(undefined);
    }
  }
}

/** A call whose answer depends on nothing but the request. */
function isCacheable({ call, endpoint, body }: OutgoingCall): boolean {
  const format = clientFormatOf(call.format);
  if (format?.isCacheable === undefined || call.isUnmetered === true) return false;
  return endpoint.isPassthrough !== true && call.isRetrieval !== true && format.isCacheable(body);
}

/** What `cache-control` of a request says (RFC 9111 §5.2.1): `no-cache` and `max-age=0` want a new answer. */
function wishOf({ headers }: RequestContext): 'any' | 'new' | 'no-store' {
  const wish = headers.all('cache-control').join(',').toLowerCase();
  if (/(?:^|[\s,])no-store(?:$|[\s,])/.test(wish)) return 'no-store';
  return /(?:^|[\s,])(?:no-cache|max-age=0)(?:$|[\s,])/.test(wish) ? 'new' : 'any';
}

/** A copy of an answer on its way to the client. */
class Recording {
  readonly call: LlmCall;
  readonly #contentType: string;
  readonly #keys: readonly string[];
  #chunks: Buffer[] | undefined = [];
  #size = 0;

  /** Undefined for an answer that is not given again: an error, or something else than JSON or events. */
  static of({ status, headers, body }: Reply, call: LlmCall, keys: readonly string[]): Recording | undefined {
    const contentType = headers.get('content-type') ?? '';
    if (status !== 200 || !/^(?:application\/json|text\/event-stream)\b/i.test(contentType)) return undefined;
    const recording = new Recording(call, contentType, keys);
    if (typeof body === 'string') recording.see(Buffer.from(body));
    else if (body instanceof UpstreamBody) body.observers.push(recording);
    else return undefined;
    return recording;
  }

  constructor(call: LlmCall, contentType: string, keys: readonly string[]) {
    this.call = call;
    this.#contentType = contentType;
    this.#keys = keys;
  }

  see(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > LIMITS.cachedAnswerBytes) this.#chunks = undefined;
    this.#chunks?.push(chunk);
  }

  answer(): CachedAnswer | undefined {
    if (this.#chunks === undefined || this.#size === 0) return undefined;
    const bytes = redactKey(Buffer.concat(this.#chunks), rareEncodings(this.#keys));
    if (!isUtf8(bytes)) return undefined;
    return {
      contentType: this.#contentType,
      body: bytes.toString('utf8'),
      model: this.call.responseModel,
      at: Date.now(),
    };
  }
}

/** The answers of a request that are being recorded: failover may ask several models. */
const recordings = new Slot<
  { readonly recording: Recording; settle(answer: CachedAnswer | undefined): void }[]
>();

/** Keeps the answer of a call that has ended if it is whole, and nothing was wrong with it. Called once per request. */
export function settleRecordings(ctx: RequestContext, call: LlmCall): void {
  const isGood =
    call.progress === 'complete' &&
    call.providerError === undefined &&
    ctx.error === undefined &&
    !ctx.isAbandoned;
  for (const { recording, settle } of recordings.get(ctx) ?? [])
    settle(isGood && recording.call === call ? recording.answer() : undefined);
}
