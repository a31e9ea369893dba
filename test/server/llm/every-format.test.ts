import { describe, expect, test } from 'vitest';
import { type Answered, WIRE } from '../../kit/llm-formats.ts';
import { EVERY_FORMAT, llmGateway, llmProvider, textOf } from '../../kit/llm-provider.ts';
import { type HttpReply, send } from '../../kit/send.ts';
import type { HttpUpstream } from '../../kit/upstream.ts';

// What the gateway does with every call of every wire format: tokens, guardrails, limits and errors.

const CARD = '4111 1111 1111 1111';
const MASK = '<CREDIT_CARD>';
const RULE = { regex: { rules: [{ builtin: 'creditCard' }] } };

interface Call {
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  /** The request, with a card number in its text. */
  readonly request?: object;
  /** It is a form with a file besides the texts of the request. */
  readonly form?: true;
  /** The response: with usage, and with a card number if it has texts. */
  readonly answer: string;
  readonly type?: string;
  /** Input and output tokens of the response; undefined: the call is free. */
  readonly tokens?: readonly [input: number, output: number];
  /** What becomes of the response under a guardrail. Default: it has no text of a model, and stays as it is. */
  readonly guarded?: 'masked' | 'refused';
  readonly errors: 'openai' | 'anthropic' | 'google';
}

const body = (format: keyof typeof WIRE, usage: object): string =>
  JSON.stringify(WIRE[format].body?.({ model: 'm', text: `Pay ${CARD}.`, usage } as Answered));
const INPUT = { input_tokens: 30, output_tokens: 20 };
const PROMPT = { prompt_tokens: 30, completion_tokens: 20, total_tokens: 50 };
const CHAT = { messages: [{ role: 'user', content: `Pay ${CARD}` }] };
const CONTENT = { role: 'user', parts: [{ text: `Pay ${CARD}` }] };
const gemini = (method: string): string => `/v1beta/models/m:${method}`;

const CALLS: Readonly<Record<string, Call>> = {
  'chat completions': {
    path: '/v1/chat/completions',
    request: CHAT,
    answer: body('completions', PROMPT),
    tokens: [30, 20],
    guarded: 'masked',
    errors: 'openai',
  },
  completions: {
    path: '/v1/completions',
    request: { prompt: `Pay ${CARD}` },
    answer: body('textCompletions', PROMPT),
    tokens: [30, 20],
    guarded: 'masked',
    errors: 'openai',
  },
  responses: {
    path: '/v1/responses',
    request: { input: `Pay ${CARD}` },
    answer: body('responses', INPUT),
    tokens: [30, 20],
    guarded: 'masked',
    errors: 'openai',
  },
  messages: {
    path: '/v1/messages',
    request: { ...CHAT, max_tokens: 9 },
    answer: body('messages', INPUT),
    tokens: [30, 20],
    guarded: 'masked',
    errors: 'anthropic',
  },
  'count_tokens of messages': {
    path: '/v1/messages/count_tokens',
    request: CHAT,
    answer: '{"input_tokens":30}',
    errors: 'anthropic',
  },
  generateContent: {
    path: gemini('generateContent'),
    request: { contents: [CONTENT] },
    answer: body('generateContent', { promptTokenCount: 30, candidatesTokenCount: 20 }),
    tokens: [30, 20],
    guarded: 'masked',
    errors: 'google',
  },
  countTokens: {
    path: gemini('countTokens'),
    request: { contents: [CONTENT] },
    answer: '{"totalTokens":30}',
    errors: 'google',
  },
  embedContent: {
    path: gemini('embedContent'),
    request: { content: CONTENT },
    answer: body('embedContent', { promptTokenCount: 30 }),
    tokens: [30, 0],
    errors: 'google',
  },
  batchEmbedContents: {
    path: gemini('batchEmbedContents'),
    request: { requests: [{ content: CONTENT }] },
    answer: body('batchEmbedContents', { promptTokenCount: 30 }),
    tokens: [30, 0],
    errors: 'google',
  },
  embeddings: {
    path: '/v1/embeddings',
    request: { input: [`Pay ${CARD}`] },
    answer: body('embeddings', { prompt_tokens: 30, total_tokens: 30 }),
    tokens: [30, 0],
    errors: 'openai',
  },
  rerank: {
    path: '/v1/rerank',
    request: { query: `Pay ${CARD}`, documents: [CARD, { text: CARD }] },
    // Documents in the response are those of the client.
    answer: `{"results":[{"index":0,"document":{"text":"${CARD}"}}],"usage":{"total_tokens":30}}`,
    tokens: [30, 0],
    errors: 'openai',
  },
  moderations: {
    path: '/v1/moderations',
    request: { input: [{ type: 'text', text: `Pay ${CARD}` }] },
    answer: body('moderations', { prompt_tokens: 30, total_tokens: 30 }),
    tokens: [30, 0],
    errors: 'openai',
  },
  speech: {
    path: '/v1/audio/speech',
    request: { input: `Pay ${CARD}`, instructions: `Say ${CARD}`, voice: 'alloy' },
    answer: WIRE.speech.stream?.({ model: 'm', text: '', usage: INPUT }) ?? '',
    type: 'text/event-stream',
    tokens: [30, 20],
    guarded: 'refused',
    errors: 'openai',
  },
  transcriptions: {
    path: '/v1/audio/transcriptions',
    request: { prompt: `Names: ${CARD}` },
    form: true,
    answer: body('transcriptions', { type: 'tokens', ...INPUT }),
    tokens: [30, 20],
    guarded: 'masked',
    errors: 'openai',
  },
  translations: {
    path: '/v1/audio/translations',
    request: { prompt: `Names: ${CARD}` },
    form: true,
    answer: body('transcriptions', { type: 'tokens', ...INPUT }),
    tokens: [30, 20],
    guarded: 'masked',
    errors: 'openai',
  },
  images: {
    path: '/v1/images/generations',
    request: { prompt: `A card, ${CARD}` },
    answer: JSON.stringify({ data: [{ b64_json: 'AAAA', revised_prompt: CARD }], usage: INPUT }),
    tokens: [30, 20],
    guarded: 'masked',
    errors: 'openai',
  },
  'edits of images': {
    path: '/v1/images/edits',
    request: { prompt: `A card, ${CARD}` },
    form: true,
    answer: JSON.stringify({ data: [{ b64_json: 'AAAA', revised_prompt: CARD }], usage: INPUT }),
    tokens: [30, 20],
    guarded: 'masked',
    errors: 'openai',
  },
  'uploads of files': {
    path: '/v1/files',
    request: { purpose: `batch ${CARD}`, input: CARD },
    form: true,
    answer: '{"id":"file-1","object":"file","bytes":4}',
    // The format is unknown, and the provider reports no usage: the 19 bytes of `input` are estimated.
    tokens: [5, 0],
    errors: 'openai',
  },
  'lists of files': {
    path: '/v1/files',
    method: 'GET',
    answer: `{"object":"list","data":[{"id":"file-1","filename":"${CARD}"}]}`,
    guarded: 'masked',
    errors: 'openai',
  },
  'batches in progress': {
    path: '/v1/batches/batch_1',
    method: 'GET',
    answer: JSON.stringify({ id: 'batch_1', object: 'batch', usage: INPUT }),
    errors: 'openai',
  },
};

