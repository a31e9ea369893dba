import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askPolicy } from '../../kit/authz.ts';
import { chaos } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { openSession } from '../../kit/mcp.ts';
import { answeringGateway, proxyGateway, routesConfig } from '../../kit/routes.ts';
import { type HttpReply, type SendOptions, send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream, refusingPort } from '../../kit/upstream.ts';

const ORIGIN = 'https://app.example';
const preflight = (origin: string, headers: Record<string, string> = {}): SendOptions => ({
  method: 'OPTIONS',
  headers: { origin, 'access-control-request-method': 'POST', ...headers },
});

/** The CORS headers of a reply, without their common prefix. */
function granted({ headers }: HttpReply): Record<string, unknown> {
  const prefix = 'access-control-';
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
    ),
  );
}

describe('cors preflights', () => {
  let backend: HttpUpstream;
  let gate: TestGateway;
  beforeAll(async () => {
    backend = await httpUpstream();
    gate = await proxyGateway(backend.address, {
      cors: {
        allowOrigins: [ORIGIN],
        allowMethods: ['GET', 'POST', 'DELETE'],
        allowHeaders: ['content-type', 'Mcp-Session-Id'],
        exposeHeaders: ['Mcp-Session-Id', 'x-request-id'],
        maxAge: '1h30m',
      },
      apiKey: { mode: 'strict', keys: [{ key: 'k' }] },
    });
  });
  afterAll(async () => {
    await Promise.all([gate.close(), backend.close()]);
  });

  test('cors answers preflights before authentication and without the backend', async () => {
    const reply = await send(gate.url, preflight(ORIGIN, { 'access-control-request-headers': 'x-anything' }));
    expect(reply).toMatchObject({ status: 200, text: '' });
    expect(granted(reply)).toEqual({
      'allow-origin': ORIGIN,
      'allow-methods': 'GET, POST, DELETE',
      'allow-headers': 'content-type, Mcp-Session-Id',
      'expose-headers': 'Mcp-Session-Id, x-request-id',
      'max-age': '5400',
    });
    expect(reply.headers.vary).toBe('Origin');
    expect(backend.received).toEqual([]);
  });

  test('cors answers a preflight of a disallowed origin with 200 and no CORS headers', async () => {
    const reply = await send(gate.url, preflight('https://evil.example'));
    expect(reply).toMatchObject({ status: 200, text: '' });
    expect(granted(reply)).toEqual({});
  });

  test('cors treats OPTIONS as a preflight only with an allowed Origin or Access-Control-Request-Method', async () => {
    expect((await send(gate.url, { method: 'OPTIONS' })).status).toBe(401);
    expect(
      (await send(gate.url, { method: 'OPTIONS', headers: { origin: 'https://evil.example' } })).status,
    ).toBe(401);
    // The origin is allowed: a page can send OPTIONS only as a preflight.
    expect((await send(gate.url, { method: 'OPTIONS', headers: { origin: ORIGIN } })).status).toBe(200);
    expect((await send(gate.url, { ...preflight(ORIGIN), method: 'POST' })).status).toBe(401);
  });
});

