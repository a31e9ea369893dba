import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../kit/gateway.ts';
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
  let counting: TestGateway;
  beforeAll(async () => {
    counting = await modelsGateway([
      { name: '*', provider: 'oaiCompat', params: { baseUrl: 'http://127.0.0.1:9' } },
    ]);
  });
  afterAll(() => counting[Symbol.asyncDispose]());

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

  // BerriAI/litellm#36604
  const data = 'A'.repeat(9_000);
  const url = 'https://example.com/a-path-that-is-no-text-of-the-prompt';
  const image = { type: 'image', source: { type: 'url', url } };
  test.each<[string, number, object[]]>([
    ['a PDF', 1, [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data } }]],
    ['a PDF by its URL', 1, [{ type: 'document', source: { type: 'url', url } }]],
    ['a PDF by its id', 1, [{ type: 'document', source: { type: 'file', file_id: data } }]],
    ['images in a document', 2, [{ type: 'document', source: { type: 'content', content: [image, image] } }]],
    [
      'media in the result of a tool',
      2,
      [{ type: 'tool_result', content: [image, { type: 'document', source: image.source }] }],
    ],
    ['an image of chat completions', 1, [{ type: 'image_url', image_url: { url } }]],
    ['a file of chat completions', 1, [{ type: 'file', file: { file_data: data, filename: '' } }]],
    ['a recording', 1, [{ type: 'input_audio', input_audio: { data, format: 'wav' } }]],
    ['a video', 1, [{ type: 'video_url', video_url: { url } }]],
    ['an image of responses', 1, [{ type: 'input_image', image_url: url }]],
    ['a file of responses by its URL', 1, [{ type: 'input_file', file_url: url }]],
    [
      'a result with an image of responses',
      1,
      [{ type: 'function_call_output', output: [{ type: 'input_image', file_id: data }] }],
    ],
    [
      'a screenshot',
      1,
      [{ type: 'computer_call_output', output: { type: 'computer_screenshot', image_url: url } }],
    ],
    ['an image that was made', 1, [{ type: 'image_generation_call', result: data }]],
    ['a file of Gemini', 1, [{ fileData: { mimeType: 'application/pdf', fileUri: url } }]],
    [
      'media in a result of Gemini',
      1,
      [{ functionResponse: { response: {}, parts: [{ inlineData: { mimeType: 'image/png', data } }] } }],
    ],
    [
      'no medium: a document of text',
      0,
      [{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: '' } }],
    ],
    [
      'no medium: the source of a text',
      0,
      [{ type: 'text', text: '', annotations: [{ type: '', file_id: '7', url: '' }] }],
    ],
    ['no medium: arguments of a tool', 0, [{ type: 'tool_use', name: '', input: { image_url: '' } }]],
    ['no medium: a search in files', 0, [{ type: 'file_search_call', queries: [] }]],
  ])('%s counts as %d times 1,000 tokens', async (_, count, content) => {
    const messages = [{ role: 'user', content }] as never;
    const tools = [{ type: 'image_generation', input_schema: { properties: { file_id: {} } } }] as never;
    expect(await client(counting).messages.countTokens({ model: 'm', messages, tools })).toEqual({
      input_tokens: count * 1_000,
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
