import * as conventions from '@opentelemetry/semantic-conventions/incubating';
import { expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import {
  answering,
  chat,
  chunk,
  completion,
  DONE,
  llmGateway,
  llmProvider,
  streaming,
} from '../../kit/llm-provider.ts';
import { openSession } from '../../kit/mcp.ts';
import { type Collector, collector, type ReceivedSpan } from '../../kit/otlp.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

// Names, types and statuses of https://opentelemetry.io/docs/specs/semconv/http/http-spans/ and, for models and MCP, of
// https://github.com/open-telemetry/semantic-conventions-genai.

const SERVER = 2;
const CLIENT = 3;
const UNSET = 0;
const ERROR = 2;

const tracing = (sink: Collector, more: object = {}) => ({
  config: { tracing: { otlpEndpoint: sink.url, otlpProtocol: 'http', randomSampling: true, ...more } },
});

/** The spans of what `act` asks of the gateway: of the last request, with the calls made for it. */
async function spansOf(
  sink: Collector,
  gate: TestGateway,
  act: () => Promise<unknown>,
): Promise<{ server: ReceivedSpan; clients: readonly ReceivedSpan[] }> {
  const known = gate.accessLog.length;
  await act();
  await until(() => gate.accessLog.length > known);
  await gate.close();
  const server = sink.spans.findLast(({ kind }) => kind === SERVER) as ReceivedSpan;
  const clients = sink.spans.filter(
    ({ kind, parentSpanId }) => kind === CLIENT && parentSpanId === server.spanId,
  );
  return { server, clients };
}

test('an HTTP request and its upstream call have the attributes of the semantic conventions', async () => {
  await using sink = await collector('http');
  await using upstream = await httpUpstream((_, response) => response.end('ok'));
  const route = {
    matches: [{ path: { pathPrefix: '/v1' } }],
    backends: [{ host: upstream.address }],
  };
  const gate = await gateway(routesConfig([route], tracing(sink)));
  const { server, clients } = await spansOf(sink, gate, () =>
    send(`${gate.url}/v1/items?token=abc&page=2`, { headers: { 'user-agent': 'probe/1' } }),
  );
  expect(server).toMatchObject({ name: 'GET /v1/*', status: { code: UNSET, message: '' } });
  const { duration, endpoint, gateway: _, listener, protocol, route: name, ...standard } = server.attributes;
  expect(standard).toEqual({
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'http.route': '/v1/*',
    'url.scheme': 'http',
    'url.path': '/v1/items',
    'url.query': 'token=<redacted>&page=2',
    'network.protocol.version': '1.1',
    'server.address': '127.0.0.1',
    'server.port': gate.port,
    'client.address': '127.0.0.1',
    'network.peer.address': '127.0.0.1',
    'network.peer.port': expect.any(Number),
    'user_agent.original': 'probe/1',
  });
  expect([typeof duration, endpoint, listener, protocol, typeof name]).toEqual([
    'number',
    upstream.address,
    'default',
    'http',
    'string',
  ]);
  expect(clients).toHaveLength(1);
  expect(clients[0]).toMatchObject({ name: 'GET', status: { code: UNSET } });
  expect(clients[0]?.attributes).toEqual({
    'agentgateway.outbound.kind': 'Primary',
    'agentgateway.outbound.subtype': 'Http',
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'server.address': '127.0.0.1',
    'server.port': upstream.port,
    'url.full': `http://${upstream.address}/v1/items`,
  });
});

test.each([
  [404, UNSET, ERROR, undefined],
  [503, ERROR, ERROR, '503'],
])(
  'an upstream response with %i sets the status and error.type of both spans as the conventions require',
  async (status, ofServer, ofClient, type) => {
    await using sink = await collector('http');
    await using upstream = await httpUpstream((_, response) => response.writeHead(status).end());
    const gate = await proxyGateway(upstream.address, {}, tracing(sink));
    const { server, clients } = await spansOf(sink, gate, () => send(gate.url));
    expect([server.status, server.attributes['error.type']]).toEqual([{ code: ofServer, message: '' }, type]);
    expect([clients[0]?.status, clients[0]?.attributes['error.type']]).toEqual([
      { code: ofClient, message: '' },
      String(status),
    ]);
  },
);

test('a refused upstream connection sets the status and error.type of both spans as the conventions require', async () => {
  await using sink = await collector('http');
  const gate = await proxyGateway('127.0.0.1:1', {}, tracing(sink));
  const { server, clients } = await spansOf(sink, gate, () => send(gate.url));
  expect(server.status).toEqual({ code: ERROR, message: expect.stringContaining('upstream call failed') });
  expect(server.attributes).toMatchObject({
    'error.type': 'UpstreamFailure',
    'http.response.status_code': 503,
  });
  expect(clients[0]).toMatchObject({ status: { code: ERROR }, attributes: { 'error.type': 'ECONNREFUSED' } });
});

test('a rejected request is not a server error and has the reason of the refusal', async () => {
  await using sink = await collector('http');
  const gate = await gateway(
    routesConfig(
      [{ policies: { directResponse: { body: 'x' }, apiKey: { mode: 'strict', keys: [{ key: 'k' }] } } }],
      tracing(sink),
    ),
  );
  const { server } = await spansOf(sink, gate, () => send(gate.url));
  expect(server.status.code).toBe(UNSET);
  expect(server.attributes).toMatchObject({
    'http.response.status_code': 401,
    reason: 'APIKeyAuth',
    'error.message': expect.any(String),
  });
  expect(server.attributes).not.toHaveProperty('error.type');
});

test.each([
  [
    'PROPFIND',
    '/none',
    { 'http.request.method': '_OTHER', 'http.request.method_original': 'PROPFIND' },
    'HTTP',
  ],
  ['GET', '/none', { 'http.request.method': 'GET', 'http.response.status_code': 404 }, 'GET'],
  ['GET', '/exact', { 'http.route': '/exact' }, 'GET /exact'],
  ['GET', '/items/7', { 'http.route': '/items/[0-9]+' }, 'GET /items/[0-9]+'],
])(
  'the server span of %s %s has the name and attributes of the conventions',
  async (method, path, attributes, name) => {
    await using sink = await collector('http');
    const matches = [{ path: { exact: '/exact' } }, { path: { regex: '/items/[0-9]+' } }];
    const gate = await gateway(
      routesConfig([{ matches, policies: { directResponse: { body: 'x' } } }], tracing(sink)),
    );
    const { server } = await spansOf(sink, gate, () => send(gate.url + path, { method }));
    expect(server).toMatchObject({ name, attributes });
    expect('http.route' in server.attributes).toBe(name.includes('/'));
  },
);

test.each([
  [['src.addr', 'http.path', 'http.host'], /client\.|peer|url\.path|url\.query|server\./],
  [['client.address', 'duration'], /client\.|duration/],
])(
  'span attributes are removed by their own names and by those of the access log: %j',
  async (remove, gone) => {
    await using sink = await collector('http');
    const gate = await gateway(
      routesConfig([{ policies: { directResponse: { body: 'x' } } }], tracing(sink, { fields: { remove } })),
    );
    const { server } = await spansOf(sink, gate, () => send(`${gate.url}/?a=1`));
    expect(Object.keys(server.attributes).filter((name) => gone.test(name))).toEqual([]);
    expect(server.attributes).toHaveProperty('http.request.method');
  },
);

test('a streamed LLM call is a GenAI span with numeric attributes', async () => {
  await using sink = await collector('http');
  const usage = {
    prompt_tokens: 12,
    completion_tokens: 7,
    completion_tokens_details: { reasoning_tokens: 5, audio_tokens: 2 },
  };
  await using provider = await llmProvider(
    streaming((response) => response.end(chunk({ content: 'Hello.' }) + chunk(undefined, { usage }) + DONE)),
  );
  const gate = await llmGateway(provider, { params: { model: 'acme-large' }, more: tracing(sink) });
  const { server, clients } = await spansOf(sink, gate, () =>
    chat(gate, {
      model: 'fast',
      stream: true,
      messages: [{ role: 'user', content: 'Hi' }],
      temperature: 0.5,
    }),
  );
  const told = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.stream': true,
    'gen_ai.response.model': 'acme-mini-1',
    'gen_ai.response.time_to_first_chunk': expect.any(Number),
  };
  // In one span only: who adds up a trace must not count them twice.
  const counted = {
    'gen_ai.usage.input_tokens': 12,
    'gen_ai.usage.output_tokens': 7,
    'gen_ai.usage.reasoning.output_tokens': 5,
    'gen_ai.usage.audio.output_tokens': 2,
  };
  expect(server).toMatchObject({
    name: 'POST /*',
    attributes: { ...told, 'gen_ai.request.model': 'fast', 'gen_ai.request.temperature': 0.5 },
  });
  expect(clients[0]).toMatchObject({
    name: 'chat acme-large',
    attributes: { ...told, ...counted, 'gen_ai.request.model': 'acme-large', 'http.request.method': 'POST' },
  });
  for (const name of Object.keys(counted)) expect(server?.attributes).not.toHaveProperty([name]);
  const [first, whole] = [clients[0], server].map(
    (span) => span?.attributes['gen_ai.response.time_to_first_chunk'] as number,
  );
  expect(first).toBeGreaterThanOrEqual(0);
  expect(first).toBeLessThanOrEqual(whole as number);
});

