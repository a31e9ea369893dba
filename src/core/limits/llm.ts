import { KIB, MIB, SECOND } from './units.ts';

/** Limits of LLM calls: guardrails, streams, models. Times are in ms and sizes in bytes unless a comment says otherwise. */
export const LLM_LIMITS = {
  /**
   * Request body, if `maxBufferSize` is not set: images, recordings and documents are sent in it, and providers accept
   * 20 to 50 MiB. A larger one is answered with status 413.
   */
  llmRequestBytes: 32 * MIB,
  /** A larger body is parsed in steps, between which other requests run. Parsing 1 MiB of any text takes under 70 ms. */
  llmSmallBody: MIB,
  /**
   * Items and containers of a JSON body, of which 500,000 parse in 60 to 100 ms; more are answered with status 400. The
   * largest call of the OpenAI API has 300,000 (tokens to embed).
   */
  llmItems: 500_000,
  /**
   * Output tokens and answers that a request may ask for (`max_tokens`, `n`); more are answered with status 400. The largest
   * models produce 10^6 tokens, OpenAI accepts 128 answers.
   */
  llmRequestedTokens: 10_000_000,
  llmRequestedAnswers: 1_000,
  /**
   * Guardrail webhooks: response timeout (upstream), response size, and length of a rejection message for the client.
   */
  guardrailTimeout: 10 * SECOND,
  /** Connections to one webhook; further calls wait, and the wait counts towards the response timeout. */
  guardrailConnections: 256,
  guardrailBody: 4 * MIB,
  guardrailRejection: 64 * KIB,
  /** Characters of a stream that a guardrail inspects together, and how many are held back for the next inspection. */
  guardrailWindow: KIB,
  guardrailOverlap: 256,
  guardrailHeldBytes: 256 * KIB,
  /** Events that must wait for a text before them to end; beyond that, the stream ends with an error event. */
  guardrailHeldMax: 4 * MIB,
  /**
   * One event of a provider's stream, and the pause between two; beyond either, the stream ends with an error event.
   */
  streamFrameBytes: MIB,
  streamIdle: 60 * SECOND,
  /** Answers of one response, whose numbers a provider chooses: OpenAI returns at most 128 (API reference, `n`). */
  llmAnswers: 128,
  /** A message of a realtime session. OpenAI's API accepts audio messages up to 15 MiB. */
  realtimeMessageBytes: 16 * MIB,
  /** A translated stream writes a ping if the provider sends data that nothing could be written of for this long. */
  translatedStreamPing: 10 * SECOND,
  /** Log lines about unknown models: characters of a model name, which the client chooses, and number of names. */
  shownModelName: 100,
  shownModels: 10,
  /** How long a failed model is evicted by default (upstream), and at most. */
  eviction: 3 * SECOND,
  evictionMax: 3600 * SECOND,
  /**
   * Texts, thoughts and tool calls of one translated stream. Translations look through all of them with each event: 20,000 tool
   * calls in 1.5 MB blocked the event loop for a minute. Models are asked for 128 tools at most.
   */
  llmParts: 1_000,
  /** A chat up to this size is received completely and checked before any of it is sent; most have a tenth of it. */
  checkedAnswerBytes: 128 * KIB,
  /** An answer that is kept to be given again (`cache` of a model); a longer one is not. Most have a few KiB. */
  cachedAnswerBytes: MIB,
  /** A response that is buffered completely, to count its tokens or for guardrails. */
  responseBodyBytes: 8 * MIB,
  /** Output tokens that are charged for a longer one without a maximum in its request: hardly any model writes more into one answer. */
  unreadAnswerTokens: 128 * KIB,
  /** A line in the results of a batch; of a longer one, nothing is counted, and the access log says so. */
  batchLineBytes: 8 * MIB,
  /** Batches whose usage is known to be counted, in each process; and in Redis, how long after the last request for one. */
  countedBatches: 10_000,
  countedBatchAge: 90 * 24 * 3600 * SECOND,
  /**
   * Ratio of decoded to received bytes of a compressed response whose decoded size exceeds `responseBodyBytes`; beyond
   * that, it is aborted. JSON reaches 5 to 20, deflate at most 1032.
   */
  decodedRatio: 100,
  /**
   * Characters of a prompt, a completion and a tool result that are kept for the access log if an expression of the log
   * reads them. A longer prompt or completion is truncated, a longer tool result is dropped.
   */
  loggedPayload: 256 * KIB,
  /** Credentials of a cloud provider: the time to get them, and how long before its end a token is replaced. */
  credentialTimeout: 20 * SECOND,
  tokenRefreshBefore: 120 * SECOND,
  /** A model list that prices are imported from (upstream); the public one has 3 MiB. */
  modelListBytes: 64 * MIB,
  /** A price catalog. One with all models of the public list has 1 MiB. */
  priceCatalogBytes: 16 * MIB,
} as const;
