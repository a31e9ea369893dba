import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { authorizationService } from '../../../src/server/policies/envoy/authorization-service.ts';
import { toStruct } from '../../../src/server/transport/services/protobuf-struct.ts';
import { AUTHORITY, certificatePath, GOOD_TLS, TRUSTING } from '../../kit/certificates.ts';
import { gateway } from '../../kit/gateway.ts';
import { type GrpcAnswer, grpcService, type TestGrpcService } from '../../kit/grpc-service.ts';
import { sendHttps } from '../../kit/http2.ts';
import { freePort } from '../../kit/ports.ts';
import { answeringGateway, proxyGateway } from '../../kit/routes.ts';
import { send, valuesOf } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const ALLOW = { status: { code: 0 } };
const DENY = { status: { code: 7 } };

const service = (answer: GrpcAnswer = () => ALLOW, options = {}): Promise<TestGrpcService> =>
  grpcService(authorizationService, 'Check', answer, options);

const policy = (host: string, more: object = {}): object => ({
  extAuthz: { host, protocol: { grpc: {} }, ...more },
});

describe('extAuthz over gRPC', () => {
  test('extAuthz sends the request as Envoy does', async () => {
    await using authorizer = await service();
    await using gate = await answeringGateway(
      policy(authorizer.address, {
        protocol: {
          grpc: {
            context: { tenant: 'a' },
            metadata: {
              'x.y': '{"path": request.path, "list": [1, true, null]}',
              bad: 'request.headers["no"]',
              text: '"a"',
            },
          },
        },
      }),
    );
    const reply = await send(`${gate.url}/a?b=c`, {
      method: 'POST',
      body: 'not sent',
      headers: { host: 'Client.test', 'x-list': ['a', 'b'], cookie: ['c=1', 'd=2'] },
    });
    expect(reply).toMatchObject({ status: 200, text: 'reached' });
    const { attributes } = authorizer.received[0];
    expect(attributes.request.http).toMatchObject({
      method: 'POST',
      path: '/a?b=c',
      host: 'client.test',
      scheme: 'http',
      protocol: 'HTTP/1.1',
      body: '',
      size: '0',
    });
    expect(attributes.request.http.headers).toMatchObject({
      ':method': 'POST',
      ':path': '/a?b=c',
      ':authority': 'client.test',
      'x-list': 'a, b',
      cookie: 'c=1; d=2',
    });
    expect(attributes.source.address.socket_address).toMatchObject({ address: '127.0.0.1' });
    expect(attributes.destination.address.socket_address).toMatchObject({ port_value: gate.port });
    expect(attributes.context_extensions).toEqual({ tenant: 'a' });
    expect(Object.keys(attributes.metadata_context.filter_metadata)).toEqual(['x.y']);
    expect(attributes.metadata_context.filter_metadata['x.y'].fields.path).toMatchObject({
      stringValue: '/a',
    });
  });

  test('extAuthz names the SPIFFE ID in the certificate of the client', async () => {
    await using authorizer = await service();
    const tls = { ...GOOD_TLS, root: certificatePath('client-authority.crt') };
    const route = { policies: { directResponse: { body: 'a' }, ...policy(authorizer.address) } };
    await using gate = await gateway(
      JSON.stringify({ gateways: { default: { port: 0, tls, routes: [route] } } }),
    );
    const own = {
      cert: readFileSync(certificatePath('client.crt')),
      key: readFileSync(certificatePath('client.key')),
    };
    await sendHttps(gate.port, {}, { ...TRUSTING, ...own });
    expect(authorizer.received[0].attributes.source.principal).toBe('spiffe://example.org/ns/a/sa/ann');
  });

  test('extAuthz uses gRPC unless a protocol is configured', async () => {
    await using authorizer = await service(() => DENY);
    await using gate = await answeringGateway({ extAuthz: { host: authorizer.address } });
    expect(await send(gate.url)).toMatchObject({ status: 403 });
    expect(authorizer.received).toHaveLength(1);
  });

  test('extAuthz sends only the listed headers', async () => {
    await using authorizer = await service();
    await using gate = await answeringGateway(
      policy(authorizer.address, { includeRequestHeaders: ['X-A', ':path'] }),
    );
    await send(gate.url, { headers: { 'x-a': '1', authorization: 'secret' } });
    expect(authorizer.received[0].attributes.request.http.headers).toEqual({ 'x-a': '1', ':path': '/' });
  });

  test.each([
    [{}, 'body', 'x'.repeat(8192), 200, 8192],
    [{}, 'body', 'x'.repeat(8193), 413, undefined],
    [{ maxRequestBytes: 4, allowPartialMessage: true }, 'body', 'abcdef', 200, 4],
    [{ packAsBytes: true }, 'raw_body', 'abc', 200, 3],
  ])('extAuthz with includeRequestBody %j sends %s', async (includeRequestBody, key, body, status, size) => {
    await using backend = await httpUpstream();
    await using authorizer = await service();
    await using gate = await proxyGateway(
      backend.address,
      policy(authorizer.address, { includeRequestBody }),
    );
    expect(await send(gate.url, { method: 'POST', body })).toMatchObject({ status });
    expect(authorizer.received[0]?.attributes.request.http[key].length).toBe(size);
    if (status === 200) expect(backend.received[0]?.body).toBe(body);
  });

  test('extAuthz changes headers and query of an allowed request, and headers of its response', async () => {
    await using backend = await httpUpstream((_, response) =>
      response.writeHead(200, { 'x-existing': 'backend' }).end(),
    );
    const header = (key: string, value: string, more: object = {}): object => ({
      header: { key, value },
      ...more,
    });
    await using authorizer = await service(() => ({
      ...ALLOW,
      ok_response: {
        headers: [
          header('x-user', 'ann'),
          header('x-list', 'b', { append: { value: true } }),
          header('x-present', 'new', { append_action: 1 }),
          header('x-absent', 'new', { append_action: 3 }),
          header('content-length', '999'),
          header('host', 'evil'),
          header('x-bad', 'a\r\nx-evil: 1'),
        ],
        headers_to_remove: ['x-gone', 'host', ':path', 'content-length'],
        response_headers_to_add: [header('x-existing', 'service')],
        query_parameters_to_set: [{ key: 'user', value: 'a&b' }],
        query_parameters_to_remove: ['token'],
      },
      dynamic_metadata: toStruct({ user: { name: 'ann', roles: ['a'] } }),
    }));
    await using gate = await proxyGateway(
      backend.address,
      { ...policy(authorizer.address), authorization: { rules: ['extauthz.user.roles[0] == "a"'] } },
      { frontendPolicies: { accessLog: { add: { name: 'extauthz.user.name' } } } },
    );
    const reply = await send(`${gate.url}/p?token=secret&keep=1&user=forged`, {
      method: 'POST',
      body: 'four',
      headers: { 'x-user': 'forged', 'x-list': 'a', 'x-present': 'old', 'x-gone': '1', host: 'client.test' },
    });
    expect(reply.status).toBe(200);
    expect(valuesOf(reply, 'x-existing')).toEqual(['service']);
    const [request] = backend.received;
    expect(request?.headers).toMatchObject({
      'x-user': 'ann',
      'x-list': 'a, b',
      'x-present': 'old',
      'content-length': '4',
      host: 'client.test',
    });
    for (const name of ['x-absent', 'x-gone', 'x-bad', 'x-evil'])
      expect(request?.headers).not.toHaveProperty(name);
    expect(request?.target).toBe('/p?keep=1&user=a%26b');
    expect(await gate.accessLine(1)).toMatchObject({ name: 'ann' });
  });

  test('extAuthz answers with the response of the service to a denied request, or with a fixed one', async () => {
    const denied_response = {
      status: { code: 401 },
      headers: [
        { header: { key: 'www-authenticate', value: 'Basic' } },
        { header: { key: 'transfer-encoding', value: 'chunked' } },
      ],
      body: 'who are you?',
    };
    await using authorizer = await service(() => ({ ...DENY, denied_response }));
    await using gate = await answeringGateway(policy(authorizer.address));
    const reply = await send(gate.url);
    expect(reply).toMatchObject({ status: 401, text: 'who are you?' });
    expect(reply.headers).toMatchObject({ 'www-authenticate': 'Basic', 'content-length': '12' });
    expect(await gate.accessLine(1)).toMatchObject({ reason: 'ExtAuth' });
    await using fixed = await answeringGateway(policy(authorizer.address, { denyResponse: 'fixed' }));
    expect(await send(fixed.url)).toMatchObject({ status: 403 });
    expect((await send(fixed.url)).text).not.toContain('who');
  });

  test('extAuthz uses 403 for a denial whose status is not one of HTTP', async () => {
    await using authorizer = await service(() => ({ ...DENY, denied_response: { status: { code: 99 } } }));
    await using gate = await answeringGateway(policy(authorizer.address));
    expect(await send(gate.url)).toMatchObject({ status: 403 });
  });

  test('extAuthz calls the service with TLS and a credential', async () => {
    await using authorizer = await service(() => ALLOW, { certificate: 'good' });
    const policies = { backendTLS: { root: AUTHORITY, hostname: 'localhost' }, backendAuth: { key: 'k1' } };
    await using gate = await answeringGateway(policy(authorizer.address, { policies }));
    expect(await send(gate.url)).toMatchObject({ status: 200 });
    expect(authorizer.credentials).toEqual(['Bearer k1']);
  });

  const faults: Record<string, () => Promise<{ address: string } & AsyncDisposable>> = {
    'refuses connections': async () => ({
      address: `127.0.0.1:${await freePort()}`,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }),
    'answers with a gRPC error': () => service(() => new Error('broken')),
    hangs: () => service(() => undefined),
    'speaks HTTP/1.1': () => httpUpstream(),
  };

  test.each(Object.keys(faults))(
    'extAuthz denies the request when the service %s, unless failureMode allows it',
    async (fault) => {
      await using broken = await (faults[fault] as (typeof faults)[string])();
      const policies = { http: { requestTimeout: '300ms' } };
      await using deny = await answeringGateway(policy(broken.address, { policies }));
      expect(await send(deny.url)).toMatchObject({ status: 403 });
      await using status = await answeringGateway(
        policy(broken.address, { policies, failureMode: { denyWithStatus: 503 } }),
      );
      expect(await send(status.url)).toMatchObject({ status: 503 });
      await using allow = await answeringGateway(policy(broken.address, { policies, failureMode: 'allow' }));
      expect(await send(allow.url)).toMatchObject({ status: 200 });
    },
  );

  test('extAuthz cancels the call when the client disconnects', async () => {
    await using authorizer = await service(() => undefined);
    await using gate = await answeringGateway(
      policy(authorizer.address, { policies: { http: { requestTimeout: '1h' } } }),
    );
    const client = new AbortController();
    const answer = fetch(gate.url, { signal: client.signal }).catch(() => undefined);
    await until(() => authorizer.received.length === 1);
    client.abort();
    await answer;
    await until(() => authorizer.cancelled === 1);
  });

  test.each([
    [{ protocol: { grpc: {}, http: {} } }],
    [{ protocol: {} }],
    [{ metadata: { a: 'response.code' } }],
    [{ cache: { key: [], ttl: '1s' } }],
    [{ cache: { key: ['nosuch'], ttl: '1s' } }],
    [{ includeRequestBody: { maxRequestBytes: 0 } }],
  ])('extAuthz rejects the configuration %j', async (more) => {
    await expect(answeringGateway(policy('127.0.0.1:9', more))).rejects.toThrow();
  });
});

