import type { ServerResponse } from 'node:http';
import Anthropic from '@anthropic-ai/sdk';
import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { WIRE } from '../../kit/llm-formats.ts';
import {
  answering,
  EVERY_FORMAT,
  guardrail,
  llmGateway,
  llmProvider,
  modelsGateway,
  streaming,
  webhook,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

const client = ({ url }: { url: string }): Anthropic =>
  new Anthropic({ baseURL: url, apiKey: null, authToken: 'sk-test', maxRetries: 0 });

const ask = {
  model: 'acme-mini',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'say it again' }],
};

const tools = [
  {
    name: 'pay',
    description: 'Pays.',
    input_schema: { type: 'object' as const, properties: { amount: { type: 'number' } } },
  },
];

const ECHO = [{ name: '*', provider: 'echo' }];

describe('the official Anthropic client', () => {
  test('the official Anthropic client chats, streams and counts tokens with the built-in model', async () => {
    await using served = await modelsGateway(ECHO);
    const { messages } = client(served);
    const reply = await messages.create(ask);
    expect(reply.content).toEqual([{ type: 'text', text: 'say it again' }]);
    expect(reply.usage).toMatchObject({ input_tokens: 3, output_tokens: 3 });
    const stream = messages.stream(ask);
    const words: string[] = [];
    stream.on('text', (text) => words.push(text));
    const final = await stream.finalMessage();
    expect(words).toEqual(['say', ' it', ' again']);
    expect(final).toMatchObject({ content: [{ text: 'say it again' }], stop_reason: 'end_turn' });
    expect(final.usage).toMatchObject({ input_tokens: 3, output_tokens: 3 });
    expect(await messages.countTokens({ model: 'acme-mini', messages: ask.messages })).toEqual({
      input_tokens: 3,
    });
    const cut = await messages.create({ ...ask, max_tokens: 2 });
    expect(cut).toMatchObject({ content: [{ text: 'say it' }], stop_reason: 'max_tokens' });
  });

  test.each([
    ['any', { type: 'any' as const }],
    ['named', { type: 'tool' as const, name: 'pay' }],
  ])(
    'the official Anthropic client gets a call of a forced tool from the built-in model: %s',
    async (_, choice) => {
      await using served = await modelsGateway(ECHO);
      const { messages } = client(served);
      const messagesOfUser = [{ role: 'user' as const, content: '{"amount": 1}' }];
      const body = { ...ask, messages: messagesOfUser, tools, tool_choice: choice };
      const call = { type: 'tool_use', name: 'pay', input: { amount: 1 } };
      const reply = await messages.create(body);
      expect(reply).toMatchObject({ stop_reason: 'tool_use', content: [call] });
      const final = await messages.stream(body).finalMessage();
      expect(final).toMatchObject({ stop_reason: 'tool_use', content: [call] });
      const result = { type: 'tool_result' as const, tool_use_id: 't', content: 'paid 1' };
      const answered = await messages.create({
        ...body,
        messages: [
          ...messagesOfUser,
          { role: 'assistant', content: reply.content },
          { role: 'user', content: [result] },
        ],
      });
      expect(answered).toMatchObject({ stop_reason: 'end_turn', content: [{ text: 'paid 1' }] });
    },
  );

  test('the official Anthropic client parses a structured output of the built-in model', async () => {
    await using served = await modelsGateway(ECHO);
    const schema = {
      type: 'object' as const,
      properties: { amount: { type: 'number' } },
      required: ['amount'],
      additionalProperties: false,
    };
    const reply = await client(served).messages.parse({
      ...ask,
      messages: [{ role: 'user', content: '{"amount":1}' }],
      output_config: { format: { type: 'json_schema', schema } },
    });
    expect(reply.parsed_output ?? JSON.parse((reply.content[0] as { text: string }).text)).toEqual({
      amount: 1,
    });
  });

  test('the official Anthropic client lists models and looks one up', async () => {
    const models = ['claude-a', 'claude-b', 'team/*'].map((name) => ({ name, provider: 'echo' }));
    await using served = await modelsGateway(models);
    const api = client(served);
    const page = await api.models.list({ limit: 1 });
    expect(page).toMatchObject({ has_more: false, first_id: 'claude-a', last_id: 'team/*' });
    const ids: string[] = [];
    for await (const { id } of page) ids.push(id);
    expect(ids).toEqual(['claude-a', 'claude-b', 'team/*']);
    const model = await api.models.retrieve('team/x');
    expect(model).toMatchObject({ type: 'model', id: 'team/x', display_name: 'team/x' });
    expect(new Date(model.created_at).getTime()).not.toBeNaN();
    await expect(api.models.retrieve('other')).rejects.toMatchObject({
      status: 404,
      type: 'not_found_error',
    });
  });

  test("the official Anthropic client aborts a stream, and the gateway aborts the provider's stream", async () => {
    let left = false;
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(
          WIRE.messages.stream?.({ model: 'm', text: 'Hel', usage: {} }).split('event: message_delta')[0],
        );
        response.once('close', () => {
          left = true;
        });
      }),
    );
    await using served = await llmGateway(provider, { model: { provider: EVERY_FORMAT } });
    const stream = await client(served).messages.create({ ...ask, stream: true });
    for await (const event of stream) if (event.type === 'content_block_delta') stream.controller.abort();
    await until(() => left);
    await served.accessLine(1);
  });
});

