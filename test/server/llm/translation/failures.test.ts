import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import {
  APIS,
  type Api,
  answeringAs,
  askAs,
  BODIES,
  claude,
  gatewayTo,
  openAi,
  providerOf,
  SEEN,
  STREAMS,
  sendJson,
} from '../../../kit/llm-answers.ts';
import { chunk, DONE, streaming } from '../../../kit/llm-provider.ts';
import { send } from '../../../kit/send.ts';
import { until } from '../../../kit/until.ts';
import type { Answer } from '../../../kit/upstream.ts';

const PAIRS = APIS.flatMap((client) =>
  APIS.filter((provider) => provider !== client).map((provider) => [client, provider] as const),
);

const OPENAI_ERROR = {
  error: { message: 'Slow down.', type: 'requests', param: null, code: 'rate_limit_exceeded' },
};
const ERRORS: Readonly<Record<Api, object>> = {
  completions: OPENAI_ERROR,
  responses: OPENAI_ERROR,
  messages: {
    type: 'error',
    error: { type: 'rate_limit_error', message: 'Slow down.' },
    request_id: 'req_1',
  },
};

const streamsText = (text: string): Answer => streaming((response) => response.end(text));

/** The rejection of a call, as the official client raises it. */
async function failureOf(client: Api, gate: { readonly url: string }, isStream = true): Promise<Error> {
  try {
    await askAs(client, gate, isStream);
  } catch (error) {
    return error as Error;
  }
  throw new Error('the call succeeded');
}

describe('errors of a provider with another API', () => {
  test.each(PAIRS)(
    'the official client of %s raises its rate limit error for status 429 of a provider of %s',
    async (client, api) => {
      await using provider = await providerOf(api, (_, response) => {
        response.setHeader('retry-after', '7');
        return sendJson(response, ERRORS[api], 429);
      });
      await using gate = await gatewayTo(provider, api);
      for (const isStream of [false, true]) {
        const error = await failureOf(client, gate, isStream);
        expect(error).toBeInstanceOf(
          client === 'messages' ? Anthropic.RateLimitError : OpenAI.RateLimitError,
        );
        expect(error.message).toContain('Slow down.');
        expect((error as { headers?: Headers }).headers?.get('retry-after')).toBe('7');
      }
      expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '429' });
    },
  );

  test.each(APIS)(
    'a provider of %s that answers 200 with an error is an error for other clients',
    async (api) => {
      await using provider = await providerOf(api, (_, response) => sendJson(response, ERRORS[api]));
      await using gate = await gatewayTo(provider, api);
      for (const client of APIS.filter((each) => each !== api)) {
        const error = await failureOf(client, gate, false);
        expect(error.message).toContain('Slow down.');
        expect(error).toMatchObject({ status: 429 });
      }
    },
  );

  test("the provider's key in an error is not in the translated error", async () => {
    const key = 'sk-provider-secret';
    await using provider = await providerOf('completions', (_, response) =>
      sendJson(response, { error: { message: `bad key ${key}` } }, 403),
    );
    await using gate = await gatewayTo(provider, 'completions', { params: { apiKey: key } });
    const error = await failureOf('messages', gate, false);
    expect(error).toBeInstanceOf(Anthropic.PermissionDeniedError);
    expect(error.message).toContain('bad key <redacted>');
  });
});