test.each([
  ['chat/completions', 'chat', { messages: [] }],
  ['responses', 'chat', { input: 'Hi' }],
  ['embeddings', 'embeddings', { input: 'Hi', encoding_format: 'float' }],
])('an LLM call to /v1/%s is the GenAI operation %s', async (path, operation, body) => {
  await using sink = await collector('http');
  await using provider = await llmProvider(answering(completion('Hello.')));
  const gate = await llmGateway(provider, { more: tracing(sink) });
  const { server, clients } = await spansOf(sink, gate, () =>
    send(`${gate.url}/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'acme-mini', ...body }),
    }),
  );
  expect(clients[0]).toMatchObject({
    name: `${operation} acme-mini`,
    attributes: { 'gen_ai.operation.name': operation },
  });
  expect(server.attributes['gen_ai.operation.name']).toBe(operation);
  expect(server.attributes['gen_ai.request.encoding_formats']).toEqual(
    operation === 'embeddings' ? ['float'] : undefined,
  );
});

test("an LLM call that the provider rejects is an error of the client span, with the provider's error type", async () => {
  await using sink = await collector('http');
  await using provider = await llmProvider(
    answering('{"error":{"message":"no","code":"invalid_api_key"}}', 401),
  );
  const gate = await llmGateway(provider, { more: tracing(sink) });
  const { server, clients } = await spansOf(sink, gate, () => chat(gate));
  expect(server.status.code).toBe(UNSET);
  expect(clients[0]).toMatchObject({
    status: { code: ERROR },
    attributes: { 'error.type': 'invalid_api_key', 'http.response.status_code': 401 },
  });
});

test('an MCP tool call has the attributes of the conventions in both spans', async () => {
  await using sink = await collector('http');
  const gate = await gateway(mcpConfig([chaos('a', '--tools=echo')], tracing(sink)));
  const session = await openSession(`${gate.url}/mcp`, { 'mcp-protocol-version': '2025-06-18' });
  const { server, clients } = await spansOf(sink, gate, () =>
    session.request('tools/call', { name: 'echo', arguments: {} }),
  );
  const both = {
    'mcp.method.name': 'tools/call',
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'echo',
  };
  expect(server).toMatchObject({
    name: 'tools/call echo',
    attributes: {
      ...both,
      'mcp.session.id': expect.any(String),
      'mcp.protocol.version': '2025-06-18',
      'jsonrpc.request.id': expect.stringMatching(/^\d+$/),
      'http.request.method': 'POST',
    },
  });
  expect(clients[0]).toMatchObject({
    name: 'tools/call echo',
    attributes: {
      ...both,
      'network.transport': 'pipe',
      'jsonrpc.request.id': expect.stringMatching(/^\d+$/),
    },
  });
});

test('a JSON-RPC error has its code in both spans', async () => {
  await using sink = await collector('http');
  const gate = await gateway(mcpConfig([chaos('a')], tracing(sink)));
  const session = await openSession(`${gate.url}/mcp`);
  const { server, clients } = await spansOf(sink, gate, () =>
    session.request('tools/call', { name: 'fail', arguments: { code: -32050, message: 'not today' } }),
  );
  expect(clients).toHaveLength(1);
  for (const span of [server, clients[0]]) {
    expect(span?.status).toEqual({ code: ERROR, message: 'not today' });
    expect(span?.attributes).toMatchObject({ 'error.type': '-32050', 'rpc.status_code': '-32050' });
  }
});

/** Attributes of the GenAI conventions that the package does not have yet. */
const NEWER = new Set(['gen_ai.usage.audio.input_tokens', 'gen_ai.usage.audio.output_tokens']);
/** Namespaces of the conventions. */
const STANDARD = /^(?:http|url|network|server|client|user_agent|error|gen_ai|jsonrpc|rpc)\./;

test('no span attribute in a namespace of the conventions is invented or deprecated', async () => {
  const known = new Set<unknown>(Object.values(conventions));
  await using sink = await collector('http');
  const usage = {
    prompt_tokens: 12,
    completion_tokens: 7,
    prompt_tokens_details: { cached_tokens: 3, audio_tokens: 1 },
    completion_tokens_details: { reasoning_tokens: 5, audio_tokens: 2 },
  };
  await using provider = await llmProvider(answering(completion('Hello.', { usage })));
  const gate = await llmGateway(provider, { more: tracing(sink) });
  const parameters = {
    temperature: 1,
    top_p: 1,
    max_tokens: 9,
    frequency_penalty: 0,
    presence_penalty: 0,
    seed: 4,
  };
  const { server, clients } = await spansOf(sink, gate, () =>
    chat(gate, { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...parameters }),
  );
  const names = [server, ...clients].flatMap(({ attributes }) => Object.keys(attributes));
  const standard = names.filter((name) => STANDARD.test(name));
  expect(standard.length).toBeGreaterThan(30);
  expect(standard.filter((name) => !known.has(name) && !NEWER.has(name))).toEqual([]);
  for (const old of ['http.method', 'http.status', 'http.host', 'http.path', 'gen_ai.system'])
    expect(names).not.toContain(old);
});
