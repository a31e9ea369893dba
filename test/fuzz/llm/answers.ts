import { EventStreamCodec } from '@smithy/core/event-streams';
import { BODIES, STREAMS } from '../../kit/llm-answers.ts';

// Good answers of providers: as a body, and as the events of a stream.

/** Wire formats of chats, by the name that `custom.formats` has for them; `converse` is that of Bedrock. */
export type ApiKey = 'completions' | 'messages' | 'responses' | 'generateContent' | 'converse';

/** One event of a stream: its name, if the API has names, and its data. */
export interface StreamEvent {
  readonly name: string | undefined;
  readonly data: unknown;
}

const CANDIDATE_PARTS = [
  { text: 'Two tools are needed.', thought: true, thoughtSignature: 'c2ln' },
  { text: 'Let me look.' },
  { functionCall: { name: 'get_weather', args: { city: 'Paris' } }, thoughtSignature: 'c2ln' },
];
const GEMINI_USAGE = {
  promptTokenCount: 120,
  cachedContentTokenCount: 100,
  candidatesTokenCount: 28,
  thoughtsTokenCount: 12,
  totalTokenCount: 160,
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: 120 }],
};
const generated = (parts: readonly object[], more: object = {}): object => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  usageMetadata: GEMINI_USAGE,
  modelVersion: 'model-1',
  responseId: 'r-1',
});

const CONVERSE_USAGE = {
  inputTokens: 15,
  outputTokens: 40,
  totalTokens: 160,
  cacheReadInputTokens: 100,
  cacheWriteInputTokens: 5,
};

export const ANSWERS: Readonly<Record<ApiKey, object>> = {
  completions: BODIES.completions,
  messages: BODIES.messages,
  responses: BODIES.responses,
  generateContent: generated(CANDIDATE_PARTS, {
    finishReason: 'STOP',
    safetyRatings: [{ category: 'x', probability: 'LOW' }],
    groundingMetadata: { webSearchQueries: ['x'] },
  }),
  converse: {
    metrics: { latencyMs: 551 },
    output: {
      message: {
        role: 'assistant',
        content: [
          { reasoningContent: { reasoningText: { text: 'Two tools.', signature: 'sig' } } },
          { text: 'Let me look.' },
          { toolUse: { toolUseId: 'tooluse_1', name: 'get_weather', input: { city: 'Paris' } } },
        ],
      },
    },
    stopReason: 'tool_use',
    usage: CONVERSE_USAGE,
  },
};

/** Every third delta is enough: the streams of the kit have one for each word. */
const thinned = (events: readonly StreamEvent[]): StreamEvent[] =>
  events.filter(({ data }, index) => index % 3 === 0 || !JSON.stringify(data).includes('delta'));

const parsedStream = (text: string): StreamEvent[] =>
  text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const data = /^data: (.*)$/m.exec(block)?.[1] ?? '';
      return {
        name: /^event: (.*)$/m.exec(block)?.[1],
        data: data === '[DONE]' ? data : (JSON.parse(data) as unknown),
      };
    });

const converse = (name: string, data: object): StreamEvent => ({ name, data });

export const EVENTS: Readonly<Record<ApiKey, readonly StreamEvent[]>> = {
  completions: thinned(parsedStream(STREAMS.completions)),
  messages: thinned(parsedStream(STREAMS.messages)),
  responses: thinned(parsedStream(STREAMS.responses)),
  generateContent: [
    ...CANDIDATE_PARTS.map((part) => ({ name: undefined, data: generated([part]) })),
    { name: undefined, data: generated([{ text: '' }], { finishReason: 'STOP' }) },
  ],
  converse: [
    converse('messageStart', { role: 'assistant' }),
    converse('contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'Two.' } } }),
    converse('contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { signature: 's' } } }),
    converse('contentBlockStop', { contentBlockIndex: 0 }),
    converse('contentBlockDelta', { contentBlockIndex: 1, delta: { text: 'Let me look.' } }),
    converse('contentBlockStop', { contentBlockIndex: 1 }),
    converse('contentBlockStart', {
      contentBlockIndex: 2,
      start: { toolUse: { toolUseId: 'tooluse_1', name: 'get_weather' } },
    }),
    converse('contentBlockDelta', {
      contentBlockIndex: 2,
      delta: { toolUse: { input: '{"city":"Paris"}' } },
    }),
    converse('contentBlockStop', { contentBlockIndex: 2 }),
    converse('messageStop', { stopReason: 'tool_use', additionalModelResponseFields: {} }),
    converse('metadata', { usage: CONVERSE_USAGE, metrics: { latencyMs: 5 } }),
  ],
};

/** Error bodies of each API. */
export const ERRORS: Readonly<Record<ApiKey, object>> = {
  completions: { error: { message: 'bad', type: 'invalid_request_error', code: 'x', param: null } },
  messages: { type: 'error', error: { type: 'overloaded_error', message: 'bad' }, request_id: 'req_1' },
  responses: { error: { message: 'bad', type: 'invalid_request_error', code: 'x', param: 'input' } },
  generateContent: {
    error: {
      code: 400,
      message: 'bad',
      status: 'INVALID_ARGUMENT',
      details: [{ '@type': 'x', reason: 'API_KEY_INVALID', retryDelay: '5s' }],
    },
  },
  converse: { message: 'bad', __type: 'com.amazon.coral#ValidationException' },
};

/** An event that ends a stream with an error. */
export const ERROR_EVENTS: Readonly<Record<ApiKey, StreamEvent>> = {
  completions: { name: undefined, data: ERRORS.completions },
  messages: { name: 'error', data: ERRORS.messages },
  responses: {
    name: 'response.failed',
    data: {
      type: 'response.failed',
      sequence_number: 5,
      response: {
        id: 'r',
        object: 'response',
        status: 'failed',
        error: { code: 'server_error', message: 'bad' },
        output: [],
      },
    },
  },
  generateContent: { name: undefined, data: ERRORS.generateContent },
  converse: { name: 'exception:throttlingException', data: { message: 'bad' } },
};

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString('utf8'),
  (text) => Buffer.from(text, 'utf8'),
);
const header = (value: string) => ({ type: 'string' as const, value });

/** One event on the wire; `data` is JSON text. */
export function eventBytes(api: ApiKey, name: string | undefined, data: string, end: string): Buffer {
  if (api !== 'converse')
    return Buffer.from(`${name === undefined ? '' : `event: ${name}${end}`}data: ${data}${end}${end}`);
  const exception = name?.startsWith('exception:') === true ? name.slice('exception:'.length) : undefined;
  const headers = {
    ':message-type': header(exception === undefined ? 'event' : 'exception'),
    ...(exception === undefined
      ? { ':event-type': header(name ?? '') }
      : { ':exception-type': header(exception) }),
    ':content-type': header('application/json'),
  };
  return Buffer.from(codec.encode({ headers, body: Buffer.from(data) }));
}
