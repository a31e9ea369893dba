import { expect, test } from 'vitest';
import { authorizationService } from '../../../src/server/policies/envoy/authorization-service.ts';
import { GOOD_TLS } from '../../kit/certificates.ts';
import { gateway } from '../../kit/gateway.ts';
import { grpcService } from '../../kit/grpc-service.ts';
import { http2Client } from '../../kit/http2.ts';
import { Browser, client, SECRET, scripted } from '../../kit/oidc-site.ts';
import { freePort } from '../../kit/ports.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { answeringGateway, proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

// Browsers send the session cookie of `oidc` to every route of a host. A backend that receives it can use it as its user:
// lua-resty-openidc #138, traefik-oidc-auth #49 (also its chunks), Envoy #40228. Removing it must not change other cookies,
// such as those whose value is JSON: NetBird #6846.

test('no backend, mirror, authorization service, expression or log of another route gets the session cookie of oidc', async () => {
  await using provider = await scripted();
  await using upstream = await httpUpstream();
  await using other = await httpUpstream((_, response) => response.writeHead(other.connections && 503).end());
  await using copy = await httpUpstream();
  await using authorizer = await httpUpstream();
  await using grpc = await grpcService(authorizationService, 'Check', () => ({ status: { code: 0 } }));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const oidc = { ...client(provider.issuer), redirectURI: `${url}/oauth/callback` };
  const path = (pathPrefix: string): object => ({ matches: [{ path: { pathPrefix } }] });
  const cookie = 'default(request.headers.cookie, "none")';
  const routes = [
    { name: 'pages', ...path('/app'), policies: { oidc }, backends: [{ host: upstream.address }] },
    {
      name: 'other',
      ...path('/other'),
      policies: {
        extAuthz: { host: authorizer.address, protocol: { http: {} }, includeRequestHeaders: ['cookie'] },
        transformations: { request: { set: { 'x-copied': cookie } } },
        requestMirror: { backend: { host: copy.address }, percentage: 1 },
        retry: { attempts: 1, codes: [503], backoff: '1ms' },
      },
      backends: [{ host: other.address }],
    },
    {
      name: 'grpc',
      ...path('/grpc'),
      policies: { extAuthz: { host: grpc.address, protocol: { grpc: {} } } },
      backends: [{ host: upstream.address }],
    },
  ];
  const more = { frontendPolicies: { accessLog: { add: { cookie, all: 'string(request.headers)' } } } };
  const yaml = JSON.stringify({ gateways: { default: { port, routes } }, ...more });
  await using gate = await gateway(yaml, { env: SECRET, level: 'trace' });
  const browser = new Browser();
  await browser.follow(`${url}/app`);
  browser.cookies.set('mine', '1');
  const sealed = [...browser.cookies.values()][0] ?? '';
  expect(sealed.length).toBeGreaterThan(100);
  for (const at of ['/app', '/other', '/grpc']) await browser.open(url + at);
  await until(() => copy.received.length > 0);
  const seen = {
    upstream: upstream.received,
    other: other.received,
    copy: copy.received,
    authorizer: authorizer.received,
    grpc: grpc.received,
    accessLog: gate.accessLog,
    log: gate.log,
  };
  expect(other.received.map(({ headers }) => headers['x-copied'])).toEqual(['mine=1', 'mine=1']);
  for (const [who, what] of Object.entries(seen)) {
    expect([who, what.length > 0]).toEqual([who, true]);
    const text = JSON.stringify(what);
    expect([who, text.includes(sealed.slice(0, 60)), text.includes('agctl_oidc')]).toEqual([
      who,
      false,
      false,
    ]);
  }
});

