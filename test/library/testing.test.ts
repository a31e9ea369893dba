import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { GoogleGenAI } from '@google/genai';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { generateText, streamText } from 'ai';
import OpenAI, { APIError } from 'openai';
import { describe, expect, test } from 'vitest';
import { stubMcpServer, stubModel, testGateway } from '../../src/library/testing/index.ts';

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const post = (url: string, body: object) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const messages = [{ role: 'user' as const, content: 'Hi' }];

describe('stubModel', () => {
  test('a stub model answers in the format of each provider and client, in streams too', async () => {
    await using model = await stubModel('Hello there.');
    for (const provider of ['openAI', 'anthropic', 'gemini'] as const) {
      await using gateway = await testGateway({ llm: { models: [{ name: '*', ...model.as(provider) }] } });
      const openai = createOpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none' });
      const anthropic = createAnthropic({ baseURL: `${gateway.url}/v1`, apiKey: 'none' });
      const google = new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: gateway.url } });
      for (const each of [openai.chat('m'), openai.responses('m'), anthropic('m')]) {
        expect((await generateText({ model: each, messages })).text).toBe('Hello there.');
        expect(await streamText({ model: each, messages }).text).toBe('Hello there.');
      }
      const answer = await google.models.generateContent({ model: 'm', contents: 'Hi' });
      expect(answer.text).toBe('Hello there.');
    }
    expect(model.calls.length).toBe(21);
    for (const { model: name, messages: sent } of model.calls) {
      expect(name).toBe('m');
      expect(JSON.stringify(sent)).toContain('Hi');
    }
  });

  test('a stub model calls tools, and reports the tokens that it is told to', async () => {
    await using model = await stubModel();
    model.answer({
      toolCalls: [{ name: 'add', arguments: { a: 1, b: 2 } }],
      usage: { input: 100, output: 20 },
    });
    await using gateway = await testGateway({ llm: { models: [{ name: '*', ...model.as('anthropic') }] } });
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none' });
    const tools = [{ type: 'function' as const, function: { name: 'add', parameters: { type: 'object' } } }];
    const first = await openai.chat.completions.create({ model: 'm', messages, tools });
    expect(first.choices[0]?.message.tool_calls).toMatchObject([
      { function: { name: 'add', arguments: '{"a":1,"b":2}' } },
    ]);
    expect(first.usage).toMatchObject({ prompt_tokens: 100, completion_tokens: 20 });
    expect(model.calls[0]?.tools).toEqual(['add']);
    const second = await openai.chat.completions.create({ model: 'm', messages });
    expect(second.choices[0]?.message.content).toBe('Hello.');
  });

  test('a stub model fails as it is told: with a status, without an answer, in the middle of one', async () => {
    await using model = await stubModel();
    await using gateway = await testGateway({ llm: { models: [{ name: '*', ...model.as('openAI') }] } });
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const chat = (signal?: AbortSignal) =>
      openai.chat.completions.create({ model: 'm', messages }, { signal: signal ?? null });
    model.answer({ status: 429, message: 'slow down', headers: { 'retry-after': '7' } }, 'hang', 'break');
    const refused = await chat().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(APIError);
    expect(refused).toMatchObject({ status: 429, message: expect.stringContaining('slow down') });
    expect((refused as APIError).headers?.get('retry-after')).toBe('7');
    const controller = new AbortController();
    const hanging = chat(controller.signal).catch((error: unknown) => error);
    await expect.poll(() => model.calls.length).toBe(2);
    controller.abort();
    expect(await hanging).toBeInstanceOf(Error);
    await expect(
      openai.chat.completions.create({ model: 'm', messages, stream: true }).then(async (stream) => {
        let text = '';
        for await (const part of stream) text += part.choices[0]?.delta.content ?? '';
        return text;
      }),
    ).rejects.toThrow();
    expect((await chat()).choices[0]?.message.content).toBe('Hello.');
  });

  test('a stub model breaks off in the middle of an answer, in the format of each client, of streams too', async () => {
    await using model = await stubModel();
    const plain = { model: 'm', messages, max_tokens: 9 };
    const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
    for (const [path, body, type] of [
      ['/v1/chat/completions', plain, 'application/json'],
      ['/v1/messages', plain, 'application/json'],
      ['/v1/responses', { model: 'm', input: 'Hi' }, 'application/json'],
      ['/v1beta/models/m:generateContent', { contents }, 'application/json'],
      ['/v1/chat/completions', { ...plain, stream: true }, 'text/event-stream'],
      ['/v1/messages', { ...plain, stream: true }, 'text/event-stream'],
      ['/v1/responses', { model: 'm', input: 'Hi', stream: true }, 'text/event-stream'],
      ['/v1beta/models/m:streamGenerateContent?alt=sse', { contents }, 'text/event-stream'],
    ] as const) {
      model.answer('break');
      const response = await post(`${model.url}${path}`, body);
      expect(response.headers.get('content-type')).toContain(type);
      const received: string[] = [];
      const reading = async (): Promise<void> => {
        for await (const part of response.body ?? []) received.push(Buffer.from(part).toString());
      };
      await expect(reading()).rejects.toThrow();
      expect(received.join('')).toMatch(type === 'application/json' ? /^\{"/ : /"This/);
    }
    for (const provider of ['openAI', 'anthropic', 'gemini'] as const) {
      await using gateway = await testGateway({ llm: { models: [{ name: '*', ...model.as(provider) }] } });
      model.answer('break');
      const outcome = await post(`${gateway.url}/v1/chat/completions`, plain)
        .then(async (response) => ({ status: response.status, text: await response.text() }))
        .catch(() => 'broken');
      if (outcome !== 'broken') expect(outcome).toMatchObject({ status: 502 });
    }
  });

  test('a stub model refuses answers that are none', async () => {
    await using model = await stubModel();
    for (const [answer, says] of [
      [{ staus: 429 }, 'Unrecognized key: "staus"'],
      [{ status: 429, text: 'x' }, 'Unrecognized key: "text"'],
      [{ status: 200 }, '>=400'],
      [{ status: 600 }, '<=599'],
      [{ toolCalls: [{ name: 'add', args: {} }] }, 'Unrecognized key: "args"'],
      [{ usage: { inputTokens: 1 } }, 'usage.input'],
      [undefined, 'received undefined'],
      [['Hello.'], 'received array'],
    ] as const) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- tests in JavaScript have no types.
      const wrong = answer as unknown as string;
      expect(() => model.answer('right', wrong)).toThrow(TypeError);
      expect(() => model.answer(wrong)).toThrow(says);
      if (answer !== undefined) await expect(stubModel(wrong)).rejects.toThrow(says);
    }
    const answer = await post(`${model.url}/v1/chat/completions`, { model: 'm', messages });
    expect(await answer.text()).toContain('Hello.');
  });

  test('a stub model answers chats only, and says so in the format of the API', async () => {
    await using model = await stubModel();
    for (const path of ['/v1/embeddings', '/v1/images/generations', '/v1/completions']) {
      const response = await post(`${model.url}${path}`, { model: 'm', input: 'Hi', prompt: 'Hi' });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({
        error: { type: 'invalid_request_error', message: expect.stringContaining(`not ${path}`) },
      });
    }
    const content = { parts: [{ text: 'Hi' }] };
    const gemini = await post(`${model.url}/v1beta/models/m:embedContent`, { content });
    expect(await gemini.json()).toMatchObject({ error: { code: 404, status: 'NOT_FOUND' } });
    expect(model.calls).toEqual([]);
  });

  test('a stub model reads requests as large as a gateway forwards', async () => {
    await using model = await stubModel();
    await using gateway = await testGateway({ llm: { models: [{ name: '*', ...model.as('anthropic') }] } });
    const content = 'x'.repeat(30_000_000);
    const response = await post(`${gateway.url}/v1/chat/completions`, {
      model: 'm',
      messages: [{ role: 'user', content }],
    });
    expect(await response.text()).toContain('Hello.');
    expect(JSON.stringify(model.calls[0]?.messages).length).toBeGreaterThan(content.length);
  });
});