describe('errors for the official Anthropic client', () => {
  const refuses = () => guardrail(() => ({ body: 'not this', status_code: 403 }));

  test('the official Anthropic client raises its class for every error of the gateway', async () => {
    await using webhookServer = await refuses();
    await using broken = await llmProvider((_, response) => response.writeHead(302, { location: '/' }).end());
    const at = (address: string): object => ({
      params: { baseUrl: `http://${address}/v1` },
      provider: EVERY_FORMAT,
    });
    await using served = await modelsGateway(
      [
        { name: 'acme-mini', provider: 'echo' },
        { name: 'guarded', provider: 'echo', guardrails: { request: [webhook(webhookServer)] } },
        {
          name: 'unguarded',
          provider: 'echo',
          guardrails: { request: [webhook({ address: '127.0.0.1:1' })] },
        },
        { name: 'away', ...at('127.0.0.1:1') },
        { name: 'broken', ...at(broken.address) },
      ],
      {},
      { frontendPolicies: { http: { maxBufferSize: 10_000 } } },
    );
    const { messages } = client(served);
    const long = [{ role: 'user' as const, content: 'x'.repeat(20_000) }];
    const cases = [
      [
        { model: 'x\u202ey' },
        Anthropic.NotFoundError,
        404,
        'not_found_error',
        'Model not found: "x\\u{202e}y"',
      ],
      [
        { model: '' },
        Anthropic.BadRequestError,
        400,
        'invalid_request_error',
        "missing string field 'model'",
      ],
      [
        { messages: long },
        Anthropic.ContentTooLargeError,
        413,
        'request_too_large',
        'exceeded the buffer limit',
      ],
      [{ model: 'guarded' }, Anthropic.PermissionDeniedError, 403, 'permission_error', 'not this'],
      [{ model: 'unguarded' }, Anthropic.ServiceUnavailableError, 503, 'api_error', 'prompt guard failed'],
      [{ model: 'away' }, Anthropic.ServiceUnavailableError, 503, 'api_error', 'upstream call failed'],
      [{ model: 'broken' }, Anthropic.InternalServerError, 502, 'api_error', 'redirect'],
    ] as const;
    for (const [change, kind, status, type, message] of cases) {
      for (const call of [
        messages.create({ ...ask, ...change }),
        messages.create({ ...ask, ...change, stream: true }),
        ...(change === cases[3][0]
          ? []
          : [messages.countTokens({ ...ask, max_tokens: undefined, ...change } as never)]),
      ]) {
        await expect(call).rejects.toBeInstanceOf(kind);
        await expect(call).rejects.toMatchObject({
          status,
          type,
          apiMessage: expect.stringContaining(message) as string,
        });
      }
    }
  });

  test('the official Anthropic client raises its class without a key, over a rate limit and at unknown paths', async () => {
    const policies = {
      apiKey: { mode: 'strict', keys: [{ key: 'sk-test', allowedModels: ['acme-*'] }] },
      localRateLimit: [{ maxTokens: 3, fillInterval: '1h' }],
    };
    await using served = await modelsGateway(ECHO, { policies });
    const stranger = new Anthropic({ baseURL: served.url, apiKey: null, authToken: 'other', maxRetries: 0 });
    const refused = stranger.messages.create(ask);
    await expect(refused).rejects.toBeInstanceOf(Anthropic.AuthenticationError);
    await expect(refused).rejects.toMatchObject({ type: 'authentication_error' });
    const { messages, beta } = client(served);
    const forbidden = messages.create({ ...ask, model: 'other' });
    await expect(forbidden).rejects.toBeInstanceOf(Anthropic.PermissionDeniedError);
    await expect(forbidden).rejects.toMatchObject({ type: 'permission_error' });
    await expect(beta.files.list()).rejects.toMatchObject({ status: 404, type: 'not_found_error' });
    await messages.create(ask);
    const limited = messages.create(ask);
    await expect(limited).rejects.toBeInstanceOf(Anthropic.RateLimitError);
    await expect(limited).rejects.toMatchObject({
      type: 'rate_limit_error',
      apiMessage: expect.stringMatching(/^rate limit exceeded: at most 3 requests,/) as string,
    });
  });

  test('the official Anthropic client signs in with apiKey, and older ones with x-api-key if the policy reads it', async () => {
    const keys = [{ key: 'sk-test' }];
    await using served = await modelsGateway(ECHO, { policies: { apiKey: { mode: 'strict', keys } } });
    const api = new Anthropic({ baseURL: served.url, apiKey: 'sk-test', authToken: null, maxRetries: 0 });
    expect((await api.messages.create(ask)).content).toHaveLength(1);
    const location = { header: { name: 'x-api-key' } };
    await using older = await modelsGateway(ECHO, {
      policies: { apiKey: { mode: 'strict', location, keys } },
    });
    const status = async (key: string): Promise<number> => {
      const headers = { 'x-api-key': key };
      return (await send(`${older.url}/v1/messages`, { method: 'POST', headers, body: JSON.stringify(ask) }))
        .status;
    };
    expect([await status('sk-test'), await status('other')]).toEqual([200, 401]);
  });

  test('the official Anthropic client raises its class when the provider does not answer in time', async () => {
    await using provider = await llmProvider(() => undefined);
    const model = { name: '*', provider: EVERY_FORMAT, params: { baseUrl: `http://${provider.address}/v1` } };
    const route = {
      policies: { timeout: { backendRequestTimeout: '200ms' } },
      backends: [{ llm: { models: [model] } }],
    };
    await using served = await gateway(
      JSON.stringify({
        config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
        gateways: { default: { port: 0 } },
        routes: [route],
      }),
    );
    const late = client(served).messages.create(ask);
    await expect(late).rejects.toBeInstanceOf(Anthropic.GatewayTimeoutError);
    await expect(late).rejects.toMatchObject({ status: 504, type: 'timeout_error' });
  });

  test.each([
    [
      'breaks off',
      (response: ServerResponse) => void response.destroy(),
      'api_error',
      'ended the stream early',
    ],
    ['stops sending', () => undefined, 'timeout_error', 'stopped sending data'],
  ])(
    'the official Anthropic client gets an error event when the provider %s',
    async (_, end, type, message) => {
      const answer = { model: 'm', text: 'Hel', usage: {} };
      const [part] = WIRE.messages.stream?.(answer).split('event: content_block_stop') ?? [];
      await using provider = await llmProvider(
        streaming((response) => response.write(part, () => end(response))),
      );
      await using served = await llmGateway(provider, {
        model: { provider: EVERY_FORMAT },
        options: { limits: { streamIdle: 300 } },
      });
      const stream = client(served).messages.stream(ask);
      const texts: string[] = [];
      stream.on('text', (text) => texts.push(text));
      const final = stream.finalMessage();
      await expect(final).rejects.toBeInstanceOf(Anthropic.APIError);
      await expect(final).rejects.toMatchObject({
        type,
        apiMessage: expect.stringContaining(message) as string,
      });
      expect(texts).toEqual(['Hel']);
    },
  );

  test("the official Anthropic client gets the provider's own error unchanged", async () => {
    const error = {
      type: 'error',
      error: { type: 'overloaded_error', message: 'Overloaded' },
      request_id: 'req_1',
    };
    await using provider = await llmProvider(answering(JSON.stringify(error), 529));
    await using served = await llmGateway(provider, { model: { provider: EVERY_FORMAT } });
    await expect(client(served).messages.create(ask)).rejects.toMatchObject({
      status: 529,
      type: 'overloaded_error',
      error,
    });
    expect(await served.accessLine(1)).toMatchObject({ 'error.type': 'overloaded_error' });
  });

  test("the official Anthropic client gets the provider's error inside a stream, and the access log names it", async () => {
    const answer = { model: 'm', text: 'Hel', usage: {} };
    const [part] = WIRE.messages.stream?.(answer).split('event: content_block_stop') ?? [];
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    await using provider = await llmProvider(
      streaming((response) => response.end(`${part}event: error\ndata: ${JSON.stringify(error)}\n\n`)),
    );
    await using served = await llmGateway(provider, { model: { provider: EVERY_FORMAT } });
    const final = client(served).messages.stream(ask).finalMessage();
    await expect(final).rejects.toMatchObject({ type: 'overloaded_error', error });
    expect(await served.accessLine(1)).toMatchObject({
      'error.type': 'overloaded_error',
      reason: 'UpstreamFailure',
    });
  });

  test('the official Anthropic client gets an error event when a guardrail rejects a stream', async () => {
    await using checked = await refuses();
    await using provider = await llmProvider(
      streaming((response) =>
        response.end(WIRE.messages.stream?.({ model: 'm', text: 'Hel lo', usage: {} })),
      ),
    );
    const guardrails = { response: [webhook(checked)] };
    await using served = await llmGateway(provider, { model: { provider: EVERY_FORMAT, guardrails } });
    const stream = client(served).messages.stream(ask);
    const texts: string[] = [];
    stream.on('text', (text) => texts.push(text));
    await expect(stream.finalMessage()).rejects.toMatchObject({
      type: 'permission_error',
      apiMessage: 'not this',
    });
    expect(texts).toEqual([]);
  });

  test('an error on /v1/messages has the documented members and nothing else', async () => {
    await using served = await modelsGateway(ECHO);
    const reply = await send(`${served.url}/v1/messages`, { method: 'POST', body: '{' });
    expect(reply.status).toBe(400);
    expect(reply.headers['content-type']).toBe('application/json');
    expect(JSON.parse(reply.text)).toEqual({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'LLM request body must be valid JSON: it does not parse',
      },
    });
  });
});