test.each([
  ['alone', 'agctl_oidc_1_s=1:x', undefined],
  ['in the middle', 'a=1; agctl_oidc_1_s=1:x; b="2"', 'a=1; b="2"'],
  ['at the end', 'a=1;b=2;  agctl_oidc_1_l=1:x', 'a=1;b=2'],
  ['at the start', 'agctl_oidc_1_s.1=x;b = 2', 'b = 2'],
  ['with a prefix of browsers', '__Host-agctl_oidc_1_s=1:x; __Secure-agctl_x=y; __Host-a=b', '__Host-a=b'],
  ['in another case', 'AGCTL_oidc_1_s=x; __host-agctl_oidc=y; A=1', 'A=1'],
  ['next to JSON', 'i={"a":"1","b":2}; agctl_oidc_1_s=x; _i.sig="a b"', 'i={"a":"1","b":2}; _i.sig="a b"'],
  ['without a value', 'agctl_x; a', 'a'],
  ['of none', 'a=agctl_oidc;b=2;;  c', 'a=agctl_oidc;b=2;;  c'],
])('the gateway removes its own cookies %s, and leaves every other byte', async (_, sent, expected) => {
  await using upstream = await httpUpstream();
  await using gate = await proxyGateway(upstream.address);
  const lines = [`Cookie: ${sent}`, 'X: 1', 'Connection: close'];
  await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', lines));
  expect(upstream.received[0]?.headers.cookie).toBe(expected);
  expect(upstream.received[0]?.headers['x']).toBe('1');
});

test('the gateway removes its own cookies from each of several fields', async () => {
  await using upstream = await httpUpstream();
  await using gate = await proxyGateway(upstream.address);
  const lines = [
    'cookie: agctl_a=1',
    'COOKIE: a=1; agctl_b=2',
    'cookie: agctl_c=3; b=2',
    'Connection: close',
  ];
  await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', lines));
  const { rawHeaders = [] } = upstream.received[0] ?? {};
  expect(rawHeaders.filter((_, at) => rawHeaders[at - 1]?.toLowerCase() === 'cookie')).toEqual([
    'a=1',
    'b=2',
  ]);
});

test('the gateway removes its own cookies from the crumbs of a request over HTTP/2', async () => {
  await using upstream = await httpUpstream();
  const route = { backends: [{ host: upstream.address }] };
  await using gate = await gateway(
    JSON.stringify({ gateways: { default: { port: 0, tls: GOOD_TLS, routes: [route] } } }),
  );
  await using h2 = await http2Client(gate.port);
  await h2.send({ ':path': '/', cookie: ['a=1', '__Host-agctl_oidc_1_s=1:x', 'b=2'] });
  expect(upstream.received[0]?.headers.cookie).toBe('a=1; b=2');
});

test('a backend cannot set cookies of the gateway, but all others', async () => {
  const cookies = [
    'a=1',
    ' agctl_oidc_1_s=1:x; Path=/',
    'b=agctl_',
    '__Host-agctl_oidc_1_s=1:x; Secure; Path=/',
  ];
  await using upstream = await httpUpstream((_, response) =>
    response.setHeader('set-cookie', cookies).end('ok'),
  );
  await using gate = await proxyGateway(upstream.address);
  expect((await send(gate.url)).headers['set-cookie']).toEqual(['a=1', 'b=agctl_']);
});

test('the access log of a rejected request has none of the gateway’s own cookies', async () => {
  const log = {
    frontendPolicies: { accessLog: { add: { cookie: 'default(request.headers.cookie, "none")' } } },
  };
  await using gate = await answeringGateway({}, log);
  const reply = await sendRaw(
    gate.port,
    rawRequest('GET /%00 HTTP/1.1', ['Cookie: agctl_oidc_1_s=1:secret', 'Connection: close']),
  );
  expect(reply.statuses).toEqual([400]);
  expect(await gate.accessLine(1)).toMatchObject({ cookie: 'none' });
});

test('a credential cannot be read from a cookie that only the gateway itself may set', async () => {
  const apiKey = { location: { cookie: { name: 'agctl_key' } }, keys: [{ key: 'k' }] };
  await expect(answeringGateway({ apiKey })).rejects.toThrow(/does not begin with `agctl_`/);
  await using gate = await answeringGateway({
    apiKey: { location: { cookie: { name: 'key' } }, keys: [{ key: 'k' }] },
  });
  expect((await send(gate.url, { headers: { cookie: 'agctl_x=1; key=k' } })).status).toBe(200);
});