describe('streams of a provider with another API that fail', () => {
  const FAILED: Readonly<Record<Api, string>> = {
    completions: `data: ${JSON.stringify({ error: { message: 'Overloaded.', code: 'server_overloaded' } })}\n\n`,
    messages: `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded.' } })}\n\n`,
    responses: `event: response.failed\ndata: ${JSON.stringify({
      type: 'response.failed',
      response: {
        ...BODIES.responses,
        status: 'failed',
        error: { code: 'server_overloaded', message: 'Overloaded.' },
      },
    })}\n\n`,
  };
  /** A stream up to the first words of the answer. */
  const begun = (api: Api): string =>
    STREAMS[api]
      .split(/(?<=\n\n)/)
      .slice(0, 12)
      .join('');

  /** What a client of the Responses API gets: a response that failed. */
  async function failedResponse(gate: { readonly url: string }): Promise<string> {
    const stream = openAi(gate).responses.stream({ model: 'acme', input: 'Hi' });
    const { status, error } = await stream.finalResponse();
    return `${String(status)}: ${String(error?.message)}`;
  }

  test.each(PAIRS)(
    'a client of %s gets the error inside a stream of a provider of %s',
    async (client, api) => {
      await using provider = await providerOf(api, streamsText(begun(api) + FAILED[api]));
      await using gate = await gatewayTo(provider, api);
      const message =
        client === 'responses' ? await failedResponse(gate) : (await failureOf(client, gate)).message;
      expect(message).toContain('Overloaded.');
      expect(await gate.accessLine(1)).toMatchObject({ error: 'the provider responded with an error' });
    },
  );

  test.each([
    ['completions', { error: { message: 'm', type: 'api_error' } }, 'api_error'],
    ['completions', { error: { message: 'm', type: 'BadRequestError', code: 400 } }, 'invalid_request_error'],
    [
      'completions',
      { choices: [{ index: 0, delta: {}, finish_reason: 'error', error: { message: 'm', code: 429 } }] },
      'rate_limit_error',
    ],
    ['completions', { choices: [{ index: 0, delta: {}, finish_reason: 'error' }] }, 'api_error'],
    ['responses', { type: 'error', message: 'm', code: 'upstream_failed' }, 'api_error'],
    ['responses', { type: 'error', message: 'm', code: 'rate_limit_exceeded' }, 'rate_limit_error'],
    ['responses', { type: 'response.failed', response: { error: { code: 'server_error' } } }, 'api_error'],
  ] as const)(
    "Anthropic's client gets the class of an error inside a stream of a provider of %s: %j",
    async (api, error, type) => {
      const event = `data: ${JSON.stringify(error)}\n\n`;
      await using provider = await providerOf(api, streamsText(begun(api) + event));
      await using gate = await gatewayTo(provider, api);
      expect(await failureOf('messages', gate)).toMatchObject({ type });
    },
  );

  test.each([
    ['api_error', 'server_error'],
    ['invalid_request_error', 'invalid_request_error'],
    ['rate_limit_error', 'rate_limit_error'],
  ])(
    "OpenAI's client gets the class of an error inside a stream of a provider of messages: %s",
    async (named, type) => {
      const error = JSON.stringify({ type: 'error', error: { type: named, message: 'm' } });
      const event = `event: error\ndata: ${error}\n\n`;
      await using provider = await providerOf('messages', streamsText(begun('messages') + event));
      await using gate = await gatewayTo(provider, 'messages');
      expect(await failureOf('completions', gate)).toMatchObject({ type });
    },
  );

  test.each([
    ['messages', 529],
    ['completions', 503],
    ['responses', 503],
  ] as const)(
    'a call without a stream fails when a provider of %s answers with a stream that fails',
    async (api, status) => {
      const client = api === 'messages' ? 'completions' : 'messages';
      await using provider = await providerOf(api, streamsText(begun(api) + FAILED[api]));
      await using gate = await gatewayTo(provider, api);
      expect(await failureOf(client, gate, false)).toMatchObject({ status });
    },
  );

  test.each(PAIRS)(
    'a client of %s gets an error when a provider of %s closes the stream before its end',
    async (client, api) => {
      await using provider = await providerOf(api, streamsText(begun(api)));
      await using gate = await gatewayTo(provider, api);
      const reply = await sendStream(client, gate);
      // What arrives together with the end is not lost.
      expect(reply).toMatch(/"model":.*error.*the provider ended the stream early/s);
      expect(await gate.accessLine(1)).toMatchObject({
        'error.detail': expect.stringContaining('closed the stream before the last event') as string,
      });
    },
  );

  test.each(PAIRS)(
    'a client of %s gets an error when a provider of %s sends an event that is not JSON',
    async (client, api) => {
      await using provider = await providerOf(api, streamsText(`${begun(api)}data: {"x":\n\n`));
      await using gate = await gatewayTo(provider, api);
      expect(await sendStream(client, gate)).toContain('cannot be translated');
      expect(await gate.accessLine(1)).toMatchObject({
        reason: 'UpstreamFailure',
        'error.detail': expect.stringContaining('is not JSON') as string,
      });
    },
  );
});

