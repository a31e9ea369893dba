import { describe, expect, test } from 'vitest';
import { askPolicy } from '../../kit/authz.ts';
import { gateway } from '../../kit/gateway.ts';
import { CHAT, llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { INITIALIZE } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { valuesOf } from '../../kit/send.ts';
import { httpUpstream, type Received, rawUpstream } from '../../kit/upstream.ts';

const NAMING = ['Connection: close, x-role, x-user', 'X-Role: forged', 'X-User: forged'];

/** Sets one of the two headers itself and copies the other from an authorization service. */
const policiesAsking = (service: string): object => ({
  ...askPolicy(service, { includeResponseHeaders: ['x-user'] }),
  requestHeaderModifier: { set: { 'x-role': 'reader' } },
});

const authorizationService = () =>
  httpUpstream((_, response) => response.setHeader('x-user', 'alice').end('ok'));

const rolesOf = ({ rawHeaders }: Pick<Received, 'rawHeaders'>): string[][] => [
  valuesOf({ rawHeaders }, 'x-role'),
  valuesOf({ rawHeaders }, 'x-user'),
];

describe('Connection header of the client', () => {
  test("a client's Connection header does not remove gateway headers for a plain HTTP service", async () => {
    await using service = await authorizationService();
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, policiesAsking(service.address));
    await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', NAMING));
    expect(backend.received.map(rolesOf)).toEqual([[['reader'], ['alice']]]);
  });

  test("a client's Connection header does not remove gateway headers for an LLM provider", async () => {
    await using service = await authorizationService();
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, { llm: { policies: policiesAsking(service.address) } });
    const body = JSON.stringify(CHAT);
    const lines = [...NAMING, 'Content-Type: application/json', `Content-Length: ${body.length}`];
    await sendRaw(gate.port, rawRequest('POST /v1/chat/completions HTTP/1.1', lines, body));
    expect(provider.received.map(rolesOf)).toEqual([[['reader'], ['alice']]]);
  });

  test("a client's Connection header does not remove gateway headers for an MCP server over HTTP", async () => {
    await using service = await authorizationService();
    await using up = await mcpUpstream();
    const backends = [{ mcp: { targets: [{ name: 'up', mcp: { host: up.url } }] } }];
    await using gate = await gateway(routesConfig([{ policies: policiesAsking(service.address), backends }]));
    const body = JSON.stringify(INITIALIZE);
    const lines = [
      ...NAMING,
      'Content-Type: application/json',
      'Accept: application/json, text/event-stream',
      `Content-Length: ${body.length}`,
    ];
    await sendRaw(gate.port, rawRequest('POST /mcp HTTP/1.1', lines, body));
    expect(up.of('initialize')[0]?.headers).toMatchObject({ 'x-role': 'reader', 'x-user': 'alice' });
  });
});

