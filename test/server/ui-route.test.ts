import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { GOOD_TLS, TRUSTING } from '../kit/certificates.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from '../kit/gateway.ts';
import { freePort } from '../kit/ports.ts';
import { send } from '../kit/send.ts';
import { httpUpstream } from '../kit/upstream.ts';

const KEYS = { mode: 'optional', keys: [{ key: 'operator-key', metadata: { name: 'ci' } }] };
const SIGNED_IN = { authorization: 'Bearer operator-key' };

const SECURE = {
  'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
  'x-content-type-options': 'nosniff',
};

/** A gateway with the pages, beside a route of its own for all paths. */
async function withPages(
  ui: object = {},
  more: object = {},
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const adminPort = await freePort();
  const config = {
    config: { adminAddr: `127.0.0.1:${adminPort}`, ...more },
    gateways: { default: { port: 0, routes: [{ policies: { directResponse: { body: 'own route' } } }] } },
    ui,
  };
  return gateway(JSON.stringify(config), { ...options, admin: true, adminPort });
}

const validate = (gate: TestGateway, headers: Record<string, string> = {}) =>
  send(`${gate.url}/api/config/validate`, { method: 'POST', body: 'gateways: {}', headers });

describe('ui without a policy that authenticates', () => {
  test('a client of this machine sees the pages and what they read, beside the routes of the gateway', async () => {
    await using gate = await withPages();
    expect((await send(`${gate.url}/ui`)).status).toBe(200);
    expect((await send(`${gate.url}/config_dump`)).text).toContain('"binds"');
    expect((await send(`${gate.url}/api/overview`)).status).toBe(200);
    expect((await send(`${gate.url}/other`)).text).toBe('own route');
  });

  test('requests of the pages are in the access log, and in no figures, lists and records', async () => {
    await using folder = await temporaryFolder();
    const database = { url: `sqlite://${join(folder.path, 'records.db')}` };
    await using gate = await withPages({}, { database });
    await send(`${gate.url}/api/overview`);
    await send(`${gate.url}/ui/missing.js`);
    await send(`${gate.url}/other`);
    expect(await gate.accessLine(1)).toMatchObject({ route: 'internal/ui', 'http.path': '/api/overview' });
    const { requests } = JSON.parse((await send(`${gate.url}/api/requests`)).text);
    expect(requests).toMatchObject([{ id: 1, fields: { 'http.path': '/other' } }]);
    expect(JSON.parse((await send(`${gate.url}/api/requests/open`)).text)).toEqual({
      total: 0,
      requests: [],
    });
    expect(JSON.parse((await send(`${gate.url}/api/overview`)).text)).toMatchObject({ openRequests: 0 });
    const records = await vi.waitUntil(async () => {
      const found = JSON.parse((await send(`${gate.url}/api/records`)).text).records;
      return found.length > 0 && found;
    });
    expect(records).toMatchObject([{ path: '/other' }]);
    const usage = JSON.parse((await send(`${gate.url}/api/usage?by=key`)).text);
    expect(usage.total.requests).toBe(1);
    expect((await send(`${gate.admin}/metrics`)).text).toMatch(/route="internal\/ui"/);
  });

  test('nothing can be changed', async () => {
    await using gate = await withPages();
    const reply = await validate(gate);
    expect(reply.status).toBe(403);
    expect(reply.text).toContain('change nothing here');
  });

  test('endpoints that stop or profile the process are not on the gateway', async () => {
    await using gate = await withPages({ policies: { apiKey: KEYS } });
    for (const path of ['/quitquitquit', '/debug/pprof/heap', '/debug/pprof/profile'])
      expect((await send(gate.url + path, { method: 'POST', headers: SIGNED_IN })).text).toBe('own route');
  });

  test.each([
    ['a host name that is not of this machine', { host: 'gateway.example' }],
    ['an address of the network', { host: '10.0.0.1:80' }],
    ['a proxy in between', { 'x-forwarded-for': '127.0.0.1' }],
    ['a page of another origin', { origin: 'http://evil.example' }],
    ['a script of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }],
  ])('a request with %s is refused', async (_, headers) => {
    await using gate = await withPages();
    expect((await send(`${gate.url}/config_dump`, { headers })).status).toBe(403);
  });

  test('a client of another machine, as a trusted proxy reports it, is refused', async () => {
    await using gate = await withPages({}, { http: { trustedProxies: ['127.0.0.1/32'] } });
    const headers = { 'x-forwarded-for': '203.0.113.7' };
    expect((await send(`${gate.url}/ui`, { headers })).status).toBe(403);
  });
});

describe('ui with a policy that authenticates', () => {
  test('a client that has signed in may change things, also from elsewhere', async () => {
    await using gate = await withPages({ policies: { apiKey: KEYS } });
    const headers = { ...SIGNED_IN, host: 'gateway.example', 'x-forwarded-for': '203.0.113.7' };
    expect((await validate(gate, headers)).status).toBe(200);
    expect((await validate(gate)).status).toBe(403);
  });

  test('a strict policy asks everyone, also for the pages', async () => {
    await using gate = await withPages({ policies: { apiKey: { ...KEYS, mode: 'strict' } } });
    expect((await send(`${gate.url}/ui`)).status).toBe(401);
    expect((await send(`${gate.url}/ui`, { headers: SIGNED_IN })).status).toBe(200);
    expect((await send(`${gate.url}/other`)).text).toBe('own route');
  });

  test('a page of another origin cannot use the sign-in of a browser', async () => {
    await using gate = await withPages({ policies: { apiKey: KEYS } });
    expect((await validate(gate, { ...SIGNED_IN, origin: 'http://evil.example' })).status).toBe(403);
    expect((await validate(gate, { ...SIGNED_IN, origin: gate.url })).status).toBe(200);
    const behindTls = { ...SIGNED_IN, origin: gate.url, 'x-forwarded-proto': 'https' };
    expect((await validate(gate, behindTls)).status).toBe(403);
    const events = gate.log.filter((line) => line.includes('\taudit\tadmin.request\t'));
    expect(events).toEqual([
      expect.stringContaining('Origin: http://evil.example'),
      expect.stringContaining(`Origin: ${gate.url}`),
    ]);
    for (const name of ['outcome="refused"', 'actor="ci"', 'actor.kind="key"', 'POST /api/config/validate'])
      expect(events[0]).toContain(name);
  });

  test('a page that was loaded without TLS is none of a gateway that has TLS', async () => {
    const adminPort = await freePort();
    const config = {
      config: { adminAddr: `127.0.0.1:${adminPort}` },
      gateways: { default: { port: 0, tls: GOOD_TLS } },
      ui: { policies: { apiKey: KEYS } },
    };
    await using gate = await gateway(JSON.stringify(config), { admin: true, adminPort });
    const url = `https://localhost:${gate.port}`;
    const status = (origin: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { ...SIGNED_IN, origin };
        const sent = request(`${url}/api/config/validate`, { method: 'POST', headers, ...TRUSTING });
        sent.once('response', (response) => resolve(response.resume().statusCode));
        sent.once('error', reject);
        sent.end('gateways: {}');
      });
    expect(await status(url)).toBe(200);
    expect(await status(`http://localhost:${gate.port}`)).toBe(403);
  });

  test('the admin server does not get the credentials and cookies of the gateway', async () => {
    await using admin = await httpUpstream();
    const config = {
      config: { adminAddr: admin.address },
      gateways: { default: { port: 0 } },
      ui: { policies: { apiKey: KEYS } },
    };
    await using gate = await gateway(JSON.stringify(config));
    await send(`${gate.url}/api/overview`, { headers: { ...SIGNED_IN, cookie: 'session=s3cret' } });
    expect(admin.received).toHaveLength(1);
    expect(JSON.stringify(admin.received)).not.toMatch(/operator-key|s3cret/);
  });
});