const REQUESTS: Readonly<Record<Api, readonly [path: string, body: object]>> = {
  completions: ['/v1/chat/completions', { model: 'acme', messages: [{ role: 'user', content: 'Hi' }] }],
  messages: ['/v1/messages', { model: 'acme', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }],
  responses: ['/v1/responses', { model: 'acme', input: 'Hi' }],
};

/** The text of a stream. */
async function sendStream(client: Api, { url }: { readonly url: string }): Promise<string> {
  const [path, body] = REQUESTS[client];
  const reply = await send(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true }),
  });
  expect(reply.status).toBe(200);
  return reply.text;
}

describe('providers that do not answer as asked', () => {
  test.each(PAIRS)(
    'a client of %s gets a stream when a provider of %s answers without one, and the reverse',
    async (client, api) => {
      await using plain = await providerOf(api, (_, response) => sendJson(response, BODIES[api]));
      await using toPlain = await gatewayTo(plain, api);
      expect(await askAs(client, toPlain, true)).toEqual(SEEN);
      await using streams = await providerOf(api, streamsText(STREAMS[api]));
      await using toStreams = await gatewayTo(streams, api);
      expect(await askAs(client, toStreams, false)).toEqual(SEEN);
    },
  );

  test.each([
    ['no JSON', (_: unknown, response: Parameters<Answer>[1]) => response.end('<html>')],
    ['another API', answeringAs('messages')],
  ] as const)('a provider that answers with %s is a 502', async (_, answer) => {
    await using provider = await providerOf('completions', answer);
    await using gate = await gatewayTo(provider, 'completions');
    const error = await failureOf('responses', gate, false);
    expect(error).toMatchObject({ status: 502, code: 'upstream_failed' });
    expect(await gate.accessLine(1)).toMatchObject({ reason: 'UpstreamFailure' });
  });

  test('content that the format of the client cannot express is a 502 that the log names', async () => {
    const block = { type: 'server_tool_use', id: 'x', name: 'web_search', input: {} };
    await using provider = await providerOf('messages', (_, response) =>
      sendJson(response, { ...BODIES.messages, content: [block] }),
    );
    await using gate = await gatewayTo(provider, 'messages');
    expect(await failureOf('completions', gate, false)).toMatchObject({ status: 502 });
    expect((await gate.accessLine(1))['error.detail']).toContain('server_tool_use');
  });

  test('tokens are estimated when a provider with another API reports none, although messages always have counts', async () => {
    await using provider = await providerOf('completions', (_, response, { body }) => {
      const { usage: __, ...rest } = BODIES.completions as { usage: unknown };
      if (!body.includes('"stream":true')) return sendJson(response, rest);
      return streamsText(STREAMS.completions.replace(/data: \{[^\n]*"usage":\{[^\n]*\n\n/, ''))(_, response, {
        body,
      } as never);
    });
    await using gate = await gatewayTo(provider, 'completions');
    for (const isStream of [false, true])
      expect((await askAs('messages', gate, isStream)).usage).toMatchObject({ input: 0, output: 0 });
    for (const line of [1, 2]) {
      const fields = await gate.accessLine(line);
      expect(Number(fields['gen_ai.usage.input_tokens'])).toBeGreaterThan(5);
      expect(Number(fields['gen_ai.usage.output_tokens'])).toBeGreaterThan(5);
    }
  });
});

describe('requests that cannot be translated', () => {
  test('a request that cannot be translated is a 400 that names the member, without a call or a failure of the model', async () => {
    await using provider = await providerOf('messages');
    await using gate = await gatewayTo(provider, 'messages');
    const { completions } = openAi(gate).chat;
    const asked = completions.create({
      model: 'acme',
      messages: [{ role: 'user', content: 'Hi' }],
      seed: 7,
    });
    await expect(asked).rejects.toMatchObject({
      status: 400,
      code: 'untranslatable',
      message: expect.stringContaining('`seed`') as string,
    });
    expect(provider.received).toHaveLength(0);
    expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '400', reason: 'InvalidRequest' });
  });

  test('a long name of a member is cut in the error', async () => {
    await using provider = await providerOf('messages');
    await using gate = await gatewayTo(provider, 'messages');
    const body = JSON.stringify({ ...REQUESTS.completions[1], ['x'.repeat(100_000)]: 1 });
    const reply = await send(`${gate.url}/v1/chat/completions`, { method: 'POST', body });
    expect(reply.status).toBe(400);
    expect(reply.text.length).toBeLessThan(600);
  });

  test('the error has the format of the client', async () => {
    await using provider = await providerOf('completions');
    await using gate = await gatewayTo(provider, 'completions');
    const asked = claude(gate).messages.create({
      model: 'acme',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
    });
    await expect(asked).rejects.toBeInstanceOf(Anthropic.BadRequestError);
    await expect(asked).rejects.toMatchObject({ message: expect.stringContaining('tools[0]') as string });
  });

  test('a call that the provider has no format for is a 400 that lists what it has', async () => {
    await using provider = await providerOf('messages');
    await using gate = await gatewayTo(provider, 'messages');
    const asked = openAi(gate).embeddings.create({ model: 'acme', input: 'Hi' });
    await expect(asked).rejects.toMatchObject({
      status: 400,
      code: 'unsupported_endpoint',
      message: expect.stringContaining('messages') as string,
    });
    expect(provider.received).toHaveLength(0);
  });
});

