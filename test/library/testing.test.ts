import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { GoogleGenAI } from '@google/genai';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { generateText, streamText } from 'ai';
import OpenAI, { APIError } from 'openai';
import { describe, expect, test } from 'vitest';
import {
  assertThat,
  type GatewayMatchers,
  matchers,
  stubMcpServer,
  stubModel,
  testGateway,
} from '../../src/library/testing/index.ts';

declare module 'vitest' {
  interface Matchers<R extends void | Promise<void>, T> extends GatewayMatchers<Promise<void>> {}
}
expect.extend(matchers);
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

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
});

describe('stubMcpServer and the matchers', () => {
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

  async function connected(url: string): Promise<Client1> {
    const client = new Client1({ name: 'test', version: '1' });
    await client.connect(new Transport1(new URL('/mcp', url)));
    return client;
  }

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

  test('matchers tell which tool was called, and what has denied a request', async () => {
    await using tools = await calculator();
    await using gateway = await testGateway({
      gateways: { default: { port: 3000 } },
      mcp: {
        targets: [tools.target('calc')],
        policies: { mcpAuthorization: { rules: [{ deny: 'mcp.tool.name == "fail"' }] } },
      },
    });
    const client = await connected(gateway.url);
    await expect(gateway).not.toHaveCalledTool('add');
    await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } });
    await expect(gateway).toHaveCalledTool('add');
    await assertThat(gateway).toHaveCalledTool('add', 'calc');
    await expect(assertThat(gateway).toHaveCalledTool('add', 'other')).rejects.toThrow(
      /^expected a call of the tool other \/ add\n {2}initialize \/mcp 200/,
    );
    await client.callTool({ name: 'fail' }).catch(() => undefined);
    await expect(gateway).not.toHaveCalledTool('fail');
    gateway.clear();
    expect(gateway.requests).toEqual([]);
    await client.close();
  });

  test('matchers tell what calls cost, and which policy of requests has denied one', async () => {
    await using model = await stubModel({ text: 'Hello.', usage: { input: 1_000, output: 100 } });
    await using gateway = await testGateway({
      llm: {
        models: [{ name: '*', ...model.as('openAI') }],
        policies: { apiKey: { mode: 'strict', keys: [{ key: 'key-of-the-test' }] } },
      },
      config: {
        modelCatalog: [
          { inline: { providers: { openai: { models: { m: { rates: { input: '1', output: '10' } } } } } } },
        ],
      },
    });
    const chat = (apiKey: string) =>
      new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 }).chat.completions.create({
        model: 'm',
        messages,
      });
    await chat('key-of-the-test');
    await expect(gateway).toHaveCost(0.002);
    await expect(gateway).not.toHaveCost(0.003);
    await expect(chat('wrong')).rejects.toThrow();
    await expect(gateway).toBeDeniedBy('apiKey');
  });
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
