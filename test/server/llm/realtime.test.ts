import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { AUTHORITY, certificateOf } from '../../kit/certificates.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { type RealtimeProvider, realtimeClient, realtimeProvider } from '../../kit/realtime.ts';
import { until } from '../../kit/until.ts';

const CATALOG = {
  providers: {
    openai: { models: { 'acme-live': { rates: { input: '4', output: '16', cacheRead: '0.4' } } } },
  },
};

function liveGateway(
  { baseUrl }: { baseUrl: string },
  {
    model = {},
    policies = {},
    config = {},
    llm = {},
  }: { model?: object; policies?: object; config?: object; llm?: object } = {},
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const params = { apiKey: 'sk-gateway-secret', baseUrl };
  return gateway(
    JSON.stringify({
      config: { modelCatalog: [{ inline: CATALOG }], ...config },
      llm: {
        port: 0,
        policies,
        models: [{ name: 'acme-live', provider: 'oaiCompat', params, ...model }],
        ...llm,
      },
    }),
    options,
  );
}

const sessionUrl = ({ url }: TestGateway, query = '?model=acme-live'): string => `${url}/v1/realtime${query}`;

const responseDone = (usage: object): string =>
  JSON.stringify({ type: 'response.done', event_id: 'e1', response: { object: 'realtime.response', usage } });

const USAGE = {
  total_tokens: 150,
  input_tokens: 100,
  output_tokens: 50,
  input_token_details: { text_tokens: 100, audio_tokens: 0, cached_tokens: 40 },
  output_token_details: { text_tokens: 50, audio_tokens: 0 },
};

