import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../kit/gateway.ts';
import { modelsGateway } from '../../kit/llm-provider.ts';
import { until } from '../../kit/until.ts';
import { SAID } from '../client-outcomes.ts';
import { type LitellmProxy, litellmProxy, PROXY_KEY } from './proxy.ts';

/** Formats that the gateway uses at LiteLLM's proxy; its chats are translated to them. */
const PROVIDERS = {
  compatible: 'oaiCompat',
  completions: { custom: { formats: [{ type: 'completions' }] } },
  messages: { custom: { formats: [{ type: 'messages' }] } },
  responses: { custom: { formats: [{ type: 'responses' }] } },
} as const;

let proxy: LitellmProxy;
beforeAll(async () => {
  proxy = await litellmProxy();
});
afterAll(() => proxy?.[Symbol.asyncDispose]());

/** A gateway with the models of the proxy, and the official clients. */
async function scene(format: keyof typeof PROVIDERS, apiKey = PROXY_KEY) {
  const models = ['mock', 'chat', 'none'].map((name) => ({
    name,
    provider: PROVIDERS[format],
    params: { baseUrl: `${proxy.url}/v1`, apiKey },
  }));
  const gate: TestGateway = await modelsGateway(models);
  return {
    gate,
    openai: new OpenAI({ baseURL: `${gate.url}/v1`, apiKey: 'any', maxRetries: 0 }),
    anthropic: new Anthropic({ baseURL: gate.url, apiKey: null, authToken: 'any', maxRetries: 0 }),
    [Symbol.asyncDispose]: gate.close,
  };
}

const FORMATS = Object.keys(PROVIDERS) as (keyof typeof PROVIDERS)[];
const USAGE = { 'gen_ai.usage.input_tokens': '12', 'gen_ai.usage.output_tokens': '7' };

const user = (content: string) => [{ role: 'user' as const, content }];

const CITY = {
  type: 'object' as const,
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};

