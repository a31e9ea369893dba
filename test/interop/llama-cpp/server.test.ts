import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../kit/gateway.ts';
import { modelsGateway } from '../../kit/llm-provider.ts';
import { until } from '../../kit/until.ts';
import { type LlamaServer, llamaServer, SAYS } from './llama-server.ts';

let chats: LlamaServer;
let vectors: LlamaServer;
beforeAll(async () => {
  chats = await llamaServer();
  vectors = await llamaServer('--embeddings', '--pooling', 'mean');
}, 120_000);
afterAll(async () => {
  await chats?.[Symbol.asyncDispose]();
  await vectors?.[Symbol.asyncDispose]();
});

/** What the gateway requests from the server: its own format, or chat completions for all. */
const PROVIDERS = {
  'its OpenAI API': 'oaiCompat',
  'its chat completions': { custom: { formats: [{ type: 'completions' }] } },
  'its Messages API': { custom: { formats: [{ type: 'messages' }] } },
} as const;

async function scene(provider: keyof typeof PROVIDERS = 'its chat completions') {
  const gate: TestGateway = await modelsGateway([
    { name: 'tiny', provider: PROVIDERS[provider], params: { baseUrl: `${chats.url}/v1` } },
    { name: 'vectors', provider: 'oaiCompat', params: { baseUrl: `${vectors.url}/v1` } },
  ]);
  return {
    gate,
    openai: new OpenAI({ baseURL: `${gate.url}/v1`, apiKey: 'any', maxRetries: 0 }),
    anthropic: new Anthropic({ baseURL: gate.url, apiKey: null, authToken: 'any', maxRetries: 0 }),
    google: new GoogleGenAI({ apiKey: 'any', httpOptions: { baseUrl: gate.url } }),
    [Symbol.asyncDispose]: gate.close,
  };
}

const user = (content: string) => [{ role: 'user' as const, content }];

/** The token counts that the server reports for a prompt, without the gateway. */
async function reported(content: string): Promise<{ input: string; output: string }> {
  const openai = new OpenAI({ baseURL: `${chats.url}/v1`, apiKey: 'any' });
  const { usage } = await openai.chat.completions.create({
    model: 'tiny',
    temperature: 0,
    messages: user(content),
  });
  return { input: `${usage?.prompt_tokens}`, output: `${usage?.completion_tokens}` };
}

/** The counts in the access log are those of the server. */
async function expectMetered({ gate }: { gate: TestGateway }, content: string): Promise<void> {
  const { input, output } = await reported(content);
  expect(await gate.accessLine(1)).toMatchObject({
    'gen_ai.usage.input_tokens': input,
    'gen_ai.usage.output_tokens': output,
  });
}

describe.each(Object.keys(PROVIDERS) as (keyof typeof PROVIDERS)[])(
  'a llama.cpp server by %s',
  (provider) => {
    test('a chat completion has the text and the usage of the server', async () => {
      await using served = await scene(provider);
      const { choices, usage } = await served.openai.chat.completions.create({
        model: 'tiny',
        temperature: 0,
        messages: user('Weather?'),
      });
      expect(choices[0]).toMatchObject({
        finish_reason: 'stop',
        message: { role: 'assistant', content: SAYS },
      });
      expect(`${usage?.prompt_tokens}`).toBe((await reported('Weather?')).input);
      await expectMetered(served, 'Weather?');
    });

    test('a stream of a chat completion has the words of the server one by one', async () => {
      await using served = await scene(provider);
      const stream = await served.openai.chat.completions.create({
        model: 'tiny',
        temperature: 0,
        stream: true,
        messages: user('Weather?'),
      });
      const deltas: string[] = [];
      for await (const { choices } of stream)
        if (choices[0]?.delta.content) deltas.push(choices[0].delta.content);
      expect(deltas.join('')).toBe(SAYS);
      expect(deltas.length).toBeGreaterThan(3);
      await expectMetered(served, 'Weather?');
    });

    test('a message has the text and the usage of the server, also in a stream', async () => {
      await using served = await scene(provider);
      const ask = { model: 'tiny', max_tokens: 50, messages: user('Weather?') };
      const said = await served.anthropic.messages.create(ask);
      expect(said).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: SAYS }] });
      await expectMetered(served, 'Weather?');
      const streamed = await served.anthropic.messages.stream(ask).finalMessage();
      expect(streamed).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: SAYS }] });
      const { output } = await reported('Weather?');
      expect(`${streamed.usage.output_tokens}`).toBe(output);
    });

    test('a response has the text of the server, also in a stream', async () => {
      await using served = await scene(provider);
      const ask = { model: 'tiny', temperature: 0, input: 'Weather?' };
      expect(await served.openai.responses.create(ask)).toMatchObject({
        status: 'completed',
        output_text: SAYS,
      });
      const events: string[] = [];
      for await (const event of await served.openai.responses.create({ ...ask, stream: true }))
        if (event.type === 'response.output_text.delta') events.push(event.delta);
      expect(events.join('')).toBe(SAYS);
    });

    test('an answer that the maximum of tokens cuts ends with its reason', async () => {
      await using served = await scene(provider);
      const { choices } = await served.openai.chat.completions.create({
        model: 'tiny',
        temperature: 0,
        max_tokens: 2,
        messages: user('Weather?'),
      });
      expect(choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'Hello from' } });
    });

    test('a prompt that is longer than the context is an error of the client', async () => {
      await using served = await scene(provider);
      const long = served.openai.chat.completions.create({
        model: 'tiny',
        messages: user('x'.repeat(9_000)),
      });
      await expect(long).rejects.toMatchObject({ status: 400 });
    });

    test('a client that leaves a stream ends the work of the server', async () => {
      await using served = await scene(provider);
      const stream = await served.openai.chat.completions.create({
        model: 'tiny',
        stream: true,
        max_tokens: 3_000,
        // Never ends by itself: the end of an answer has no chance.
        logit_bias: provider === 'its Messages API' ? null : { '2': -100 },
        temperature: 0,
        messages: user('Weather?'),
      });
      for await (const { choices } of stream) if (choices[0]?.delta.content) break;
      stream.controller.abort();
      await until(async () => (await chats.metric('requests_processing')) === 0);
    });
  },
);