describe('a realtime session', () => {
  it('passes text and binary messages in both directions, in order', async () => {
    await using provider = await realtimeProvider((session, text) => session.send(`echo ${text}`));
    await using gate = await liveGateway(provider);
    await using client = await realtimeClient(sessionUrl(gate));
    for (const text of ['a', 'b', 'ä€😀']) client.socket.send(text);
    client.socket.send(Buffer.from([0, 255, 1]), { binary: true });
    await until(() => client.received.length === 5);
    expect(client.received).toEqual([
      '{"type":"session.created","session":{"object":"realtime.session"}}',
      'echo a',
      'echo b',
      'echo ä€😀',
      Buffer.from([0, 255, 1]),
    ]);
  });

  it('works with the official OpenAI client', async () => {
    await using provider = await realtimeProvider((session) => session.send(responseDone(USAGE)));
    await using gate = await liveGateway(provider);
    // The client insists on TLS.
    await using front = await tlsFront(gate.port);
    const openai = new OpenAI({ apiKey: 'unused', baseURL: `https://localhost:${front.port}/v1` });
    const options = { ca: readFileSync(AUTHORITY) };
    const live = new OpenAIRealtimeWS({ model: 'acme-live', options }, openai);
    const done = new Promise((resolve) => {
      live.on('response.done', (event) => resolve(event.response.usage?.total_tokens));
    });
    live.on('session.created', () => live.send({ type: 'response.create' }));
    expect(await done).toBe(150);
    live.close();
    expect(JSON.parse(provider.messages[0] as string)).toEqual({ type: 'response.create' });
  });

  it('is sent with the key of the model, without the credentials of the client', async () => {
    await using provider = await realtimeProvider();
    await using gate = await liveGateway(provider, {
      model: {
        name: '*',
        params: { apiKey: 'sk-gateway-secret', baseUrl: provider.baseUrl, model: 'acme-live-1' },
      },
    });
    await using client = await realtimeClient(sessionUrl(gate, '?model=acme-live&api-key=sk-query&x=1'), {
      headers: { authorization: 'Bearer sk-client', 'openai-organization': 'org-client', cookie: 'a=b' },
      protocols: ['realtime', 'openai-insecure-api-key.sk-browser', 'openai-beta.realtime-v1'],
    });
    expect(client.socket.protocol).toBe('realtime');
    const { url, headers } = provider.handshakes[0] as RealtimeProvider['handshakes'][0];
    expect(url).toBe('/v1/realtime?x=1&model=acme-live-1');
    expect(headers.authorization).toBe('Bearer sk-gateway-secret');
    expect(headers['sec-websocket-protocol']).toBe('realtime,openai-beta.realtime-v1');
    expect(JSON.stringify([headers, url])).not.toMatch(/sk-client|sk-browser|sk-query|org-client|a=b/);
  });

  it('logs the sum of the token counts of its responses, with their cost', async () => {
    await using provider = await realtimeProvider((session) => session.send(responseDone(USAGE)));
    await using gate = await liveGateway(provider);
    await using client = await realtimeClient(sessionUrl(gate));
    client.socket.send('1');
    client.socket.send('2');
    await until(() => client.received.length === 3);
    client.socket.close(1000);
    const line = await gate.accessLine(1);
    expect(line).toMatchObject({
      'http.status': '101',
      'http.path': '/v1/realtime?model=acme-live',
      'gen_ai.request.model': 'acme-live',
      'gen_ai.usage.input_tokens': '200',
      'gen_ai.usage.cache_read.input_tokens': '80',
      'gen_ai.usage.output_tokens': '100',
      // (120 × 4 + 80 × 0.4 + 100 × 16) / 10^6
      'gw.ai.usage.cost.total': '0.002112',
    });
    expect(line).not.toHaveProperty('error');
  });

  it.each([
    ['the client', 3005, 'bye'],
    ['the provider', 4001, 'session expired'],
  ])('closed by %s is closed on the other side with the same code and reason', async (who, code, reason) => {
    await using provider = await realtimeProvider();
    await using gate = await liveGateway(provider);
    await using client = await realtimeClient(sessionUrl(gate));
    const closing = who === 'the client' ? client.socket : (provider.sessions[0] as WebSocket);
    closing.close(code, reason);
    expect(await client.closed).toEqual([code, reason]);
    await until(() => provider.closed.length === 1);
    expect(provider.closed).toEqual([[code, reason]]);
  });

  // BerriAI/litellm#39851
  const KEY = 'sk-gateway-secret';
  const CREATED = JSON.stringify({ type: 'session.created' });
  const LOST = 'the connection was closed without a closing frame';
  it.each<[string, (session: WebSocket) => void, readonly [number, string], string | undefined, number]>([
    ['disconnects', (it) => it.terminate(), [1011, 'the upstream has disconnected'], LOST, 1],
    [
      'disconnects after a message',
      (it) => it.send(CREATED, () => it.terminate()),
      [1011, 'the upstream has disconnected'],
      LOST,
      1,
    ],
    [
      'refuses the key',
      (it) => it.close(1008, `bad key ${KEY}`),
      [1008, 'bad key <redacted>'],
      'the connection was closed with code 1008: bad key <redacted>',
      1,
    ],
    [
      'refuses a key that is cut off',
      (it) => it.close(4001, `bad ${KEY.slice(0, -1)}`),
      [4001, 'bad <redacted>'],
      'the connection was closed with code 4001: bad <redacted>',
      1,
    ],
    [
      'fails later',
      (it) => it.send(CREATED, () => it.close(1011)),
      [1011, ''],
      'the connection was closed with code 1011',
      1,
    ],
    // The client may be the reason.
    [
      'refuses a message',
      (it) => it.send(CREATED, () => it.close(1008, 'policy')),
      [1008, 'policy'],
      'the connection was closed with code 1008: policy',
      0,
    ],
    ['ends it', (it) => it.send(CREATED, () => it.close(1000, 'bye')), [1000, 'bye'], undefined, 0],
  ])('of a provider that %s is told so, logged and counted', async (_, onOpen, closed, why, evictions) => {
    await using provider = await realtimeProvider(undefined, undefined, onOpen);
    await using gate = await liveGateway(
      provider,
      {
        llm: {
          virtualModels: [{ name: 'safe', routing: { failover: { targets: [{ model: 'acme-live' }] } } }],
        },
      },
      { admin: true },
    );
    await using client = await realtimeClient(sessionUrl(gate, '?model=safe'));
    expect(await client.closed).toEqual(closed);
    const line = await gate.accessLine(1);
    expect([line['error'], line['reason'], line['error.detail']?.replace(/^127\.0\.0\.1:\d+: /, '')]).toEqual(
      why === undefined
        ? [undefined, undefined, undefined]
        : ['the session ended early', 'UpstreamFailure', why],
    );
    const dump = await (await fetch(`${gate.admin}/config_dump`)).text();
    expect(dump.match(/"timesEjected": ?[1-9]/g)?.length ?? 0).toBe(evictions);
  });

  it("has events of the provider without the gateway's key", async () => {
    const event = (key: string): string =>
      JSON.stringify({ type: 'error', error: { message: `bad key ${key}` } });
    await using provider = await realtimeProvider((session) => session.send(event(KEY)));
    await using gate = await liveGateway(provider);
    await using client = await realtimeClient(sessionUrl(gate));
    client.socket.send('{}');
    await until(() => client.received.length === 2);
    expect(client.received[1]).toBe(event('<redacted>'));
  });

  it('is closed at the provider if the client disconnects', async () => {
    await using provider = await realtimeProvider();
    await using gate = await liveGateway(provider);
    await using client = await realtimeClient(sessionUrl(gate));
    client.socket.terminate();
    await until(() => provider.closed.length === 1);
    expect(provider.closed).toEqual([[1001, 'the client has disconnected']]);
  });

  it('ends with code 1009 after a message over the limit', async () => {
    await using provider = await realtimeProvider();
    await using gate = await liveGateway(provider, {}, { limits: { realtimeMessageBytes: 1_000 } });
    await using client = await realtimeClient(sessionUrl(gate));
    client.socket.send('x'.repeat(1_001));
    expect((await client.closed)[0]).toBe(1009);
    expect(provider.messages).toEqual([]);
  });

  it('ends with code 1001 when the gateway shuts down', async () => {
    await using provider = await realtimeProvider();
    await using gate = await liveGateway(provider, { config: { connectionTerminationDeadline: '10ms' } });
    await using client = await realtimeClient(sessionUrl(gate));
    await gate.close();
    expect(await client.closed).toEqual([1001, 'the gateway is closing']);
    await until(() => provider.closed.length === 1);
    expect(provider.closed).toEqual([[1001, 'the gateway is closing']]);
  });

  it('stops reading from a provider whose messages the client does not read', async () => {
    const piece = 'x'.repeat(100_000);
    await using provider = await realtimeProvider((session) => {
      for (let sent = 0; sent < 500; sent += 1) session.send(piece);
    });
    await using gate = await liveGateway(provider);
    await using client = await realtimeClient(sessionUrl(gate));
    await until(() => client.received.length === 1);
    client.socket.pause();
    client.socket.send('go');
    const [session] = provider.sessions as [WebSocket];
    await until(() => provider.messages.length === 1);
    // Until nothing moves any more: without back-pressure, the gateway would take everything.
    let before = -1;
    let unchanged = 0;
    await until(() => {
      unchanged = session.bufferedAmount === before ? unchanged + 1 : 0;
      before = session.bufferedAmount;
      return unchanged === 40;
    });
    // The sockets of both connections and the gateway hold far less than the 50 MB that were sent.
    expect(before).toBeGreaterThan(20_000_000);
    client.socket.resume();
    await until(() => client.received.length === 501, 20_000);
    expect(client.received.slice(1).every((text) => text === piece)).toBe(true);
  });
});