describe('answers of an extAuthz service over gRPC that nobody expects', () => {
  const nested = (depth: number): object =>
    depth === 0 ? { deep: 1 } : { deep: depth % 2 === 0 ? nested(depth - 1) : [nested(depth - 1)] };
  const option = (key: string, more: object = {}): object => ({ header: { key, value: 'v' }, ...more });
  const many = (count: number): object[] => Array.from({ length: count }, (_, at) => option(`x-${at}`));

  test.each<[string, object, number]>([
    ['metadata nested 30 times', { ...ALLOW, dynamic_metadata: toStruct(nested(20)) }, 200],
    ['metadata nested 2,000 times', { ...ALLOW, dynamic_metadata: toStruct(nested(1_000)) }, 403],
    ['100 headers', { ...ALLOW, ok_response: { headers: many(90) } }, 200],
    ['5,000 headers', { ...ALLOW, ok_response: { headers: many(3_000) } }, 403],
    ['5,000 removed headers', { ...ALLOW, ok_response: { headers_to_remove: Array(5_000).fill('a') } }, 403],
    [
      '3,000 parameters',
      { ...ALLOW, ok_response: { query_parameters_to_set: Array(3_000).fill({ key: 'a', value: 'b' }) } },
      403,
    ],
    ['headers without names', { ...ALLOW, ok_response: { headers: [{}, { header: {} }, option('')] } }, 200],
    [
      'an unknown action',
      { ...ALLOW, ok_response: { headers: [option('x-a', { append_action: 99 })] } },
      200,
    ],
    [
      'a denial with what it would add if it were allowed',
      { ...DENY, ok_response: { headers: many(1) } },
      403,
    ],
    ['a negative code', { status: { code: -1 } }, 403],
    ['the largest code', { status: { code: 2 ** 31 - 1 } }, 403],
    ['status 0', { ...DENY, denied_response: { status: { code: 0 } } }, 403],
    ['status 101', { ...DENY, denied_response: { status: { code: 101 } } }, 403],
    ['status 999', { ...DENY, denied_response: { status: { code: 999 } } }, 403],
    ['status -1', { ...DENY, denied_response: { status: { code: -1 } } }, 403],
    ['status 204 with a body', { ...DENY, denied_response: { status: { code: 204 }, body: 'x' } }, 204],
    ['a denial of an allowed request', { ...ALLOW, denied_response: { body: 'x' } }, 200],
  ])('extAuthz decides about %s, and about the next request', async (_, answer, status) => {
    let isFirst = true;
    await using authorizer = await service(() => {
      if (!isFirst) return ALLOW;
      isFirst = false;
      return answer;
    });
    await using gate = await answeringGateway(policy(authorizer.address));
    expect((await send(gate.url)).status).toBe(status);
    expect((await send(gate.url)).status).toBe(200);
    expect(gate.log.filter((line) => line.includes('internal error'))).toEqual([]);
  });

  test.each(['1e308', '"99999999999999s"', '"9999-12-31T00:00:00Z"', 'extauthz.ttl'])(
    'extAuthz asks again after a day if the service or an expression says %s',
    async (ttl) => {
      await using authorizer = await service(() => ({
        ...ALLOW,
        dynamic_metadata: toStruct({ ttl: 1e300 }),
      }));
      await using gate = await answeringGateway(policy(authorizer.address, { cache: { key: ['"a"'], ttl } }));
      await send(gate.url);
      await send(gate.url);
      expect(authorizer.received).toHaveLength(1);
      const now = Date.now();
      vi.spyOn(Date, 'now').mockImplementation(() => now + 25 * 3_600_000);
      onTestFinished(() => void vi.restoreAllMocks());
      expect((await send(gate.url)).status).toBe(200);
      expect(authorizer.received).toHaveLength(2);
    },
  );
});