async function connected(url: string): Promise<Client1> {
  const client = new Client1({ name: 'test', version: '1' });
  await client.connect(new Transport1(new URL('/mcp', url)));
  return client;
}

describe('stubMcpServer', () => {
  const calculator = () =>
    stubMcpServer({
      add: {
        description: 'Adds two numbers.',
        inputSchema: {
          type: 'object',
          properties: { a: { type: 'number' }, b: { type: 'number' } },
          required: ['a', 'b'],
        },
        annotations: { readOnlyHint: true },
        run: ({ a, b }) => ({ sum: Number(a) + Number(b) }),
      },
      fail: () => {
        throw new Error('out of order');
      },
    });

  test('a stub server lists and runs its tools, and remembers the calls', async () => {
    await using tools = await calculator();
    await using gateway = await testGateway({ mcp: { targets: [tools.target('calc')] } });
    const client = await connected(gateway.url);
    const listed = await client.listTools();
    expect(listed.tools).toMatchObject([
      { name: 'add', description: 'Adds two numbers.', annotations: { readOnlyHint: true } },
      { name: 'fail' },
    ]);
    const sum = await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } });
    expect(sum).toMatchObject({
      structuredContent: { sum: 3 },
      content: [{ type: 'text', text: '{"sum":3}' }],
    });
    const failed = await client.callTool({ name: 'fail' });
    expect(failed).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('out of order') }],
    });
    expect(tools.calls).toEqual([
      { tool: 'add', arguments: { a: 1, b: 2 } },
      { tool: 'fail', arguments: {} },
    ]);
    await client.close();
  });
});