describe('calls of a llama.cpp server', () => {
  const CITY = {
    type: 'object' as const,
    properties: { city: { type: 'string' as const, enum: ['Paris'] } },
    required: ['city'],
    additionalProperties: false,
  };

  test('a tool is called by chat completions and messages', async () => {
    await using served = await scene();
    const { choices } = await served.openai.chat.completions.create({
      model: 'tiny',
      temperature: 0,
      messages: user('Weather?'),
      tools: [{ type: 'function', function: { name: 'weather', parameters: CITY } }],
      tool_choice: 'required',
    });
    const [call] = choices[0]?.message.tool_calls ?? [];
    if (call?.type !== 'function') throw new Error('no function was called');
    expect(call.function.name).toBe('weather');
    expect(JSON.parse(call.function.arguments)).toEqual({ city: 'Paris' });
    const message = await served.anthropic.messages.create({
      model: 'tiny',
      max_tokens: 300,
      messages: user('Weather?'),
      tools: [{ name: 'weather', input_schema: CITY }],
      tool_choice: { type: 'any' },
    });
    expect(message.content.at(-1)).toMatchObject({
      type: 'tool_use',
      name: 'weather',
      input: { city: 'Paris' },
    });
    expect(message.stop_reason).toBe('tool_use');
  });

  test('the Gemini API generates content and counts tokens', async () => {
    await using served = await scene();
    const { models } = served.google;
    const said = await models.generateContent({
      model: 'tiny',
      contents: 'Weather?',
      config: { temperature: 0 },
    });
    expect(said.text).toBe(SAYS);
    await expectMetered(served, 'Weather?');
    expect(await models.countTokens({ model: 'tiny', contents: 'Weather?' })).toMatchObject({
      totalTokens: 2,
    });
  });

  test('text completions have the text and the usage of the server', async () => {
    await using served = await scene('its OpenAI API');
    const { choices, usage } = await served.openai.completions.create({
      model: 'tiny',
      prompt: 'Say it',
      temperature: 0,
    });
    expect(choices[0]?.text).toBe(SAYS);
    expect(await served.gate.accessLine(1)).toMatchObject({
      'gen_ai.usage.input_tokens': `${usage?.prompt_tokens}`,
      'gen_ai.usage.output_tokens': `${usage?.completion_tokens}`,
    });
  });

  test('embeddings reach clients of OpenAI, as numbers and as Base64, and of the Gemini API', async () => {
    await using served = await scene();
    const embed = (more: object) =>
      served.openai.embeddings.create({ model: 'vectors', input: ['one', 'two words'], ...more });
    const numbers = await embed({ encoding_format: 'float' });
    expect(numbers.data.map(({ embedding }) => embedding.length)).toEqual([288, 288]);
    expect(await served.gate.accessLine(1)).toMatchObject({
      'gen_ai.usage.input_tokens': `${numbers.usage.prompt_tokens}`,
    });
    const packed = await embed({});
    expect(packed.data[1]?.embedding[0]).toBeCloseTo(numbers.data[1]?.embedding[0] as number, 5);
    const { embeddings } = await served.google.models.embedContent({
      model: 'vectors',
      contents: ['one', 'two words'],
    });
    expect(embeddings?.map(({ values }) => values)).toEqual(numbers.data.map(({ embedding }) => embedding));
  });

  test('embeddings of a server that has none are an error of the server', async () => {
    await using served = await scene('its OpenAI API');
    const refused = served.openai.embeddings.create({ model: 'tiny', input: 'one' });
    await expect(refused).rejects.toMatchObject({ status: 501 });
  });
});