describe('a handshake', () => {
  it('is refused without a valid API key, with the status and body of other calls', async () => {
    await using provider = await realtimeProvider();
    await using gate = await liveGateway(provider, {
      policies: { apiKey: { mode: 'strict', keys: [{ key: 'team-key', allowedModels: ['other'] }] } },
    });
    await expect(realtimeClient(sessionUrl(gate))).rejects.toThrow(/^401 .*api key authentication failure/);
    const headers = { authorization: 'Bearer team-key' };
    await expect(realtimeClient(sessionUrl(gate), { headers })).rejects.toThrow(/^403 .*model_not_allowed/);
    expect(provider.handshakes).toHaveLength(0);
    expect(await gate.accessLine(2)).toMatchObject({ 'http.status': '403' });
  });

  it.each([
    ['no model', '', /^400 .*\/v1\/realtime\?model=NAME/],
    ['two models', '?model=a&model=b', /^400 /],
    ['an unknown model', '?model=unknown', /^404 .*model_not_found/],
  ])('with %s is refused', async (_, query, expected) => {
    await using provider = await realtimeProvider();
    await using gate = await liveGateway(provider);
    await expect(realtimeClient(sessionUrl(gate, query))).rejects.toThrow(expected);
    expect(provider.handshakes).toHaveLength(0);
  });

  it("gets the provider's refusal without the gateway's key", async () => {
    const body = '{"error":{"message":"bad key sk-gateway-secret","code":"invalid_api_key"}}';
    await using provider = await realtimeProvider(undefined, { status: 403, body });
    await using gate = await liveGateway(provider);
    await expect(realtimeClient(sessionUrl(gate))).rejects.toThrow(
      '403 {"error":{"message":"bad key <redacted>","code":"invalid_api_key"}}',
    );
    expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '403' });
  });

  it('gets headers of a refusal that say when to try again', async () => {
    await using provider = await realtimeProvider(undefined, {
      status: 429,
      body: '{}',
      header: `retry-after: 7\r\nset-cookie: a=b\r\nx-echo: ${'sk-gateway-secret'}`,
    });
    await using gate = await liveGateway(provider);
    const answer = await exchange(
      gate.port,
      `GET /v1/realtime?model=acme-live HTTP/1.1\r\nhost: a\r\nconnection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${'A'.repeat(22)}==\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 429 .*\r\nretry-after: 7\r\n/s);
    expect(answer).not.toMatch(/set-cookie|x-echo/);
  });

  it("is answered with 502 if the provider does not accept the gateway's key", async () => {
    const body = '{"error":{"message":"bad key","code":"invalid_api_key"}}';
    await using provider = await realtimeProvider(undefined, { status: 401, body });
    await using gate = await liveGateway(provider);
    await expect(realtimeClient(sessionUrl(gate))).rejects.toThrow(/^502 .*provider_auth_failed/);
    expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '502', 'error.type': 'invalid_api_key' });
  });

  it('is answered with 503 if the provider cannot be reached', async () => {
    const provider = await realtimeProvider();
    await provider[Symbol.asyncDispose]();
    await using gate = await liveGateway(provider);
    await expect(realtimeClient(sessionUrl(gate))).rejects.toThrow(/^503 .*connection refused/);
  });

  it('is refused for a provider without a Realtime API', async () => {
    await using provider = await realtimeProvider();
    await using gate = await liveGateway(provider, { model: { provider: 'anthropic' } });
    await expect(realtimeClient(sessionUrl(gate))).rejects.toThrow(/^400 .*has no Realtime API/);
  });
});

describe('a realtime session with guardrails for requests', () => {
  const MASK = { regex: { rules: [{ pattern: 'secret' }] } };
  const guarded = (provider: RealtimeProvider, ...request: object[]): Promise<TestGateway> =>
    liveGateway(provider, { model: { guardrails: { request } } });

  it('masks instructions, messages and results of tools, and passes other events byte for byte', async () => {
    await using provider = await realtimeProvider();
    const scope = ['systemPrompt', 'messages', 'toolInput', 'toolOutput'];
    await using gate = await guarded(provider, { ...MASK, scope });
    await using client = await realtimeClient(sessionUrl(gate));
    const events = [
      '{"type":"session.update","session":{"type":"realtime","instructions":"no secret"}}',
      itemOf('my secret'),
      '{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c","output":"secret"}}',
      '{"type":"conversation.item.create","item":{"type":"function_call","name":"f","arguments":"{\\"a\\":\\"secret\\"}"}}',
      '{"type":"response.create","response":{"instructions":"secret","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"secret"}]}]}}',
      '{"type":"session.update","session":{"audio":{"input":{"transcription":{"prompt":"secret"}}}}}',
      '{ "type":"response.create" }',
      '{"type":"input_audio_buffer.append","audio":"c2VjcmV0"}',
    ];
    for (const event of events) client.socket.send(event);
    await until(() => provider.messages.length === events.length);
    expect(provider.messages.join('')).not.toContain('secret');
    expect(provider.messages[1]).toBe(itemOf('my <masked>'));
    expect(provider.messages.slice(-2)).toEqual(events.slice(-2));
    await client[Symbol.asyncDispose]();
    expect(await gate.accessLine(1)).toMatchObject({ 'gw.ai.guardrail.unseen': '1' });
  });

  it('answers what it rejects with an error event, and keeps the order of messages', async () => {
    await using provider = await realtimeProvider((session, text) => session.send(`got ${text}`));
    await using gate = await guarded(provider, { regex: { ...MASK.regex, action: 'reject' } });
    await using client = await realtimeClient(sessionUrl(gate));
    client.socket.send(itemOf('first'));
    client.socket.send(itemOf('a secret', 'event_7'));
    client.socket.send(itemOf('last'));
    await until(() => client.received.length === 4);
    expect(provider.messages).toEqual([itemOf('first'), itemOf('last')]);
    const error = client.received.map(String).find((text) => text.includes('"error"'));
    expect(JSON.parse(error as string)).toMatchObject({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        code: 'guardrail_rejected',
        message: 'The request was rejected due to inappropriate content',
        event_id: 'event_7',
      },
    });
    await client[Symbol.asyncDispose]();
    expect(await gate.accessLine(1)).toMatchObject({ error: 'request rejected by regex guardrail' });
  });

  it.each([
    ['an event of an unknown type', '{"type":"session.hint","text":"secret"}', 'session.hint'],
    ['a template at the provider', '{"type":"session.update","session":{"prompt":{"id":"p1"}}}', 'prompt'],
    ['a repeated member', '{"type":"response.cancel","type":"response.create"}', 'duplicate member'],
    ['no JSON', 'secret', 'does not parse'],
    ['a binary message', Buffer.from('{"type":"response.cancel"}'), 'binary'],
  ])('does not send %s to the provider', async (_name, message, hint) => {
    await using provider = await realtimeProvider();
    await using gate = await guarded(provider, MASK);
    await using client = await realtimeClient(sessionUrl(gate));
    client.socket.send(message, { binary: typeof message !== 'string' });
    client.socket.send('{"type":"response.cancel"}');
    await until(() => provider.messages.length === 1 && client.received.length === 2);
    expect(provider.messages).toEqual(['{"type":"response.cancel"}']);
    const { error } = JSON.parse(String(client.received[1])) as { error: { message: string } };
    expect(error.message).toContain(hint);
  });

  it('sends nothing that could not be checked because the service failed', async () => {
    await using provider = await realtimeProvider();
    await using gate = await guarded(provider, { webhook: { target: { host: '127.0.0.1:9' } } });
    await using client = await realtimeClient(sessionUrl(gate));
    client.socket.send(itemOf('hello'));
    await until(() => client.received.length === 2);
    expect(JSON.parse(String(client.received[1]))).toMatchObject({
      error: { type: 'server_error', code: 'guardrail_failed' },
    });
    expect(provider.messages).toEqual([]);
  });

  it('sends what the client sent before it closed the session', async () => {
    await using provider = await realtimeProvider();
    await using gate = await guarded(provider, MASK);
    await using client = await realtimeClient(sessionUrl(gate));
    for (let count = 0; count < 100; count += 1) client.socket.send(itemOf(`text ${count}`));
    client.socket.close(1000, 'done');
    await until(() => provider.closed.length === 1);
    expect(provider.messages).toHaveLength(100);
    expect(provider.closed[0]).toEqual([1000, 'done']);
  });
});

function itemOf(text: string, event_id?: string): string {
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
  return JSON.stringify({ type: 'conversation.item.create', ...(event_id && { event_id }), item });
}

describe('requests that are no WebSocket handshakes', () => {
  it('to the path of the Realtime API get 400', async () => {
    await using provider = await realtimeProvider();
    await using gate = await liveGateway(provider);
    const response = await fetch(sessionUrl(gate));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'websocket_required' } });
  });

  it('but offer another protocol, as Java does with h2c, are handled without the offer', async () => {
    await using gate = await gateway(
      'gateways: { default: { port: 0 } }\nroutes: [{ policies: { directResponse: { body: ok } } }]',
    );
    const answer = await exchange(
      gate.port,
      'POST / HTTP/1.1\r\nhost: a\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AA\r\ncontent-length: 2\r\n\r\nhi',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('a handshake to a route without WebSockets is answered as a request, and ends the connection', async () => {
    await using gate = await gateway(
      'gateways: { default: { port: 0 } }\nroutes: [{ policies: { directResponse: { body: ok } } }]',
    );
    const answer = await exchange(
      gate.port,
      'GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*connection: close\r\n[\s\S]*\r\n\r\nok$/i);
    expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '200' });
  });
});

/** Terminates TLS in front of a port, as a load balancer does. */
describe('a realtime session with the built-in model', () => {
  const echoGateway = (policies: object = {}, model: object = {}): Promise<TestGateway> =>
    gateway(
      JSON.stringify({
        config: { connectionTerminationDeadline: '100ms' },
        llm: { port: 0, policies, models: [{ name: '*', provider: 'echo', ...model }] },
      }),
    );
  const item = (text: string) => ({
    type: 'message' as const,
    role: 'user' as const,
    content: [{ type: 'input_text' as const, text }],
  });

  it('repeats a text word by word for the official OpenAI client, and counts its words', async () => {
    await using gate = await echoGateway();
    await using front = await tlsFront(gate.port);
    const openai = new OpenAI({ apiKey: 'unused', baseURL: `https://localhost:${front.port}/v1` });
    const live = new OpenAIRealtimeWS(
      { model: 'gpt-realtime', options: { ca: readFileSync(AUTHORITY) } },
      openai,
    );
    const deltas: string[] = [];
    const types: string[] = [];
    const done = new Promise((resolve, reject) => {
      live.on('error', reject);
      live.on('event', ({ type }) => types.push(type));
      live.on('response.output_text.delta', ({ delta }) => deltas.push(delta));
      live.on('response.done', ({ response }) => resolve(response));
    });
    live.on('session.created', ({ session }) => {
      expect(session).toMatchObject({ type: 'realtime', model: 'gpt-realtime' });
      live.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } });
      live.send({ type: 'conversation.item.create', item: item('one two three') });
      live.send({ type: 'response.create' });
    });
    expect(await done).toMatchObject({
      status: 'completed',
      output: [{ role: 'assistant', content: [{ type: 'output_text', text: 'one two three' }] }],
      usage: { input_tokens: 3, output_tokens: 3, total_tokens: 6 },
    });
    expect(deltas).toEqual(['one', ' two', ' three']);
    expect(types.slice(0, 5)).toEqual([
      'session.created',
      'session.updated',
      'conversation.item.added',
      'conversation.item.done',
      'response.created',
    ]);
    live.close();
    expect(await gate.accessLine(1)).toMatchObject({
      'http.status': '101',
      'gen_ai.request.model': 'gpt-realtime',
      'gen_ai.usage.input_tokens': '3',
      'gen_ai.usage.output_tokens': '3',
    });
  });

  it('takes recordings, and keeps the model of the URL', async () => {
    await using gate = await echoGateway();
    await using client = await realtimeClient(sessionUrl(gate));
    for (const event of [
      { type: 'session.update', session: { model: 'another', instructions: 'Be brief.' } },
      { type: 'input_audio_buffer.append', audio: 'AAAA' },
      { type: 'input_audio_buffer.commit' },
      { type: 'response.create', response: { max_output_tokens: 2 } },
    ])
      client.socket.send(JSON.stringify(event));
    const last = (): Record<string, unknown> =>
      JSON.parse(client.received.at(-1) as string) as Record<string, unknown>;
    await until(() => client.received.length > 1 && last()['type'] === 'response.done');
    expect(JSON.parse(client.received[1] as string)).toMatchObject({
      type: 'session.updated',
      session: { model: 'acme-live', instructions: 'Be brief.' },
    });
    expect(last()).toMatchObject({
      response: { status: 'incomplete', output: [{ content: [{ text: 'The recording' }] }] },
    });
  });

  it('answers an unknown event with an error that names it and its id', async () => {
    await using gate = await echoGateway();
    await using client = await realtimeClient(sessionUrl(gate));
    for (const text of ['{"type":"response.cancel","event_id":"e7"}', 'no JSON']) client.socket.send(text);
    await until(() => client.received.length === 3);
    expect(client.received.slice(1).map((text) => JSON.parse(text as string) as object)).toMatchObject([
      {
        type: 'error',
        error: {
          code: 'invalid_value',
          event_id: 'e7',
          message: expect.stringContaining('`response.cancel`') as string,
        },
      },
      { type: 'error', error: { code: 'invalid_json', event_id: null } },
    ]);
  });

  it('rejects texts of the client by a guardrail, and goes on', async () => {
    const regex = { rules: [{ pattern: 'secret' }], action: 'reject' };
    await using gate = await echoGateway({}, { guardrails: { request: [{ regex }] } });
    await using client = await realtimeClient(sessionUrl(gate));
    await until(() => client.received.length === 1);
    for (const text of ['a secret', 'fine']) client.socket.send(itemOf(text));
    client.socket.send('{"type":"response.create"}');
    await until(() => client.received.some((text) => String(text).includes('response.done')));
    const received = client.received.map(String);
    expect(JSON.parse(received[1] as string)).toMatchObject({ error: { code: 'guardrail_rejected' } });
    expect(received.join('')).not.toContain('secret');
    expect(received.at(-1)).toContain('fine');
  });

  it('is refused to keys that do not allow the model', async () => {
    const keys = [{ key: 'client-key', allowedModels: ['other'] }];
    await using keyed = await echoGateway({ apiKey: { mode: 'strict', keys } });
    const headers = { authorization: 'Bearer client-key' };
    await expect(realtimeClient(sessionUrl(keyed), { headers })).rejects.toThrow(/^403 /);
  });

  it('ends with code 1001 when the gateway shuts down', async () => {
    await using gate = await echoGateway();
    await using client = await realtimeClient(sessionUrl(gate));
    await until(() => client.received.length === 1);
    await gate.close();
    expect(await client.closed).toEqual([1001, 'the gateway is closing']);
  });
});

async function tlsFront(port: number): Promise<AsyncDisposable & { readonly port: number }> {
  const sockets = new Set<Socket>();
  const server = createServer(certificateOf('good'), (client) => {
    const inner = connect(port, '127.0.0.1');
    for (const socket of [client, inner]) sockets.add(socket.on('error', () => undefined));
    client.pipe(inner).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Sends bytes and resolves to what came back until the server closed the connection. */
function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.setEncoding('latin1').on('data', (piece) => {
      answer += piece;
    });
    socket.on('error', reject).on('end', () => resolve(answer));
  });
}
