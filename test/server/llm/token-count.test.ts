import Anthropic from '@anthropic-ai/sdk';
import { describe, expect, test } from 'vitest';
import {
  answering,
  bodyOf,
  guardrail,
  llmGateway,
  llmProvider,
  modelsGateway,
  webhook,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

const client = ({ url }: { url: string }): Anthropic =>
  new Anthropic({ baseURL: url, apiKey: null, authToken: 'sk-test', maxRetries: 0 });

const ask = { model: 'm', messages: [{ role: 'user' as const, content: 'Hello' }] };

describe('POST /v1/messages/count_tokens', () => {
  test('token counts come from the provider if it has the call, and cost nothing', async () => {
    await using provider = await llmProvider(answering('{"input_tokens":14}'));
    const inline = { providers: { anthropic: { models: { m: { rates: { input: '1' } } } } } };
    await using served = await llmGateway(provider, {
      model: { provider: 'anthropic' },
      params: { apiKey: 'sk-provider' },
      more: { config: { modelCatalog: [{ inline }] } },
    });
    expect(await client(served).messages.countTokens(ask)).toEqual({ input_tokens: 14 });
    expect(provider.received[0]).toMatchObject({
      target: '/v1/messages/count_tokens',
      headers: { 'x-api-key': 'sk-provider' },
    });
    expect(bodyOf(provider)).toEqual(ask);
    const line = await served.accessLine(1);
    expect(line).not.toHaveProperty(['gen_ai.usage.input_tokens']);
    expect(line).not.toHaveProperty(['gw.ai.usage.cost.total']);
  });

  test('token counts are estimated by the gateway if the provider does not have the call', async () => {
    await using provider = await llmProvider();
    await using checked = await guardrail(() => ({ body: 'not this', status_code: 403 }));
    await using served = await llmGateway(provider, {
      model: { provider: 'oaiCompat' },
      llm: { guardrails: { request: [webhook(checked)] } },
    });
    const { messages } = client(served);
    // 16 + 24 + 3 + 34 bytes of texts are 20 tokens, and the image counts as 1,000.
    const count = await messages.countTokens({
      model: 'm',
      system: 'x'.repeat(16),
      messages: [
        { role: 'user', content: 'ü'.repeat(12) },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'abc' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(9_000) } },
          ],
        },
      ],
      tools: [{ name: 'pay', description: 'y'.repeat(34), input_schema: { type: 'object' } }],
    });
    expect(count).toEqual({ input_tokens: 1_020 });
    expect(provider.received).toEqual([]);
    expect(checked.received).toEqual([]);
    const line = await served.accessLine(1);
    expect(line).toMatchObject({
      reason: 'DirectResponse',
      'gen_ai.request.model': 'm',
      'http.status': '200',
    });
    expect(line).not.toHaveProperty(['gen_ai.usage.input_tokens']);
    await expect(messages.countTokens({ model: 'm' } as never)).rejects.toMatchObject({
      status: 400,
      type: 'invalid_request_error',
    });
  });

  test('token counts work for a client that has exhausted its token limit', async () => {
    await using served = await modelsGateway([{ name: '*', provider: 'echo' }], {
      policies: { localRateLimit: [{ maxTokens: 1, fillInterval: '1h', type: 'tokens' }] },
    });
    const { messages } = client(served);
    await messages.create({ ...ask, max_tokens: 10 });
    await served.accessLine(1);
    const refused = await send(`${served.url}/v1/messages`, { method: 'POST', body: JSON.stringify(ask) });
    expect(refused.status).toBe(429);
    expect(await messages.countTokens(ask)).toEqual({ input_tokens: 1 });
  });
});

describe('POST /v1beta/models/{model}:countTokens', () => {
  const count = async ({ url }: { url: string }, body: object): Promise<{ status: number; text: string }> =>
    send(`${url}/v1beta/models/m:countTokens`, { method: 'POST', body: JSON.stringify(body) });

  const parts = [
    { text: 'ü'.repeat(12) },
    { inlineData: { mimeType: 'image/png', data: 'A'.repeat(9_000) } },
  ];
  const contents = [{ role: 'user', parts }];
  const systemInstruction = { parts: [{ text: 'x'.repeat(16) }] };
  const request = { model: 'models/m', contents, systemInstruction };

  test.each([
    ['the contents', { contents }, 1_006],
    ['a whole request', { generateContentRequest: request }, 1_010],
    ['a whole request in snake case', { generate_content_request: request }, 1_010],
  ])(
    'tokens of %s are estimated for the Gemini API in front of another provider',
    async (_, body, tokens) => {
      await using provider = await llmProvider();
      await using served = await llmGateway(provider, { model: { provider: 'oaiCompat' } });
      const reply = await count(served, body);
      expect(JSON.parse(reply.text)).toEqual({ totalTokens: tokens });
      expect(provider.received).toEqual([]);
      expect(await served.accessLine(1)).not.toHaveProperty(['gen_ai.usage.input_tokens']);
    },
  );

  test('a request to count tokens without contents is refused in the format of Google', async () => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider, { model: { provider: 'oaiCompat' } });
    const reply = await count(served, {});
    expect(JSON.parse(reply.text)).toEqual({
      error: { code: 400, message: 'contents: a list is required', status: 'INVALID_ARGUMENT' },
    });
  });
});
