import { ApiError, FunctionCallingConfigMode, GoogleGenAI, type Part } from '@google/genai';
import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import {
  answering,
  bodyOf,
  chunk,
  completion,
  DONE,
  llmGateway,
  llmProvider,
  modelsGateway,
  streaming,
  textOf,
  webhook,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

const clientOf = ({ url }: { url: string }, apiKey = 'client-key'): GoogleGenAI =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url } });

const WEATHER = {
  functionDeclarations: [
    {
      name: 'weather',
      description: 'The weather of a city.',
      parametersJsonSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  ],
};

const post = (gate: { url: string }, path: string, body: object, headers = {}) =>
  send(`${gate.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });

/** Chats of clients with other formats are translated. */
const OPENAI = { provider: 'oaiCompat' };

const CONTENTS = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] };
const PATH = '/v1beta/models/acme:generateContent';
const STREAM_PATH = '/v1beta/models/acme:streamGenerateContent?alt=sse';

/** Texts of the events of a stream. */
const textsIn = (stream: string): string =>
  [...stream.matchAll(/"text":"([^"]*)"/g)].map(([, text]) => text).join('');

test('an image in URL-safe Base64, as the Python client sends it, is standard Base64 for another API', async () => {
  await using provider = await llmProvider();
  await using gate = await llmGateway(provider, { model: OPENAI });
  for (const data of ['-_-_', '-_8=', '-_8']) {
    const parts = [{ inlineData: { mimeType: 'image/png', data } }];
    expect((await post(gate, PATH, { contents: [{ role: 'user', parts }] })).status).toBe(200);
  }
  const urls = [0, 1, 2].map((index) => JSON.stringify(bodyOf(provider, index)).match(/base64,([^"]*)/)?.[1]);
  expect(urls).toEqual(['+/+/', '+/8=', '+/8=']);
});

describe('the official Google client with the built-in model', () => {
  const echo = () => modelsGateway([{ name: '*', provider: 'echo' }]);

  test('@google/genai generates content, with usage', async () => {
    await using gate = await echo();
    const response = await clientOf(gate).models.generateContent({
      model: 'gemini-2.5-flash',
      contents: 'Why is the sky blue?',
      config: { maxOutputTokens: 3 },
    });
    expect(response.text).toBe('Why is the');
    expect(response.candidates?.[0]?.finishReason).toBe('MAX_TOKENS');
    expect(response.modelVersion).toBe('gemini-2.5-flash');
    expect(response.usageMetadata).toMatchObject({ promptTokenCount: 5, candidatesTokenCount: 3 });
    expect(await gate.accessLine(1)).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'gemini-2.5-flash',
      'gen_ai.usage.input_tokens': '5',
      'gen_ai.usage.output_tokens': '3',
    });
  });

  test('@google/genai streams content', async () => {
    await using gate = await echo();
    const stream = await clientOf(gate).models.generateContentStream({
      model: 'm',
      contents: 'one two three',
    });
    const texts: string[] = [];
    let usage: object | undefined;
    for await (const event of stream) {
      texts.push(event.text ?? '');
      usage = event.usageMetadata ?? usage;
    }
    expect(texts.join('')).toBe('one two three');
    expect(texts.length).toBeGreaterThan(2);
    expect(usage).toMatchObject({ promptTokenCount: 3, candidatesTokenCount: 3 });
  });

  test('@google/genai calls a function and sends its result', async () => {
    await using gate = await echo();
    const chatSession = clientOf(gate).chats.create({
      model: 'm',
      config: {
        tools: [WEATHER],
        toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
      },
    });
    const called = await chatSession.sendMessage({ message: '{"city":"Bonn"}' });
    const [call] = called.functionCalls ?? [];
    expect(call).toMatchObject({ name: 'weather', args: { city: 'Bonn' } });
    const result: Part = {
      functionResponse: { id: call?.id ?? '', name: 'weather', response: { output: '9 °C' } },
    };
    const answered = await chatSession.sendMessage({ message: [result] });
    expect(answered.text).toContain('9 °C');
  });

  test('@google/genai counts tokens', async () => {
    await using gate = await echo();
    const { totalTokens } = await clientOf(gate).models.countTokens({
      model: 'm',
      contents: 'one two three',
    });
    expect(totalTokens).toBe(3);
  });
});

describe('the official Google client with a provider of chat completions', () => {
  test('@google/genai gets a translated answer, and the provider a translated request with the key of the gateway', async () => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, {
      model: OPENAI,
      params: { apiKey: 'sk-ours', model: 'acme-mini' },
    });
    const response = await clientOf(gate).models.generateContent({
      model: 'any',
      contents: 'Hi',
      config: { systemInstruction: 'Be brief.', temperature: 0.5, stopSequences: ['END'] },
    });
    expect(response.text).toBe('Hello.');
    expect(response.usageMetadata).toMatchObject({ promptTokenCount: 12, candidatesTokenCount: 7 });
    const { target, headers } = provider.received[0] ?? {};
    expect(target).toBe('/v1/chat/completions');
    expect(headers).toMatchObject({ authorization: 'Bearer sk-ours' });
    expect(JSON.stringify(headers)).not.toContain('client-key');
    expect(bodyOf(provider)).toMatchObject({
      model: 'acme-mini',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
      temperature: 0.5,
      stop: ['END'],
    });
    expect(await gate.accessLine(1)).toMatchObject({
      'gen_ai.usage.input_tokens': '12',
      'gen_ai.usage.output_tokens': '7',
    });
  });

  test('@google/genai gets the pieces of a stream with tool calls of the provider', async () => {
    const call = (more: object) => chunk({ tool_calls: [{ index: 0, ...more }] });
    await using provider = await llmProvider(
      streaming((response) =>
        response.end(
          [
            chunk({ role: 'assistant', content: 'Hel' }),
            chunk({ content: 'lo.' }),
            call({ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }),
            call({ function: { arguments: '{"city":' } }),
            call({ function: { arguments: '"Bonn"}' } }),
            chunk(undefined, { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }),
            chunk(undefined, { usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 } }),
            DONE,
          ].join(''),
        ),
      ),
    );
    await using gate = await llmGateway(provider, { model: OPENAI });
    const stream = await clientOf(gate).models.generateContentStream({
      model: 'm',
      contents: 'Hi',
      config: { tools: [WEATHER] },
    });
    const texts: string[] = [];
    const calls: unknown[] = [];
    for await (const event of stream) {
      texts.push(...(event.candidates?.[0]?.content?.parts ?? []).map(({ text }) => text ?? ''));
      calls.push(...(event.functionCalls ?? []));
    }
    expect(texts.join('')).toBe('Hello.');
    expect(calls).toEqual([{ id: 'call_1', name: 'weather', args: { city: 'Bonn' } }]);
    expect(await gate.accessLine(1)).toMatchObject({
      'gen_ai.usage.input_tokens': '12',
      'gen_ai.usage.output_tokens': '7',
    });
  });

  test('@google/genai brings its own key, which the provider gets as it expects it', async () => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, { model: OPENAI });
    await clientOf(gate, 'sk-of-client').models.generateContent({ model: 'm', contents: 'Hi' });
    expect(provider.received[0]?.headers).toMatchObject({ authorization: 'Bearer sk-of-client' });
    expect(provider.received[0]?.headers).not.toHaveProperty('x-goog-api-key');
  });

  test('the models of a gateway with other routes are at /v1beta, too', async () => {
    await using gate = await gateway(`
      config: { adminAddr: "off" }
      gateways: { default: { port: 0 } }
      llm: { gateways: default, models: [{ name: "*", provider: echo }] }
      routes: [{ matches: [{ path: { pathPrefix: /other } }], policies: { directResponse: { status: 204, body: "" } } }]
    `);
    expect((await post(gate, PATH, CONTENTS)).status).toBe(200);
  });

  test.each([
    [404, 'NOT_FOUND', { model: 'unknown' }],
    [400, 'INVALID_ARGUMENT', { model: 'known', config: { cachedContent: 'x' } }],
  ])('@google/genai gets errors of the gateway as %i %s', async (status, name, request) => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, { model: { ...OPENAI, name: 'known' } });
    const error: unknown = await clientOf(gate)
      .models.generateContent({ contents: 'Hi', ...request })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).status).toBe(status);
    expect((error as ApiError).message).toContain(`"status":"${name}"`);
  });

  test('@google/genai gets an error of the provider with its status', async () => {
    const body = JSON.stringify({
      error: { message: 'Slow down.', type: 'rate_limit', code: 'rate_limit_exceeded' },
    });
    await using provider = await llmProvider(answering(body, 429));
    await using gate = await llmGateway(provider, { model: OPENAI });
    const error: unknown = await clientOf(gate)
      .models.generateContent({
        model: 'm',
        contents: 'Hi',
        config: { httpOptions: { retryOptions: { attempts: 1 } } },
      })
      .catch((reason: unknown) => reason);
    expect((error as ApiError).status).toBe(429);
    expect((error as ApiError).message).toContain('Slow down.');
  });
});

describe('generateContent with the gemini provider', () => {
  const ANSWER = JSON.stringify({
    candidates: [{ content: { parts: [{ text: 'Hello.' }], role: 'model' }, finishReason: 'STOP', index: 0 }],
    usageMetadata: {
      promptTokenCount: 12,
      cachedContentTokenCount: 4,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 2,
      totalTokenCount: 19,
    },
    modelVersion: 'gemini-2.5-flash-001',
  });
  const gatewayTo = ({ address }: HttpUpstream, more: object = {}) =>
    llmGateway(
      { address },
      {
        model: { provider: 'gemini' },
        params: { baseUrl: `http://${address}/v1beta`, apiKey: 'AIza-key' },
        ...more,
      },
    );

  test('requests and answers keep every byte, and the model of the configuration is in the path', async () => {
    await using upstream = await httpUpstream(answering(ANSWER));
    await using gate = await gatewayTo(upstream, {
      params: { baseUrl: `http://${upstream.address}/v1beta`, apiKey: 'AIza-key', model: 'gemini-2.5-flash' },
    });
    const body =
      '{"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": {"temperature": 1.0}, "x": 12345678901234567890}';
    const reply = await send(`${gate.url}/v1/models/alias:generateContent?key=client-key`, {
      method: 'POST',
      body,
    });
    expect(reply.text).toBe(ANSWER);
    expect(textOf(upstream)).toBe(body);
    expect(upstream.received[0]?.target).toBe('/v1beta/models/gemini-2.5-flash:generateContent');
    expect(upstream.received[0]?.headers).toMatchObject({ 'x-goog-api-key': 'AIza-key' });
    expect(await gate.accessLine(1)).toMatchObject({
      'gen_ai.request.model': 'alias',
      'gen_ai.response.model': 'gemini-2.5-flash-001',
      'gen_ai.usage.input_tokens': '12',
      'gen_ai.usage.output_tokens': '7',
    });
  });

  test('a stream is forwarded unchanged, and metered like the whole answer', async () => {
    const events = [
      { candidates: [{ content: { parts: [{ text: 'Hel' }] }, index: 0 }] },
      JSON.parse(ANSWER) as object,
    ];
    const stream = events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`).join('');
    await using upstream = await httpUpstream((_, response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(stream),
    );
    await using gate = await gatewayTo(upstream);
    const reply = await post(gate, '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse', CONTENTS);
    expect(reply.text).toBe(stream);
    expect(upstream.received[0]?.target).toBe(
      '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
    );
    expect(await gate.accessLine(1)).toMatchObject({
      'gen_ai.usage.input_tokens': '12',
      'gen_ai.usage.output_tokens': '7',
    });
  });

  test('countTokens is forwarded and costs nothing', async () => {
    await using upstream = await httpUpstream(answering('{"totalTokens":31}'));
    await using gate = await gatewayTo(upstream);
    const reply = await post(gate, '/v1beta/models/gemini-2.5-flash:countTokens', CONTENTS);
    expect(reply.text).toBe('{"totalTokens":31}');
    expect(upstream.received[0]?.target).toBe('/v1beta/models/gemini-2.5-flash:countTokens');
    expect(await gate.accessLine(1)).not.toHaveProperty('gen_ai.usage.input_tokens');
  });
});

describe('errors of paths of the Gemini API', () => {
  test.each<[string, string, string, Record<string, string>]>([
    ['an unknown method', 'POST', '/v1beta/models/m:batchGenerateContent', {}],
    ['an unknown method of the stable version', 'POST', '/v1/models/m:predict', {}],
    ['an unknown path', 'GET', '/v1beta/files', {}],
    ['an unknown path of the alpha version', 'GET', '/v1alpha/cachedContents', {}],
    ['an unknown path of an official client', 'POST', '/upload/files', { 'x-goog-api-client': 'gl-node/1' }],
  ])('%s is a 404 in the form of Google', async (_, method, path, headers) => {
    await using gate = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const reply = await send(gate.url + path, { method, headers, ...(method === 'POST' && { body: '{}' }) });
    expect(reply.status).toBe(404);
    expect(JSON.parse(reply.text)).toEqual({
      error: { code: 404, message: expect.stringContaining('unknown endpoint'), status: 'NOT_FOUND' },
    });
  });

  test.each([PATH, '/v1beta/models', '/v1beta/models/m:unknown', '/elsewhere'])(
    'a wrong key is a 401 in the form of Google, also at %s',
    async (path) => {
      await using gate = await modelsGateway([{ name: '*', provider: 'echo' }], {
        policies: { apiKey: { mode: 'strict', keys: [{ key: 'client-key-1' }] } },
      });
      const reply = await post(gate, path, CONTENTS, { 'x-goog-api-key': 'wrong' });
      expect(reply.status).toBe(401);
      expect(JSON.parse(reply.text)).toMatchObject({ error: { code: 401, status: 'UNAUTHENTICATED' } });
    },
  );
});

describe('what paths of generateContent name', () => {
  test.each([
    [`${PATH}?model=other`, CONTENTS],
    [PATH, { ...CONTENTS, model: 'other' }],
  ])('a call that names two models is refused: %s %j', async (path, body) => {
    await using gate = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const reply = await post(gate, path, body);
    expect(reply.status).toBe(400);
    expect(reply.text).toContain('the request names several models');
  });

  test('the model of the path is checked against the key of the client', async () => {
    const keys = [{ key: 'client-key-1', allowedModels: ['other'] }];
    await using gate = await modelsGateway([{ name: '*', provider: 'echo' }], {
      policies: { apiKey: { mode: 'strict', keys, location: { header: { name: 'x-goog-api-key' } } } },
    });
    const reply = await post(gate, PATH, CONTENTS, { 'x-goog-api-key': 'client-key-1' });
    expect(reply.status).toBe(403);
    expect(JSON.parse(reply.text)).toMatchObject({ error: { code: 403, status: 'PERMISSION_DENIED' } });
  });

  test('a name may contain slashes, colons and percent-encoded characters', async () => {
    await using gate = await modelsGateway([{ name: 'openai/gpt:1', provider: 'echo' }]);
    const reply = await post(gate, '/v1beta/models/openai/gpt%3A1:generateContent', CONTENTS);
    expect(reply.status).toBe(200);
  });

  test('a stream without alt=sse is refused, because its events would be a JSON list', async () => {
    await using gate = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const reply = await post(gate, '/v1beta/models/acme:streamGenerateContent', CONTENTS);
    expect(reply.status).toBe(400);
    expect(JSON.parse(reply.text)).toMatchObject({ error: { status: 'INVALID_ARGUMENT' } });
  });
});

describe('guardrails on generateContent', () => {
  const CARD = '4111 1111 1111 1111';
  const masking = { regex: { action: 'mask', rules: [{ builtin: 'creditCard' }] } };

  test('card numbers are masked in every text of a request, in both spellings of the instruction', async () => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, {
      model: {
        ...OPENAI,
        guardrails: {
          request: [{ ...masking, scope: ['systemPrompt', 'messages', 'toolInput', 'toolOutput'] }],
        },
      },
    });
    const contents = [
      { role: 'user', parts: [{ text: `Is ${CARD}` }, { text: 'valid?' }] },
      { role: 'model', parts: [{ functionCall: { name: 'check', args: { number: CARD } } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'check', response: { output: `no: ${CARD}` } } }] },
    ];
    for (const name of ['systemInstruction', 'system_instruction']) {
      await post(gate, PATH, { contents, [name]: { parts: [{ text: `Never say ${CARD}` }] } });
      expect(textOf(provider)).not.toContain('4111');
      expect(textOf(provider)).toContain('<CREDIT_CARD>');
    }
    expect(provider.received).toHaveLength(2);
  });

  test('card numbers are masked in an answer', async () => {
    await using provider = await llmProvider(answering(completion(`It is ${CARD}.`)));
    await using gate = await llmGateway(provider, {
      model: { ...OPENAI, guardrails: { response: [masking] } },
    });
    const reply = await post(gate, PATH, CONTENTS);
    expect(reply.text).not.toContain('4111');
    expect(textsIn(reply.text)).toBe('It is <CREDIT_CARD>.');
  });

  test.each([1, 3, 7])('a card number in pieces of %i characters does not pass a stream', async (size) => {
    const text = `Your card ${CARD} is valid.`;
    const pieces = text.match(new RegExp(`.{1,${size}}`, 'g')) ?? [];
    await using provider = await llmProvider(
      streaming((response) => {
        for (const content of pieces) response.write(chunk({ content }));
        response.end(chunk(undefined, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }) + DONE);
      }),
    );
    await using gate = await llmGateway(provider, {
      model: { ...OPENAI, guardrails: { streaming: 'Enabled', response: [masking] } },
    });
    const reply = await post(gate, STREAM_PATH, CONTENTS);
    expect(textsIn(reply.text)).toBe('Your card <CREDIT_CARD> is valid.');
    expect(reply.text).not.toMatch(/1111/);
  });

  test('a rejection has the envelope of Google', async () => {
    await using rejecting = await httpUpstream((_, response) =>
      response.end(JSON.stringify({ action: { body: 'Not here.', status_code: 403 } })),
    );
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, {
      model: { ...OPENAI, guardrails: { request: [webhook(rejecting)] } },
    });
    const reply = await post(gate, PATH, CONTENTS);
    expect(reply.status).toBe(403);
    expect(JSON.parse(reply.text)).toEqual({
      error: { code: 403, message: 'Not here.', status: 'PERMISSION_DENIED' },
    });
  });
});
