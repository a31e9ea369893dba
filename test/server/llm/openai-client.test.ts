import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import {
  answering,
  bodyOf,
  chunk,
  completion,
  DONE,
  FINISH,
  llmGateway,
  llmProvider,
  modelsGateway,
  streaming,
} from '../../kit/llm-provider.ts';
import { until } from '../../kit/until.ts';

const client = ({ url }: { url: string }): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk-test', maxRetries: 0 });
const ask = { model: 'acme-mini', messages: [{ role: 'user' as const, content: 'say it again' }] };

describe('the official client', () => {
  test('chats, streams, embeds and lists with the built-in model', async () => {
    await using served = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const openai = client(served);
    const reply = await openai.chat.completions.create(ask);
    expect(reply.choices[0]?.message.content).toBe('say it again');
    expect(reply.usage?.total_tokens).toBe(6);
    const words: string[] = [];
    for await (const part of await openai.chat.completions.create({ ...ask, stream: true }))
      words.push(part.choices[0]?.delta.content ?? '');
    expect(words.join('')).toBe('say it again');
    const usage = [];
    const options = { stream: true as const, stream_options: { include_usage: true } };
    for await (const part of await openai.chat.completions.create({ ...ask, ...options }))
      if (part.usage) usage.push(part.usage.total_tokens);
    expect(usage).toEqual([6]);
    const vectors = await openai.embeddings.create({ model: 'e', input: 'text', encoding_format: 'float' });
    expect(vectors.data[0]?.embedding).toHaveLength(3);
    const models = await openai.models.list();
    expect(models.data.map(({ id }) => id)).toEqual(['*']);
  });

  test('gets tools through in both directions', async () => {
    const call = {
      id: 'c1',
      type: 'function' as const,
      function: { name: 'pay', arguments: '{"amount":1}' },
    };
    const message = { role: 'assistant', content: null, tool_calls: [call] };
    const choices = [{ index: 0, message, finish_reason: 'tool_calls' }];
    await using provider = await llmProvider(answering(completion('', { choices })));
    await using served = await llmGateway(provider);
    const parameters = { type: 'object', properties: { amount: { type: 'number' } } };
    const tools = [{ type: 'function' as const, function: { name: 'pay', parameters } }];
    const reply = await client(served).chat.completions.create({ ...ask, tools });
    expect(reply.choices[0]?.message.tool_calls).toEqual([call]);
    expect(bodyOf(provider)).toEqual({ ...ask, tools });
  });

  test('understands every refusal', async () => {
    await using served = await modelsGateway([{ name: 'acme-*', provider: 'echo' }], {
      policies: { localRateLimit: [{ maxTokens: 2, fillInterval: '1h' }] },
    });
    const openai = client(served);
    await expect(openai.chat.completions.create({ ...ask, model: 'other' })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      type: 'invalid_request_error',
    });
    await openai.chat.completions.create(ask);
    const limited = openai.chat.completions.create(ask);
    await expect(limited).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    await expect(limited).rejects.toThrow('rate limit exceeded');
  });

  test('is told in the stream when the provider breaks off', async () => {
    await using provider = await llmProvider(
      streaming((response) => response.write(chunk({ content: 'Hel' }), () => response.destroy())),
    );
    await using served = await llmGateway(provider);
    const stream = await client(served).chat.completions.create({ ...ask, stream: true });
    const read = async (): Promise<void> => {
      for await (const part of stream) expect(part.choices[0]?.delta.content).toBe('Hel');
    };
    await expect(read()).rejects.toMatchObject({ code: 'upstream_failed' });
  });

  test('leaves a stream, and the provider is left', async () => {
    let left = false;
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(chunk({ content: 'Hel' }));
        response.once('close', () => {
          left = true;
        });
      }),
    );
    await using served = await llmGateway(provider);
    const stream = await client(served).chat.completions.create({ ...ask, stream: true });
    for await (const part of stream) {
      expect(part.choices[0]?.delta.content).toBe('Hel');
      stream.controller.abort();
    }
    await until(() => left);
    await served.accessLine(1);
  });

  test('reads a stream of a provider to its end', async () => {
    const role = chunk({ role: 'assistant', content: '' });
    const said = role + ['Grüß', 'e ', '🎉'].map((content) => chunk({ content })).join('');
    await using provider = await llmProvider(streaming((response) => response.end(said + FINISH + DONE)));
    await using served = await llmGateway(provider);
    const final = await client(served).chat.completions.stream(ask).finalChatCompletion();
    expect(final.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Grüße 🎉' } });
    expect(bodyOf(provider)['messages']).toEqual(ask.messages);
  });
});