describe('clients that leave or do not read', () => {
  test.each(PAIRS)(
    'a client of %s that leaves in the middle aborts the call at a provider of %s',
    async (client, api) => {
      let left = false;
      await using provider = await providerOf(
        api,
        streaming((response) => {
          response.write(
            STREAMS[api]
              .split(/(?<=\n\n)/)
              .slice(0, 12)
              .join(''),
          );
          response.once('close', () => {
            left = true;
          });
        }),
      );
      await using gate = await gatewayTo(provider, api);
      const [path, body] = REQUESTS[client];
      const call = request(gate.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
      });
      call.on('error', () => undefined).end(JSON.stringify({ ...body, stream: true }));
      const [response] = (await once(call, 'response')) as [IncomingMessage];
      response.on('error', () => undefined);
      await once(response, 'data');
      call.destroy();
      await until(() => left);
      await gate.accessLine(1);
    },
  );

  test('a translated stream has pings while the provider sends what has to wait', async () => {
    const call = (index: number, id: string, args: string): string =>
      chunk({ tool_calls: [{ index, id, function: { name: 'tool', arguments: args } }] });
    const first = Promise.withResolvers<void>();
    const ping = Promise.withResolvers<void>();
    await using provider = await providerOf(
      'completions',
      streaming(async (response) => {
        response.write(call(0, 'a', '{'));
        await first.promise;
        // The second call of a message waits for the end of the first.
        response.write(call(1, 'b', '{}'));
        await ping.promise;
        const end = chunk(undefined, { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] });
        response.end([call(0, 'a', '}'), end, DONE].join(''));
      }),
    );
    await using gate = await gatewayTo(provider, 'completions', {
      options: { limits: { translatedStreamPing: -1 } },
    });
    const [path, body] = REQUESTS.messages;
    const reply = await fetch(gate.url + path, {
      method: 'POST',
      body: JSON.stringify({ ...body, stream: true }),
    });
    let text = '';
    for await (const part of reply.body as ReadableStream<Uint8Array>) {
      text += Buffer.from(part).toString('utf8');
      if (text.includes('"id":"a"')) first.resolve();
      if (text.includes('event: ping')) ping.resolve();
    }
    expect(text).toMatch(/"id":"a".*event: ping.*"id":"b".*message_stop/s);
  });

  test('a translated stream of a client that does not read applies back-pressure to the provider', async () => {
    let written = 0;
    const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' };
    const choices = [{ index: 0, delta: { content: 'x'.repeat(8_000) }, finish_reason: null }];
    const text = `data: ${JSON.stringify({ ...head, choices })}\n\n`;
    let isFull = false;
    await using provider = await providerOf(
      'completions',
      streaming((response) => {
        const more = (): void => {
          isFull = false;
          while (!response.destroyed && written < 100_000_000 && !isFull) {
            written += text.length;
            isFull = !response.write(text);
          }
        };
        response.on('drain', more);
        more();
      }),
    );
    await using gate = await gatewayTo(provider, 'completions');
    const [path, body] = REQUESTS.messages;
    const call = request(gate.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    call.on('error', () => undefined).end(JSON.stringify({ ...body, stream: true }));
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    response.on('error', () => undefined).pause();
    let before = -1;
    // A stream that stands still waits for the client.
    await until(async () => {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return isFull && written === before;
    });
    expect(written).toBeLessThan(30_000_000);
    response.destroy();
  });
});