describe('extAuthz.cache', () => {
  const cache = { key: ['request.headers["authorization"]', 'request.path'], ttl: '1h' };

  test('extAuthz uses an outcome again for requests with the same key', async () => {
    await using backend = await httpUpstream();
    await using authorizer = await service(({ attributes }) => ({
      ...ALLOW,
      ok_response: {
        headers: [{ header: { key: 'x-user', value: attributes.request.http.headers.authorization } }],
      },
    }));
    await using gate = await proxyGateway(backend.address, policy(authorizer.address, { cache }));
    for (const authorization of ['ann', 'bob', 'ann', 'bob'])
      await send(gate.url, { headers: { authorization } });
    await send(`${gate.url}/other`, { headers: { authorization: 'ann' } });
    expect(authorizer.received).toHaveLength(3);
    expect(backend.received.map(({ headers }) => headers['x-user'])).toEqual([
      'ann',
      'bob',
      'ann',
      'bob',
      'ann',
    ]);
  });

  test('extAuthz caches denials, but not failures of the service', async () => {
    let answer: object | Error = DENY;
    await using authorizer = await service(() => answer);
    await using gate = await answeringGateway(policy(authorizer.address, { cache }));
    const headers = { authorization: 'ann' };
    for (let i = 0; i < 2; i += 1) expect(await send(gate.url, { headers })).toMatchObject({ status: 403 });
    expect(authorizer.received).toHaveLength(1);
    answer = new Error('broken');
    for (let i = 0; i < 2; i += 1)
      expect(await send(gate.url, { headers: { authorization: 'bob' } })).toMatchObject({ status: 403 });
    answer = ALLOW;
    expect(await send(gate.url, { headers: { authorization: 'bob' } })).toMatchObject({ status: 200 });
  });

  test('extAuthz does not cache requests for which the key has no value', async () => {
    await using authorizer = await service();
    await using gate = await answeringGateway(policy(authorizer.address, { cache }));
    for (let i = 0; i < 3; i += 1) await send(gate.url);
    expect(authorizer.received).toHaveLength(3);
  });

  test.each([
    ['"0s"', 2],
    ['request.headers["no"]', 2],
    ['duration("-1s")', 2],
    ['timestamp("2001-01-01T00:00:00Z")', 2],
    ['duration("1h")', 1],
    ['"5m"', 1],
    ['timestamp("2999-01-01T00:00:00Z")', 1],
    ['duration(extauthz.ttl)', 1],
    // Not a time, although Date.parse accepts it.
    ['"45"', 2],
  ])('extAuthz with the ttl %s asks the service %i times about two requests', async (ttl, calls) => {
    await using authorizer = await service(() => ({ ...ALLOW, dynamic_metadata: toStruct({ ttl: '60s' }) }));
    await using gate = await answeringGateway(policy(authorizer.address, { cache: { key: ['"a"'], ttl } }));
    for (let i = 0; i < 2; i += 1) expect(await send(gate.url)).toMatchObject({ status: 200 });
    expect(authorizer.received).toHaveLength(calls);
  });

  test('extAuthz removes the least recently used outcome beyond maxEntries', async () => {
    await using authorizer = await service();
    await using gate = await answeringGateway(
      policy(authorizer.address, { cache: { ...cache, maxEntries: 2 } }),
    );
    for (const authorization of ['a', 'b', 'a', 'c', 'a', 'b'])
      await send(gate.url, { headers: { authorization } });
    expect(authorizer.received).toHaveLength(4);
  });

  test('extAuthz caches outcomes over HTTP, with the headers and values of the service', async () => {
    await using backend = await httpUpstream();
    await using authorizer = await httpUpstream((_, response) =>
      response.writeHead(200, { 'x-user': 'ann' }).end('v'),
    );
    await using gate = await proxyGateway(backend.address, {
      extAuthz: {
        host: authorizer.address,
        protocol: { http: { includeResponseHeaders: ['x-user'], metadata: { v: 'string(response.body)' } } },
        cache: { key: ['"a"'], ttl: '1h' },
      },
      requestHeaderModifier: { set: { 'x-a': '1' } },
      transformations: { request: { set: { 'x-v': 'extauthz.v' } } },
    });
    for (let i = 0; i < 2; i += 1) await send(gate.url, { headers: { 'x-user': 'forged' } });
    expect(authorizer.received).toHaveLength(1);
    for (const { headers } of backend.received)
      expect(headers).toMatchObject({ 'x-user': 'ann', 'x-v': 'v' });
  });
});