test('a stub server reads calls as large as a gateway forwards', async () => {
  await using server = await stubMcpServer({ length: ({ text }) => String(text).length });
  await using gateway = await testGateway({ mcp: { targets: [server.target('texts')] } });
  const client = await connected(gateway.url);
  const result = await client.callTool({ name: 'length', arguments: { text: 'x'.repeat(2_000_000) } });
  expect(result).toMatchObject({ content: [{ text: '2000000' }] });
  await client.close();
});

test('a test gateway opens free ports of the loopback only, whatever the configuration says', async () => {
  const config = { gateways: { a: { port: 80, address: '::' }, b: { port: 81, address: '0.0.0.0' } } };
  await using one = await testGateway(config);
  await using other = await testGateway(config);
  const urls = [...Object.values(one.urls), ...Object.values(other.urls)];
  expect(new Set(urls).size).toBe(4);
  for (const url of urls) {
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await fetch(url)).status).toBe(404);
    await expect(fetch(url.replace('127.0.0.1', '127.0.0.2'))).rejects.toThrow('fetch failed');
  }
  await one.idle();
  expect(one.requests).toMatchObject([{ status: 404 }, { status: 404 }]);
});

test('idle waits for requests that are open, and clear forgets what was kept', async () => {
  await using model = await stubModel();
  await using gateway = await testGateway({
    config: { logging: { level: 'debug' } },
    llm: { models: [{ name: '*', ...model.as('openAI') }] },
  });
  model.answer('hang');
  const body = JSON.stringify({ model: 'm', messages });
  const controller = new AbortController();
  const open = gateway.fetch('/v1/chat/completions', { method: 'POST', body, signal: controller.signal });
  await expect.poll(() => model.calls.length).toBe(1);
  let isIdle = false;
  const idle = gateway.idle().then(() => {
    isIdle = true;
  });
  await (await fetch(`${gateway.url}/v1/models`)).text();
  expect(isIdle).toBe(false);
  controller.abort();
  await expect(open).rejects.toThrow('aborted');
  await idle;
  expect(gateway.requests).toMatchObject([{ status: 200 }, { model: 'm', status: 499, cut: 'client' }]);
  expect(gateway.messages.length).toBeGreaterThan(0);
  gateway.clear();
  expect([gateway.requests, gateway.messages]).toEqual([[], []]);
});