describe('cors.allowOrigins', () => {
  const allowed = async (allowOrigins: string[], origin: string): Promise<unknown> => {
    await using gate = await answeringGateway({ cors: { allowOrigins } });
    const simple = granted(await send(gate.url, { headers: { origin } }))['allow-origin'];
    expect(granted(await send(gate.url, preflight(origin)))['allow-origin']).toBe(simple);
    return simple;
  };

  test.each([
    [['https://a.example'], 'https://a.example'],
    [['https://A.example'], 'https://a.example'],
    [['https://a.example'], 'https://A.example'],
    [['https://a.example', 'http://b.example:8080'], 'http://b.example:8080'],
    [['*'], 'https://any.example'],
    [['*'], 'null'],
    [['null'], 'null'],
    [['https://*.example.com'], 'https://a.example.com'],
    [['https://*.example.com'], 'https://a.b.example.com'],
    [['http://localhost:*'], 'http://localhost:5173'],
  ])('cors.allowOrigins %j allows %s and echoes it', async (patterns, origin) => {
    expect(await allowed(patterns, origin)).toBe(origin);
  });

  test.each([
    [[], 'https://a.example'],
    [['https://a.example'], 'http://a.example'],
    [['https://a.example'], 'https://a.example:8443'],
    [['https://a.example'], 'https://a.example.evil.com'],
    [['https://a.example'], 'null'],
    [['https://*.example.com'], 'https://example.com'],
    [['https://*.example.com'], 'https://.example.com'],
    [['https://*.example.com'], 'https://evilexample.com'],
    [['https://*.example.com'], 'http://a.example.com'],
    [['https://*.example.com'], 'https://evil.com/.example.com'],
    [['https://*.example.com'], 'https://evil.com:80@a.example.com'],
    [['https://*.example.com'], 'https://a.example.com.evil.com'],
    [['http://localhost:*'], 'http://localhost'],
  ])('cors.allowOrigins %j does not allow %s', async (patterns, origin) => {
    expect(await allowed(patterns, origin)).toBeUndefined();
  });

  test('cors.allowOrigins rejects a pattern with two wildcards at load time', async () => {
    await expect(answeringGateway({ cors: { allowOrigins: ['https://*.*.example.com'] } })).rejects.toThrow(
      /cors\.allowOrigins/,
    );
  });
});

describe('cors wildcards', () => {
  const cors = {
    allowOrigins: ['*'],
    allowMethods: ['*'],
    allowHeaders: ['*'],
    exposeHeaders: ['Mcp-Session-Id'],
  };
  const asked = {
    'access-control-request-method': 'DELETE',
    'access-control-request-headers': 'x-a,content-type',
  };

  test('cors wildcards for methods and headers allow what the preflight requests', async () => {
    await using gate = await answeringGateway({ cors });
    const reply = granted(await send(gate.url, preflight(ORIGIN, asked)));
    expect(reply).toMatchObject({ 'allow-methods': 'DELETE', 'allow-headers': 'x-a,content-type' });
    expect(granted(await send(gate.url, preflight(ORIGIN)))).toMatchObject({ 'allow-headers': '*' });
  });

  test('cors echoes the origin instead of a wildcard when credentials are allowed', async () => {
    await using gate = await answeringGateway({ cors: { ...cors, allowCredentials: true } });
    // Fetch standard: with credentials, `*` is a literal header name.
    const reply = granted(await send(gate.url, preflight(ORIGIN)));
    expect(reply).toMatchObject({ 'allow-origin': ORIGIN, 'allow-credentials': 'true' });
    expect(JSON.stringify(reply)).not.toContain('*');
    expect(granted(await send(gate.url, { headers: { origin: ORIGIN } }))).toMatchObject({
      'allow-origin': ORIGIN,
      'allow-credentials': 'true',
    });
  });
});