describe.each(FORMATS)("LiteLLM's proxy as a provider of %s", (format) => {
  test("chat completions have the text and the usage of LiteLLM's proxy", async () => {
    await using served = await scene(format);
    const { completions } = served.openai.chat;
    const said = await completions.create({ model: 'mock', messages: user('Weather?') });
    expect(said.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { role: 'assistant', content: 'It is sunny.' },
    });
    expect(await served.gate.accessLine(1)).toMatchObject({ 'http.status': '200' });
    const reply = await completions.create({ model: 'chat', messages: user('Hello') });
    expect(reply.choices[0]?.message.content).toBe('You said: Hello');
    expect(reply.usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 });
    expect(await served.gate.accessLine(2)).toMatchObject(USAGE);
  });

  test("messages have the text and the usage of LiteLLM's proxy", async () => {
    await using served = await scene(format);
    const body = { model: 'chat', max_tokens: 50, messages: user('Hello'), system: 'Be brief.' };
    expect(await served.anthropic.messages.create(body)).toMatchObject({
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: SAID.hello }],
      usage: { input_tokens: 12, output_tokens: 7 },
    });
    expect(await served.gate.accessLine(1)).toMatchObject(USAGE);
  });

  test("responses have the text and the usage of LiteLLM's proxy", async () => {
    await using served = await scene(format);
    const body = { model: 'chat', input: 'Hello', instructions: 'Be brief.' };
    expect(await served.openai.responses.create(body)).toMatchObject({
      status: 'completed',
      output_text: SAID.hello,
      usage: { input_tokens: 12, output_tokens: 7 },
    });
    expect(await served.gate.accessLine(1)).toMatchObject(USAGE);
  });

  test("chat completions, messages and responses of LiteLLM's proxy are streamed", async () => {
    await using served = await scene(format);
    const texts: string[] = [];
    const body = { model: 'chat', messages: user('one two three') };
    const options = { stream: true as const, stream_options: { include_usage: true } };
    for await (const part of await served.openai.chat.completions.create({ ...body, ...options }))
      if (part.choices[0]?.delta.content) texts.push(part.choices[0].delta.content);
    expect(texts.join('')).toBe(SAID.words);
    expect(texts.length).toBeGreaterThan(1);
    expect(await served.gate.accessLine(1)).toMatchObject(USAGE);
    const message = await served.anthropic.messages.stream({ ...body, max_tokens: 50 }).finalMessage();
    expect(message).toMatchObject({ stop_reason: 'end_turn', content: [{ text: SAID.words }] });
    expect(await served.gate.accessLine(2)).toMatchObject(USAGE);
    const stream = served.openai.responses.stream({ model: 'chat', input: 'one two three' });
    expect((await stream.finalResponse()).output_text).toBe(SAID.words);
    expect(await served.gate.accessLine(3)).toMatchObject(USAGE);
  });

  test("tools are called by LiteLLM's proxy, and their results are sent to it", async () => {
    await using served = await scene(format);
    const { openai, anthropic } = served;
    const fn = { name: 'weather', parameters: CITY };
    const body = { model: 'chat', tools: [{ type: 'function' as const, function: fn }] };
    const question = user('Weather?');
    const message = (await openai.chat.completions.create({ ...body, messages: question })).choices[0]
      ?.message;
    expect(message?.tool_calls).toMatchObject([{ function: { name: 'weather' } }]);
    const [call] = message?.tool_calls ?? [];
    expect(JSON.parse(call?.type === 'function' ? call.function.arguments : '')).toEqual({ city: 'Paris' });
    const result = { role: 'tool' as const, tool_call_id: call?.id ?? '', content: 'sunny' };
    const answer = await openai.chat.completions.create({
      ...body,
      messages: [...question, message as OpenAI.ChatCompletionMessage, result],
    });
    expect(answer.choices[0]?.message.content).toBe(SAID.result);
    const streamed = await anthropic.messages
      .stream({
        model: 'chat',
        max_tokens: 50,
        messages: question,
        tools: [{ name: 'weather', input_schema: CITY }],
      })
      .finalMessage();
    expect(streamed).toMatchObject({
      stop_reason: 'tool_use',
      content: [{ type: 'tool_use', name: 'weather', input: { city: 'Paris' } }],
    });
  });

  test("errors of LiteLLM's proxy have the classes of the clients", async () => {
    await using served = await scene(format);
    const { completions } = served.openai.chat;
    const { messages } = served.anthropic;
    const ask = (model: string, text: string) => ({ model, max_tokens: 50, messages: user(text) });
    await expect(completions.create(ask('none', 'Hi'))).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    expect(await served.gate.accessLine(1)).toMatchObject({ 'http.status': '400' });
    await expect(messages.create(ask('none', 'Hi'))).rejects.toBeInstanceOf(Anthropic.BadRequestError);
    await expect(completions.create(ask('chat', 'busy'))).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    const limited = messages.create(ask('chat', 'busy'));
    await expect(limited).rejects.toBeInstanceOf(Anthropic.RateLimitError);
    await expect(limited).rejects.toMatchObject({ type: 'rate_limit_error' });
  });
});

test("a key that LiteLLM's proxy does not know is an error without the key", async () => {
  await using served = await scene('compatible', 'sk-wrong');
  const refused = served.openai.chat.completions.create({ model: 'mock', messages: user('Hi') });
  // Without a database it knows no other key than its own, and says 400.
  await expect(refused).rejects.toMatchObject({
    status: 400,
    message: expect.not.stringContaining('sk-wrong') as string,
  });
});

test("a client that leaves a stream leaves it at the server behind LiteLLM's proxy, too", async () => {
  await using served = await scene('messages');
  const { left } = proxy.server;
  const body = { model: 'chat', messages: user('wait'), stream: true as const };
  const stream = await served.openai.chat.completions.create(body);
  for await (const part of stream) if (part.choices[0]?.delta.content) stream.controller.abort();
  await until(() => proxy.server.left > left);
});