test.each([
  [
    { config: { adminAddr: 'off' }, gateways: { default: { port: 0 } }, ui: {} },
    'the admin server, which is off',
  ],
  [
    { config: { adminAddr: '127.0.0.1:0' }, gateways: { default: { port: 0 } }, ui: {} },
    '`ui` needs an admin server with a port that is known: it is 0',
  ],
  [{ gateways: { default: { port: 0 } }, ui: { port: 15_000 } }, 'unknown field `port`'],
  [{ gateways: { main: { port: 0 } }, ui: {} }, '`ui` belongs to no gateway'],
  [{ gateways: { default: { port: 0 } }, ui: { gateways: 'x' } }, 'unknown gateway `x`'],
  [{ gateways: { default: { port: 0 } }, ui: { policies: { retry: {} } } }, 'unknown field `retry`'],
])('%j is refused', async (config, message) => {
  await expect(gateway(JSON.stringify(config))).rejects.toThrow(message);
});

describe('files of the admin pages', () => {
  const HOSTILE = [
    '/ui/..%2f..%2fetc/passwd',
    '/ui/..%2fsecret.txt',
    '/ui/%2e%2e/secret.txt',
    '/ui/../secret.txt',
    '/ui/assets/../../secret.txt',
    '/ui/assets/..%5c..%5csecret.txt',
    '/ui/..%252fsecret.txt',
    '/ui//../secret.txt',
    '/ui/app.js%00',
    '/ui/%00.js',
    '/ui/%ff.js',
    '/ui/%.js',
    '/ui/.hidden',
    '/ui/linked.txt',
    '/ui/linked/secret.txt',
    `/ui/${'a'.repeat(300)}.js`,
    `/ui/${'a/'.repeat(3_000)}a.js`,
  ];

  test('no path leads to a file outside their folder, at the admin server or on the gateway', async () => {
    await using folder = await temporaryFolder();
    const pages = join(folder.path, 'pages');
    await mkdir(join(pages, 'assets'), { recursive: true });
    await writeFile(join(folder.path, 'secret.txt'), 'SECRET');
    for (const file of ['index.html', 'app.js', 'assets/a.js']) await writeFile(join(pages, file), 'PAGE');
    await symlink(join(folder.path, 'secret.txt'), join(pages, 'linked.txt'));
    await symlink(folder.path, join(pages, 'linked'));
    await using gate = await withPages({}, {}, { webApp: pages });
    for (const origin of [gate.admin, gate.url]) {
      for (const path of ['/ui', '/ui/app.js', '/ui/assets/a.js', '/ui/some/page'])
        expect([path, (await send(origin, { target: path })).text]).toEqual([path, 'PAGE']);
      for (const target of HOSTILE) {
        const reply = await send(origin, { target });
        expect([origin, target, [400, 404].includes(reply.status)]).toEqual([origin, target, true]);
        expect(reply.text).not.toMatch(/SECRET|PAGE|root:/);
        // What the gateway refuses itself never reaches the admin server.
        if (origin === gate.admin) expect(reply.headers).toMatchObject(SECURE);
      }
      expect((await send(origin, { target: '/ui' })).headers).toMatchObject(SECURE);
    }
  });
});