describe('extAuthz over HTTP', () => {
  test('extAuthz sends the body of the request, or a computed one', async () => {
    await using authorizer = await httpUpstream();
    await using whole = await answeringGateway({
      extAuthz: { host: authorizer.address, protocol: { http: {} }, includeRequestBody: {} },
    });
    await send(whole.url, { method: 'POST', body: 'sent' });
    expect(authorizer.received[0]).toMatchObject({
      body: 'sent',
      method: 'POST',
      headers: { 'x-envoy-auth-partial-body': 'false' },
    });
    await using computed = await answeringGateway({
      extAuthz: { host: authorizer.address, protocol: { http: { body: '{"path": request.path}' } } },
    });
    await send(`${computed.url}/p`, { method: 'POST', body: 'sent' });
    expect(authorizer.received[1]?.body).toBe('{"path":"/p"}');
    await using failing = await answeringGateway({
      extAuthz: { host: authorizer.address, protocol: { http: { body: 'request.headers["no"]' } } },
    });
    expect(await send(failing.url)).toMatchObject({ status: 403 });
    expect(authorizer.received).toHaveLength(2);
  });

  test('extAuthz calls an HTTP service with TLS and a credential', async () => {
    await using authorizer = await httpUpstream(undefined, { certificate: 'good' });
    await using gate = await answeringGateway({
      extAuthz: {
        host: authorizer.address,
        protocol: { http: {} },
        policies: { backendTLS: { root: AUTHORITY, hostname: 'localhost' }, backendAuth: { key: 'k1' } },
      },
    });
    expect(await send(gate.url)).toMatchObject({ status: 200 });
    expect(authorizer.received[0]?.headers.authorization).toBe('Bearer k1');
  });
});