describe('hop-by-hop headers', () => {
  test('hop-by-hop headers are not visible to rules, external authorization and matches', async () => {
    await using service = await httpUpstream();
    await using backend = await httpUpstream();
    const names = ['te', 'connection', 'keep-alive', 'proxy-authorization', 'upgrade'];
    const byHeader = {
      name: 'by-header',
      matches: [{ headers: [{ name: 'te', value: { exact: 'trailers' } }] }],
      policies: { directResponse: { status: 418 } },
    };
    const rest = {
      name: 'rest',
      policies: {
        ...askPolicy(service.address, {}, { includeRequestHeaders: names }),
        authorization: {
          rules: names.map((name) => `default(request.headers["${name}"], "none") == "none"`),
        },
      },
      backends: [{ host: backend.address }],
    };
    await using gate = await gateway(routesConfig([byHeader, rest]));
    const lines = [
      'Connection: X-First',
      'X-First: 1',
      'Connection: close, X-Hop',
      'X-Hop: 1',
      'TE: trailers',
      'Keep-Alive: timeout=5',
      'Proxy-Authorization: Basic YTpi',
      'Upgrade: h2c',
    ];
    expect((await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', lines))).statuses).toEqual([200]);
    for (const name of ['x-first', 'x-hop', ...names].filter((each) => each !== 'connection')) {
      expect(service.received[0]?.headers).not.toHaveProperty(name);
      expect(backend.received[0]?.headers).not.toHaveProperty(name);
    }
  });

  test.each([
    'authorization',
    'Host',
    'Cookie',
    'content-length',
    'Content-Type',
    'content-encoding',
    'transfer-encoding',
    'origin',
    'mcp-session-id',
    'MCP-Protocol-Version',
  ])('a Connection header that names %s is rejected with 400 and names it', async (name) => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address);
    for (const value of [name, `keep-alive, ${name}`, `x-a ,\t${name} , x-b`]) {
      const { text, statuses, closed } = await sendRaw(
        gate.port,
        rawRequest('GET / HTTP/1.1', [`Connection: ${value}`]),
      );
      expect({ statuses, closed }).toEqual({ statuses: [400], closed: true });
      expect(text).toContain(`the Connection header names ${name.toLowerCase()}`);
    }
    expect(backend.received).toEqual([]);
  });

  // Apache CVE-2022-31813: `Connection: x-forwarded-for` hid the client's address from rules.
  test.each<[string, string, object]>([
    [
      'a deny rule',
      'x-block',
      { authorization: { rules: [{ deny: 'default(request.headers["x-block"], "") == "1"' }] } },
    ],
    ['a rule, as a member', 'block', { authorization: { rules: [{ deny: 'has(request.headers.block)' }] } }],
    [
      'a rule, with a literal in single quotes',
      'x-b',
      { authorization: { rules: ["request.headers[?'X-B'].orValue('') == ''"] } },
    ],
    [
      'a rule that computes names',
      'x-any',
      { authorization: { rules: ['request.headers["x-" + request.path.substring(1)] == "1"'] } },
    ],
    [
      'a rule that takes all headers',
      'x-any',
      { authorization: { rules: ['!("x-block" in request.headers)'] } },
    ],
    [
      'a rule that takes the whole request',
      'x-any',
      { authorization: { rules: ['string(toJson(request)) != ""'] } },
    ],
    ['a rule that takes all variables', 'x-any', { authorization: { rules: ['variables().size() > 0'] } }],
    [
      'a transformation',
      'x-copied',
      { transformations: { request: { set: { 'x-to': 'request.headers["x-copied"]' } } } },
    ],
    [
      'the location of a key',
      'x-key',
      { apiKey: { location: { header: { name: 'X-Key' } }, keys: [{ key: 'k' }], mode: 'optional' } },
    ],
    [
      'a rate limit',
      'x-tenant',
      {
        localRateLimit: [
          { maxTokens: 9, tokensPerFill: 9, fillInterval: '1s', key: 'request.headers["x-tenant"]' },
        ],
      },
    ],
    [
      'an authorization service',
      'x-sent',
      askPolicy('127.0.0.1:1', {}, { includeRequestHeaders: ['x-sent'], failureMode: 'allow' }),
    ],
    ['the gateway itself: a client address', 'X-Forwarded-For', {}],
    ['the gateway itself: a key of LLM clients', 'x-api-key', {}],
    ['the gateway itself: a trace', 'traceparent', {}],
    ['the gateway itself: Fetch Metadata', 'sec-fetch-site', {}],
  ])('a Connection header cannot hide a header from %s', async (_, name, policies) => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, policies);
    const lines = [`Connection: close, ${name}`, `${name}: 1`];
    const { text, statuses } = await sendRaw(gate.port, rawRequest('GET /any HTTP/1.1', lines));
    expect(statuses).toEqual([400]);
    expect(text).toContain(`the Connection header names ${name.toLowerCase()}`);
    expect(backend.received).toEqual([]);
  });

  test('a Connection header cannot hide a header from the match of a route or the access log', async () => {
    await using backend = await httpUpstream();
    const matches = [{ headers: [{ name: 'X-Matched', value: { exact: '1' } }] }];
    const yaml = routesConfig([{ matches, backends: [{ host: backend.address }] }], {
      frontendPolicies: { accessLog: { add: { logged: 'request.headers["x-logged"]' } } },
    });
    await using gate = await gateway(yaml);
    for (const name of ['x-matched', 'x-logged']) {
      const lines = [`Connection: close, ${name}`, `${name}: 1`];
      expect((await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', lines))).statuses).toEqual([400]);
    }
  });

  test('a Connection header may name hop-by-hop headers, whatever rules read', async () => {
    await using backend = await httpUpstream();
    const rules = ['string(toJson(request)) != "" && request.headers.size() >= 0'];
    await using gate = await proxyGateway(backend.address, { authorization: { rules } });
    const lines = [
      'Connection: close, Upgrade, HTTP2-Settings, TE, , Keep-Alive, Proxy-Connection',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
      'TE: trailers',
    ];
    const { statuses } = await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', lines));
    expect(statuses).toEqual([200]);
    expect(Object.keys(backend.received[0]?.headers ?? {})).not.toContain('http2-settings');
  });

  test('hop-by-hop headers of a response are removed before response policies add theirs', async () => {
    const head = [
      'HTTP/1.1 200 OK',
      'Connection: x-first',
      'X-First: 1',
      'Connection: x-policy, x-upstream',
      'X-Policy: old',
      'X-Upstream: 1',
      'Keep-Alive: timeout=9',
      'Content-Length: 2',
    ];
    await using backend = await rawUpstream((socket) => socket.write(`${head.join('\r\n')}\r\n\r\nok`));
    await using gate = await proxyGateway(
      backend.address,
      { responseHeaderModifier: { set: { 'x-policy': 'new' } } },
      { frontendPolicies: { accessLog: { add: { seen: '"x-upstream" in response.headers' } } } },
    );
    const { text } = await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', ['Connection: close']));
    expect(text).toMatch(/^x-policy: new\r$/im);
    expect(text).not.toMatch(/x-first|x-upstream|timeout=9|: old/i);
    expect((await gate.accessLine(1))['seen']).toBe('false');
  });

  test('hop-by-hop headers of an authorization service do not reach the backend', async () => {
    const head = [
      'HTTP/1.1 200 OK',
      'Connection: close, x-hop',
      'X-Hop: 1',
      'X-User: alice',
      'Content-Length: 0',
    ];
    await using service = await rawUpstream((socket) => socket.end(`${head.join('\r\n')}\r\n\r\n`));
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(
      backend.address,
      askPolicy(service.address, { includeResponseHeaders: ['x-hop', 'x-user'] }),
    );
    await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', ['X-Hop: forged', 'Connection: close']));
    expect(backend.received[0]?.headers).toMatchObject({ 'x-user': 'alice' });
    expect(backend.received[0]?.headers).not.toHaveProperty('x-hop');
  });

  test.each(['connection', 'Transfer-Encoding', 'TE', 'upgrade', 'content-length', 'host', 'expect'])(
    'a configuration that would add %s to a request is rejected at that key',
    async (name) => {
      const changes = { requestHeaderModifier: { set: { [name]: 'x' } } };
      await expect(gateway(routesConfig([{ policies: changes }]))).rejects.toThrow(
        /requestHeaderModifier\.set\.\S+: .* is not a valid name here/,
      );
      const copied = askPolicy('127.0.0.1:1', { includeResponseHeaders: [name] });
      await expect(gateway(routesConfig([{ policies: copied }]))).rejects.toThrow(
        /includeResponseHeaders.*expected a header/s,
      );
    },
  );
});

test('two Origin headers are rejected by name', async () => {
  await using backend = await httpUpstream();
  await using gate = await proxyGateway(backend.address);
  const lines = ['Origin: https://a.example', 'Origin: https://b.example'];
  const { text, statuses, closed } = await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', lines));
  expect({ statuses, closed }).toEqual({ statuses: [400], closed: true });
  expect(text).toContain('two origin headers');
  expect(backend.received).toEqual([]);
});