const ROWS = Object.entries(CALLS);

/** A gateway in front of a provider that gives this answer to everything. */
async function serve({ answer, type = 'application/json' }: Call, more: object = {}, options: object = {}) {
  const provider = await llmProvider((_, response) =>
    response.writeHead(200, { 'content-type': type }).end(answer),
  );
  const passthrough = [
    { path: '/v1/files', methods: ['GET', 'POST'] },
    { path: '/v1/batches/*', methods: ['GET'] },
  ];
  const { llm, params, ...model } = more as { llm?: object; params?: object };
  const served = await llmGateway(provider, {
    model: { provider: EVERY_FORMAT, passthrough, ...model },
    ...(llm && { llm }),
    ...(params && { params }),
    options,
  });
  return {
    provider,
    served,
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
    },
  };
}

async function ask(
  { url }: { url: string },
  { path, method = 'POST', request, form }: Call,
): Promise<HttpReply> {
  if (method === 'GET') return send(url + path, { method });
  const members = path.startsWith('/v1beta/') ? request : { model: 'm', ...request };
  if (form === undefined) return send(url + path, { method, body: JSON.stringify(members) });
  const data = new FormData();
  for (const [name, value] of Object.entries(members ?? {})) data.append(name, String(value));
  data.append('file', new File(['RIFF'], 'a.wav'));
  const encoded = new Response(data);
  return send(url + path, {
    method,
    headers: { 'content-type': String(encoded.headers.get('content-type')) },
    body: Buffer.from(await encoded.arrayBuffer()),
  });
}

const received = ({ received: calls }: HttpUpstream): string => calls.at(-1)?.body ?? '';

/** The error of a reply, which must have the form of its API. */
function errorOf({ text }: HttpReply, { errors }: Call): string {
  const value = JSON.parse(text) as { type?: string; error: Record<string, unknown> };
  const { error, ...others } = value;
  expect(others).toEqual(errors === 'anthropic' ? { type: 'error' } : {});
  const members = {
    openai: ['message', 'type', 'code'],
    anthropic: ['type', 'message'],
    google: ['code', 'message', 'status'],
  };
  expect(Object.keys(error).sort()).toEqual([...members[errors]].sort());
  return String(error['message']);
}