describe('cors headers of every response', () => {
  const cors = { allowOrigins: [ORIGIN], exposeHeaders: ['Mcp-Session-Id', 'retry-after'] };
  const EXPECTED = { 'allow-origin': ORIGIN, 'expose-headers': 'Mcp-Session-Id, retry-after' };

  test.each<[number, object]>([
    [200, {}],
    [401, { apiKey: { mode: 'strict', keys: [{ key: 'k' }] } }],
    [403, { authorization: { rules: ['false'] } }],
    [404, { directResponse: { status: 404 } }],
    [500, { directResponse: { bodyExpression: '1 / 0' } }],
  ])('cors adds its headers to a %i of the gateway', async (status, policies) => {
    await using gate = await answeringGateway({ cors, ...policies });
    const reply = await send(gate.url, { headers: { origin: ORIGIN } });
    expect({ status: reply.status, ...granted(reply) }).toEqual({ status, ...EXPECTED });
    expect(reply.headers.vary).toBe('Origin');
  });

  test('cors adds its headers to a 429 and to a 403 of extAuthz', async () => {
    await using service = await httpUpstream((_, response) => response.writeHead(403).end());
    await using denied = await answeringGateway({ cors, ...askPolicy(service.address) });
    const refusal = await send(denied.url, { headers: { origin: ORIGIN } });
    expect({ status: refusal.status, ...granted(refusal) }).toEqual({ status: 403, ...EXPECTED });
    await using limited = await answeringGateway({
      cors,
      localRateLimit: [{ maxTokens: 1, fillInterval: '1h' }],
    });
    await send(limited.url);
    const reply = await send(limited.url, { headers: { origin: ORIGIN } });
    expect({ status: reply.status, ...granted(reply) }).toEqual({ status: 429, ...EXPECTED });
  });

  test('cors adds its headers to a 503 for an unreachable backend', async () => {
    await using gate = await proxyGateway(`127.0.0.1:${await refusingPort()}`, { cors });
    const reply = await send(gate.url, { headers: { origin: ORIGIN } });
    expect({ status: reply.status, ...granted(reply) }).toEqual({ status: 503, ...EXPECTED });
  });

  test('cors replaces the CORS headers of a backend response', async () => {
    await using backend = await httpUpstream((_, response) =>
      response
        .writeHead(404, {
          'Access-Control-Allow-Origin': '*',
          'access-control-expose-headers': 'x-internal',
          vary: 'accept-encoding',
        })
        .end('no such page'),
    );
    await using gate = await proxyGateway(backend.address, { cors });
    const reply = await send(gate.url, { headers: { origin: ORIGIN } });
    expect({ status: reply.status, text: reply.text, ...granted(reply) }).toEqual({
      status: 404,
      text: 'no such page',
      ...EXPECTED,
    });
    expect(reply.headers.vary).toBe('accept-encoding, Origin');
  });

  test('cors exposes the MCP session id', async () => {
    const policies = { cors: { ...cors, allowOrigins: ['http://localhost:8080'] } };
    const backends = [{ mcp: { targets: [chaos('a')] } }];
    await using gate = await gateway(routesConfig([{ policies, backends }]));
    const session = await openSession(`${gate.url}/mcp`, { origin: 'http://localhost:8080' });
    expect(session.initialize.headers.get('access-control-expose-headers')).toContain('Mcp-Session-Id');
    expect(session.initialize.headers.get('access-control-allow-origin')).toBe('http://localhost:8080');
    await session.end();
  });
});

describe('cors for other origins', () => {
  test('cors lets a disallowed origin through without CORS headers', async () => {
    await using gate = await answeringGateway({ cors: { allowOrigins: [ORIGIN] } });
    const reply = await send(gate.url, { headers: { origin: 'https://evil.example' } });
    expect(reply).toMatchObject({ status: 200, text: 'reached' });
    expect(granted(reply)).toEqual({});
  });

  test("cors removes the backend's wildcard origin for a disallowed origin", async () => {
    await using backend = await httpUpstream((_, response) =>
      response.writeHead(200, { 'access-control-allow-origin': '*' }).end(),
    );
    await using gate = await proxyGateway(backend.address, { cors: { allowOrigins: [ORIGIN] } });
    expect(granted(await send(gate.url, { headers: { origin: 'https://evil.example' } }))).toEqual({});
  });

  test('cors adds Vary: Origin for disallowed and missing origins too', async () => {
    await using gate = await answeringGateway({ cors: { allowOrigins: [ORIGIN] } });
    expect((await send(gate.url)).headers.vary).toBe('Origin');
    expect((await send(gate.url, { headers: { origin: 'https://evil.example' } })).headers.vary).toBe(
      'Origin',
    );
    expect((await send(gate.url, preflight('https://evil.example'))).headers.vary).toBe('Origin');
  });

  test('cors keeps a Vary: * of the backend', async () => {
    await using backend = await httpUpstream((_, response) => response.writeHead(200, { vary: '*' }).end());
    await using gate = await proxyGateway(backend.address, { cors: { allowOrigins: [ORIGIN] } });
    expect((await send(gate.url, { headers: { origin: ORIGIN } })).headers.vary).toMatch(/^\*/);
  });
});
