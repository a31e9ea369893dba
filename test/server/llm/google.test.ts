import { describe, expect, test } from 'vitest';
import type { CompileContext } from '../../../src/server/kernel/compile-context.ts';
import { vertex } from '../../../src/server/llm/providers/vertex.ts';
import { environment } from '../../kit/environment.ts';
import { gateway } from '../../kit/gateway.ts';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  completion,
  errorOf,
  llmGateway,
  llmProvider,
  textOf,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

/** An answer in the form of the API reference of generateContent. */
const ANSWER = JSON.stringify({
  candidates: [{ content: { parts: [{ text: 'Hello.' }], role: 'model' }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 7, totalTokenCount: 19 },
  modelVersion: 'gemini-2.5-flash',
  responseId: 'resp-1',
});

const STREAM = [
  { candidates: [{ content: { parts: [{ text: 'Hel' }], role: 'model' }, index: 0 }] },
  {
    candidates: [{ content: { parts: [{ text: 'lo.' }], role: 'model' }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 7, totalTokenCount: 19 },
  },
]
  .map(
    (event) =>
      `data: ${JSON.stringify({ ...event, modelVersion: 'gemini-2.5-flash', responseId: 'r' })}\r\n\r\n`,
  )
  .join('');

const MESSAGES = { model: 'm', max_tokens: 9, messages: CHAT.messages };

/** What the metadata server of Google Cloud answers: tokens that expire after so many seconds, numbered. */
function metadataServer(seconds: (count: number) => number): Promise<HttpUpstream> {
  let count = 0;
  return httpUpstream((_, response, { target }) => {
    const head = { 'content-type': 'application/json', 'metadata-flavor': 'Google' };
    if (!target.includes('/token')) return response.writeHead(200, head).end('default');
    count += 1;
    const token = { access_token: `ya29.token-${count}`, expires_in: seconds(count), token_type: 'Bearer' };
    return response.writeHead(200, head).end(JSON.stringify(token));
  });
}

const NO_GOOGLE = {
  GOOGLE_APPLICATION_CREDENTIALS: undefined,
  CLOUDSDK_CONFIG: '/dev/null/none',
  HOME: '/dev/null/none',
  GCE_METADATA_HOST: undefined,
  GCE_METADATA_IP: undefined,
};

const ambient = ({ address }: HttpUpstream) => ({
  ...NO_GOOGLE,
  GCE_METADATA_HOST: address,
  METADATA_SERVER_DETECTION: 'assume-present',
});

describe('the gemini provider', () => {
  const gatewayTo = ({ address }: HttpUpstream, params: object = {}) =>
    llmGateway(
      { address },
      {
        model: { provider: 'gemini' },
        params: {
          baseUrl: `http://${address}/v1beta`,
          apiKey: 'AIza-key',
          model: 'gemini-2.5-flash',
          ...params,
        },
      },
    );

  test('chat completions and embeddings go to the OpenAI-compatible part with the key as bearer token, unchanged', async () => {
    await using upstream = await llmProvider();
    await using gate = await gatewayTo(upstream, { model: undefined });
    await chat(gate, JSON.stringify(CHAT), { 'x-goog-api-key': 'client' });
    const { target, headers } = upstream.received[0] ?? {};
    expect(target).toBe('/v1beta/openai/chat/completions');
    expect(headers).toMatchObject({ authorization: 'Bearer AIza-key' });
    expect(headers).not.toHaveProperty('x-goog-api-key');
    expect(textOf(upstream)).toBe(JSON.stringify(CHAT));
    await send(`${gate.url}/v1/embeddings`, { method: 'POST', body: '{"model":"m","input":"x"}' });
    expect(upstream.received[1]?.target).toBe('/v1beta/openai/embeddings');
  });

  test.each([
    ['of the route', {}, { backendAuth: { key: 'AIza-route' } }],
    ['of a provider of the route', { policies: { backendAuth: { key: 'AIza-route' } } }, {}],
  ])('the key %s is a bearer token in the OpenAI-compatible part', async (_, more, policies) => {
    await using upstream = await llmProvider();
    const ai = { name: 'g', provider: { gemini: {} }, hostOverride: upstream.address, ...more };
    const config = { adminAddr: 'off', connectionTerminationDeadline: '100ms' };
    const routes = [{ policies, backends: [{ ai }] }];
    await using gate = await gateway(JSON.stringify({ config, gateways: { default: { port: 0 } }, routes }));
    await chat(gate, CHAT, { authorization: 'Bearer client' });
    const { target, headers } = upstream.received[0] ?? {};
    expect(target).toBe('/v1beta/openai/chat/completions');
    expect(headers).toMatchObject({ authorization: 'Bearer AIza-route' });
    expect(headers).not.toHaveProperty('x-goog-api-key');
  });

  test('messages are sent as generateContent with the key in x-goog-api-key, and answered in their own format', async () => {
    await using upstream = await httpUpstream(answering(ANSWER));
    await using gate = await gatewayTo(upstream);
    const reply = await send(`${gate.url}/v1/messages`, { method: 'POST', body: JSON.stringify(MESSAGES) });
    const { target, headers } = upstream.received[0] ?? {};
    expect(target).toBe('/v1beta/models/gemini-2.5-flash:generateContent');
    expect(headers).toMatchObject({ 'x-goog-api-key': 'AIza-key' });
    expect(headers).not.toHaveProperty('authorization');
    expect(bodyOf(upstream)).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      generationConfig: { maxOutputTokens: 9 },
    });
    expect(JSON.parse(reply.text)).toMatchObject({
      type: 'message',
      model: 'gemini-2.5-flash',
      content: [{ type: 'text', text: 'Hello.' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 12, output_tokens: 7 },
    });
    expect(await gate.accessLine(1)).toMatchObject({
      'gen_ai.provider.name': 'gcp.gemini',
      'gen_ai.usage.input_tokens': '12',
      'gen_ai.usage.output_tokens': '7',
    });
  });

  test('a stream of messages asks for server-sent events and ends with the usage of Gemini', async () => {
    await using upstream = await httpUpstream((_, response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(STREAM),
    );
    await using gate = await gatewayTo(upstream);
    const { text } = await send(`${gate.url}/v1/messages?beta=true`, {
      method: 'POST',
      body: JSON.stringify({ ...MESSAGES, stream: true }),
    });
    expect(upstream.received[0]?.target).toBe(
      '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
    );
    const deltas = [...text.matchAll(/"text_delta","text":"([^"]*)"/g)].map(([, delta]) => delta);
    expect(deltas.join('')).toBe('Hello.');
    expect(text).toContain('event: message_stop');
    expect(await gate.accessLine(1)).toMatchObject({ 'gen_ai.usage.output_tokens': '7' });
  });

  test('an error of Gemini reaches a client of the Messages API in its own format', async () => {
    const error = { error: { code: 400, message: 'API key not valid.', status: 'INVALID_ARGUMENT' } };
    await using upstream = await httpUpstream(answering(JSON.stringify(error), 400));
    await using gate = await gatewayTo(upstream);
    const reply = await send(`${gate.url}/v1/messages`, { method: 'POST', body: JSON.stringify(MESSAGES) });
    expect(reply.status).toBe(400);
    expect(JSON.parse(reply.text)).toMatchObject({ type: 'error', error: { message: 'API key not valid.' } });
  });
});

describe('the vertex provider', () => {
  const gatewayTo = ({ address }: HttpUpstream, params: object = {}, more: object = {}) =>
    llmGateway(
      { address },
      {
        model: { provider: 'vertex' },
        params: {
          baseUrl: `http://${address}/v1/projects/acme/locations/global`,
          vertexProject: 'acme',
          ...params,
        },
        ...more,
      },
    );
  const ROOT = '/v1/projects/acme/locations/global';

  test.each([
    ['gemini-2.5-pro', `${ROOT}/publishers/google/models/gemini-2.5-pro:generateContent`],
    ['google/gemini-2.5-pro', `${ROOT}/publishers/google/models/gemini-2.5-pro:generateContent`],
    [
      'claude-sonnet-4-5@20250929',
      `${ROOT}/publishers/anthropic/models/claude-sonnet-4-5%4020250929:rawPredict`,
    ],
    ['meta/llama-4-maverick', `${ROOT}/endpoints/openapi/chat/completions`],
  ])('a chat completion of %s goes to its own endpoint', async (model, path) => {
    await using metadata = await metadataServer(() => 3600);
    using _env = environment(ambient(metadata));
    await using upstream = await httpUpstream(
      answering(model.includes('gemini') ? ANSWER : completion('Hello.')),
    );
    await using gate = await gatewayTo(upstream);
    await chat(gate, { ...CHAT, model });
    const { target, headers } = upstream.received[0] ?? {};
    expect(target).toBe(path);
    expect(headers).toMatchObject({ authorization: 'Bearer ya29.token-1' });
  });

  test('a message for Claude has the version in its body and no model, and keeps every other byte', async () => {
    await using metadata = await metadataServer(() => 3600);
    using _env = environment(ambient(metadata));
    await using upstream = await httpUpstream(answering('{}'));
    await using gate = await gatewayTo(upstream);
    const body = '{"model": "claude-sonnet-4@20250514", "max_tokens": 9.0, "messages": [],"stream": true}';
    await send(`${gate.url}/v1/messages`, {
      method: 'POST',
      headers: { 'anthropic-version': '2023-06-01' },
      body,
    });
    const { target, headers } = upstream.received[0] ?? {};
    expect(target).toBe(`${ROOT}/publishers/anthropic/models/claude-sonnet-4%4020250514:streamRawPredict`);
    expect(textOf(upstream)).toBe(
      '{ "max_tokens": 9.0, "messages": [],"stream": true,"anthropic_version":"vertex-2023-10-16"}',
    );
    expect(headers).not.toHaveProperty('anthropic-version');
    await send(`${gate.url}/v1/messages/count_tokens`, { method: 'POST', body });
    expect(upstream.received[1]?.target).toBe(`${ROOT}/publishers/anthropic/models/count-tokens:rawPredict`);
    expect(bodyOf(upstream)).toMatchObject({ model: 'claude-sonnet-4@20250514' });
  });

  test.each([
    [undefined, 'https://aiplatform.googleapis.com/v1/projects/acme/locations/global'],
    ['eu', 'https://aiplatform.eu.rep.googleapis.com/v1/projects/acme/locations/eu'],
    [
      'europe-west1',
      'https://europe-west1-aiplatform.googleapis.com/v1/projects/acme/locations/europe-west1',
    ],
  ])('the address in the region %s is %s', (vertexRegion, url) => {
    const params = { vertexProject: 'acme', apiKey: 'key', ...(vertexRegion && { vertexRegion }) };
    expect(vertex.connect?.(params, {} as CompileContext, {})?.baseUrl).toBe(url);
  });

  test('calls at the same time share one token, and one that is about to expire is replaced', async () => {
    await using metadata = await metadataServer((count) => (count === 1 ? 60 : 3600));
    using _env = environment(ambient(metadata));
    await using upstream = await httpUpstream(answering(ANSWER));
    await using gate = await gatewayTo(upstream);
    const call = () => chat(gate, { ...CHAT, model: 'gemini-2.5-pro' });
    await Promise.all([call(), call(), call()]);
    await call();
    await call();
    expect(upstream.received.map(({ headers }) => headers['authorization'])).toEqual([
      ...Array.from({ length: 3 }, () => 'Bearer ya29.token-1'),
      ...Array.from({ length: 2 }, () => 'Bearer ya29.token-2'),
    ]);
  });

  test('without credentials, the client gets a 503, and the log names the places that were searched', async () => {
    using _env = environment({ ...NO_GOOGLE, METADATA_SERVER_DETECTION: 'none' });
    await using upstream = await llmProvider();
    await using gate = await gatewayTo(upstream);
    const reply = await chat(gate, { ...CHAT, model: 'gemini-2.5-pro' });
    expect(reply.status).toBe(503);
    expect(errorOf(reply).message).toBe(
      'upstream call failed: the gateway has no valid credentials for the provider',
    );
    expect((await gate.accessLine(1))['error.detail']).toContain('GOOGLE_APPLICATION_CREDENTIALS');
    expect(upstream.received).toHaveLength(0);
  });

  test('tokens are neither in the log nor in the access log', async () => {
    await using metadata = await metadataServer(() => 3600);
    using _env = environment(ambient(metadata));
    await using upstream = await httpUpstream(answering(ANSWER));
    await using gate = await gatewayTo(upstream, {}, { options: { level: 'trace' } });
    await chat(gate, { ...CHAT, model: 'gemini-2.5-pro' });
    await gate.accessLine(1);
    expect([...gate.log, ...gate.accessLog].join('\n')).not.toContain('token-1');
  });

  test('a model without a project is reported', async () => {
    await using upstream = await llmProvider();
    await expect(gatewayTo(upstream, { vertexProject: undefined })).rejects.toThrow(
      'provider `vertex` needs `vertexProject`',
    );
  });
});