describe('calls of every format', () => {
  test.each(ROWS.filter(([, { request, form }]) => request !== undefined && form === undefined))(
    'requests and responses of %s keep every byte, besides the name of the model',
    async (_, call) => {
      const params = { model: 'm-1' };
      const odd = { ...call, answer: ` ${call.answer}\n`, request: undefined };
      await using gate = await serve(odd, { llm: {}, name: 'm', params });
      const isInPath = call.path.startsWith('/v1beta/');
      const members = JSON.stringify(call.request).slice(1);
      const body = (model: string): string =>
        `\t{ "x" : 9007199254740993.0,"\\u0079": "\\/",${isInPath ? '' : ` "model":"${model}"  ,`}\n${members} `;
      const reply = await send(gate.served.url + call.path, { method: 'POST', body: body('m') });
      expect([reply.status, reply.text]).toEqual([200, odd.answer]);
      expect(textOf(gate.provider)).toBe(body('m-1'));
      if (isInPath) expect(gate.provider.received[0]?.target).toContain('/models/m-1:');
    },
  );

  test.each(ROWS)('the tokens of %s are counted', async (_, call) => {
    await using gate = await serve(call);
    expect((await ask(gate.served, call)).status).toBe(200);
    const line = await gate.served.accessLine(1);
    const [input, output] = call.tokens ?? [];
    expect([line['gen_ai.usage.input_tokens'], line['gen_ai.usage.output_tokens']]).toEqual([
      input?.toString(),
      output?.toString(),
    ]);
  });

  test.each(ROWS.filter(([, { request }]) => request !== undefined))(
    'guardrails mask the texts of requests of %s',
    async (_, call) => {
      await using gate = await serve(call, { guardrails: { request: [RULE] } });
      expect((await ask(gate.served, call)).status).toBe(200);
      const sent = received(gate.provider);
      expect(sent).toContain(MASK);
      // The `purpose` of an upload is not a text that guardrails check.
      expect(sent.replace(`batch ${CARD}`, '')).not.toContain('1111');
      if (call.form) expect(sent).toContain('RIFF');
    },
  );

  test.each(ROWS)('guardrails handle the responses of %s', async (_, call) => {
    await using gate = await serve(call, { guardrails: { response: [RULE] } });
    const { status, text } = await ask(gate.served, call);
    if (call.guarded === 'masked') {
      expect([status, text]).toEqual([200, call.answer.replaceAll(CARD, MASK)]);
    } else if (call.guarded === 'refused') {
      expect(status).toBe(400);
      expect(errorOf({ text } as HttpReply, call)).toContain('guardrails cannot check streams');
    } else expect([status, text]).toEqual([200, call.answer]);
  });

  test.each(['transcriptions', 'images', 'edits of images'])(
    'streams of %s are refused before the call if guardrails check responses',
    async (name) => {
      const call = CALLS[name] as Call;
      await using gate = await serve(call, { guardrails: { response: [RULE] } });
      const reply = await ask(gate.served, { ...call, request: { ...call.request, stream: true } });
      expect(reply.status).toBe(400);
      expect(errorOf(reply, call)).toContain('guardrails cannot check streams');
      expect(gate.provider.received).toEqual([]);
    },
  );

  test.each(ROWS)('a token limit applies to %s unless they are free', async (_, call) => {
    const limit = { maxTokens: 1, tokensPerFill: 1, fillInterval: '1h', type: 'tokens' };
    await using gate = await serve(call, { llm: { policies: { localRateLimit: [limit] } } });
    const statuses = [(await ask(gate.served, call)).status];
    await gate.served.accessLine(1);
    const reply = await ask(gate.served, call);
    statuses.push(reply.status);
    const isCounted = call.tokens !== undefined && call.tokens[0] > 0;
    expect(statuses).toEqual([200, isCounted ? 429 : 200]);
    if (isCounted) expect(errorOf(reply, call)).toContain('rate limit');
  });

  test.each(ROWS.filter(([, { request }]) => request !== undefined))(
    'a body of %s over the limit is a 413 in the error format of its API',
    async (_, call) => {
      await using gate = await serve(call, {}, { limits: { llmRequestBytes: 20 } });
      const reply = await ask(gate.served, call);
      expect(reply.status).toBe(413);
      expect(errorOf(reply, call)).toContain('exceeded the buffer limit');
      expect(gate.provider.received).toEqual([]);
    },
  );
});

describe('stored responses', () => {
  const stored = (background: boolean): string =>
    JSON.stringify({
      id: 'resp_1',
      object: 'response',
      status: 'completed',
      background,
      output: [],
      usage: INPUT,
    });

  test.each([
    ['in the foreground', false, undefined],
    ['in the background', true, '20'],
  ])('the usage of a response created %s is counted once', async (_, background, output) => {
    await using provider = await llmProvider((_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(stored(background)),
    );
    const passthrough = [{ path: '/v1/responses/*', methods: ['GET', 'POST'] }];
    await using served = await llmGateway(provider, { model: { passthrough } });
    await send(`${served.url}/v1/responses/resp_1`);
    await send(`${served.url}/v1/responses/resp_1/cancel`, { method: 'POST' });
    for (const number of [1, 2])
      expect((await served.accessLine(number))['gen_ai.usage.output_tokens']).toBe(output);
  });
});
