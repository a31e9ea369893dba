import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Method } from '../../src/admin/endpoint.ts';
import { methodsOf } from '../../src/admin/endpoint.ts';
import { endpoints } from '../../src/admin/endpoints/index.ts';
import { ROLES } from '../../src/server/admin-access/roles.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { freePort } from '../kit/ports.ts';
import { problemOf } from '../kit/problem.ts';
import { type HttpReply, send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { httpUpstream } from '../kit/upstream.ts';

/** Every method of every endpoint, with the access that it declares beside itself. */
const CALLS = endpoints.flatMap((endpoint) =>
  methodsOf(endpoint).map((method) => ({
    method,
    path: endpoint.path.replace(':id', '1'),
    access: endpoint.methods[method],
  })),
);

/** A proxy on this machine, whose headers name a user with a role of the same name. */
const PROXY = {
  viewer: ['viewers'],
  operator: ['operators'],
  editor: ['editors'],
  proxy: { addresses: ['127.0.0.1'] },
};

const asRole = (role: string): Record<string, string> => ({
  'x-forwarded-user': 'ann',
  'x-forwarded-groups': `staff,${role}s`,
});

async function withRoles(adminRoles: object = PROXY, more: object = {}): Promise<TestGateway> {
  const config = {
    config: { adminAddr: 'off', adminRoles },
    frontendPolicies: { accessLog: { add: { body: 'string(request.body)', error: 'string(request.body)' } } },
    gateways: { default: { port: 0, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
    ...more,
  };
  return gateway(JSON.stringify(config), { admin: true });
}

const call = (
  gate: TestGateway,
  method: Method,
  path: string,
  headers: Record<string, string>,
): Promise<HttpReply> =>
  send(`${gate.admin}${path}`, { method, headers, ...(method === 'POST' && { body: '' }) });

describe('every endpoint of the admin server', () => {
  test.each(CALLS)(
    '$method $path declares the role that it needs, and what the audit calls it',
    ({ access, path }) => {
      expect(['anyone', ...ROLES]).toContain(access?.role);
      expect(access?.audit === false || /^[a-z]+\.?[a-z]+$/.test(access?.audit ?? '')).toBe(true);
      // Whatever changes something is not for viewers.
      if (access?.audit !== false) expect(['operator', 'editor']).toContain(access?.role);
      // Pages and their style, and who one is: nothing of the gateway.
      if (access?.role === 'anyone') expect(['/', '/ui/status.css', '/api/me']).toContain(path);
    },
  );

  test('docs/admin.md says which role each needs', () => {
    const text = readFileSync(new URL('../../docs/admin.md', import.meta.url), 'utf8');
    // Of several methods, those with another role are named: `viewer; POST: editor`.
    const rows = [...text.matchAll(/^\| `([^`?]+)[^`]*` \| ([A-Z, ]+) \| ([^|]+) \|/gm)].map(
      ([, path = '', methods = '', roles = '']) => ({ path: path.replace('ID', '1'), methods, roles }),
    );
    const documented = (path: string, method: string): string | undefined => {
      const row = rows.find((each) => each.path === path && each.methods.includes(method));
      return row && (new RegExp(`${method}: (\\w+)`).exec(row.roles)?.[1] ?? row.roles.split(';')[0]);
    };
    const missing = CALLS.filter(({ path, method }) => documented(path, method) === undefined);
    expect(missing.map(({ path }) => path)).toEqual(['/', '/ui/status', '/ui/status.css']);
    for (const { path, method, access } of CALLS) {
      const needed = access?.role === 'anyone' ? 'none' : access?.role;
      expect([path, method, documented(path, method) ?? needed]).toEqual([path, method, needed]);
    }
  });

  const refused = CALLS.flatMap(({ access, ...each }) => {
    const needed = access?.role ?? 'editor';
    if (needed === 'anyone') return [];
    const lower = ROLES.slice(0, ROLES.indexOf(needed));
    return ['none', ...lower].map((role) => ({ ...each, role, needed }));
  });

  test('each is refused to each lower role, and to callers without a role', async () => {
    await using gate = await withRoles();
    for (const { method, path, role, needed } of refused) {
      const reply = await call(
        gate,
        method,
        path,
        role === 'none' ? { 'x-forwarded-user': 'ann' } : asRole(role),
      );
      expect([method, path, role, reply.status]).toEqual([method, path, role, 403]);
      const has = role === 'none' ? 'no role' : `the role \`${role}\``;
      expect(problemOf(reply.text)).toContain(`needs the role \`${needed}\`, and "ann" has ${has}`);
    }
    expect(refused.length).toBeGreaterThan(50);
  });

  test('each is refused to a program of this machine, to a proxy without a user, and to a group sent twice', async () => {
    await using gate = await withRoles();
    const wrong: Record<string, string>[] = [
      {},
      { 'x-forwarded-groups': 'editors' },
      { 'x-forwarded-user': ' ', 'x-forwarded-groups': 'editors' },
      { 'x-forwarded-for': '203.0.113.7' },
      { 'x-forwarded-user': 'ann', 'x-forwarded-groups': 'EDITORS' },
      { 'x-forwarded-user': 'ann', 'x-forwarded-groups': 'editors;operators' },
    ];
    for (const { method, path, access } of CALLS) {
      if (access?.role === 'anyone') continue;
      for (const headers of wrong)
        expect([method, path, headers, (await call(gate, method, path, headers)).status]).toEqual([
          method,
          path,
          headers,
          403,
        ]);
    }
    const headers = { 'x-forwarded-user': 'ann', 'x-forwarded-groups': ['viewers', 'editors'] };
    expect((await send(`${gate.admin}/api/overview`, { headers })).text).toContain(
      'the proxy has sent `x-forwarded-groups` twice',
    );
  });

  test('what a viewer may see is shown to viewers, operators and editors', async () => {
    await using gate = await withRoles();
    for (const { method, path, access } of CALLS) {
      if (access?.role !== 'viewer') continue;
      for (const role of ROLES) {
        const { status } = await call(gate, method, path, asRole(role));
        expect([method, path, role, status === 403]).toEqual([method, path, role, false]);
      }
    }
  });
});

describe('who has which role', () => {
  test('the highest role of the names counts, whatever their order and spaces', async () => {
    await using gate = await withRoles();
    for (const [groups, role] of [
      ['viewers, editors', 'editor'],
      ['editors,viewers', 'editor'],
      [' operators ,x', 'operator'],
      ['x', null],
      ['', null],
    ] as const) {
      const { text } = await call(gate, 'GET', '/api/me', {
        'x-forwarded-user': 'ann',
        'x-forwarded-groups': groups,
      });
      expect([groups, JSON.parse(text)]).toMatchObject([
        groups,
        { actor: { kind: 'proxy', name: 'ann' }, role },
      ]);
    }
  });

  // Node.js reads headers as Latin-1, and a byte of UTF-8 may be a space there: grafana/grafana#44744, arkime/arkime#3951.
  test('names of users and groups that a proxy sends are UTF-8, and keep spaces that are no separators of HTTP', async () => {
    const groups = ['Équipe à', 'команда', '管理', 'a\u00a0b', '\u00a0'];
    await using gate = await withRoles({ ...PROXY, editor: groups, viewer: ['latin-\u00e9'] });
    const bytes = (text: string) => Buffer.from(text).toString('latin1');
    const me = async (user: string, sent: string): Promise<unknown> =>
      JSON.parse(
        (await call(gate, 'GET', '/api/me', { 'x-forwarded-user': user, 'x-forwarded-groups': sent })).text,
      );
    for (const group of groups)
      expect([group, await me(bytes('Renée à'), bytes(`staff, ${group}\t,x`))]).toMatchObject([
        group,
        { actor: { name: 'Renée à' }, role: 'editor' },
      ]);
    // Other bytes stay what they were.
    expect(await me('Ren\u00e9', 'latin-\u00e9')).toMatchObject({
      actor: { name: 'Ren\u00e9' },
      role: 'viewer',
    });
    for (const other of ['a b', 'ab', 'a\u00a0b\u00a0'])
      expect(await me('ann', bytes(other))).toMatchObject({ role: null });
  });

  test('names with commas need another separator, and a list with one that could never match is a mistake', async () => {
    const name = 'CN=admins,OU=groups';
    const proxy = { addresses: ['127.0.0.1'], separator: ';' };
    await using gate = await withRoles({ viewer: [], operator: [], editor: [name], proxy });
    const me = await call(gate, 'GET', '/api/me', {
      'x-forwarded-user': 'ann',
      'x-forwarded-groups': `CN=staff,OU=groups; ${name}`,
    });
    expect(JSON.parse(me.text)).toMatchObject({ role: 'editor' });
    await expect(withRoles({ ...PROXY, editor: [name] })).rejects.toThrow(
      'no name of the proxy contains `,`',
    );
  });

  // grafana/grafana#18109: a list of proxies that was compared with the address that a header names.
  test('headers of connections from elsewhere than the proxy count for nothing, whatever address they name', async () => {
    await using gate = await withRoles({ ...PROXY, proxy: { addresses: ['10.0.0.5'] } });
    const forged: Record<string, string>[] = [
      {},
      { 'x-forwarded-for': '10.0.0.5' },
      { 'x-real-ip': '10.0.0.5' },
    ];
    for (const more of forged) {
      const { text } = await call(gate, 'GET', '/api/me', { ...asRole('editor'), ...more });
      expect(JSON.parse(text)).toMatchObject({ role: null });
    }
  });

  test('without `adminRoles`, programs of this machine may do everything', async () => {
    await using gate = await gateway(
      JSON.stringify({ config: { adminAddr: 'off' }, gateways: { default: { port: 0 } } }),
      { admin: true },
    );
    const { text } = await call(gate, 'GET', '/api/me', {});
    expect(JSON.parse(text)).toMatchObject({ actor: { kind: 'local' }, role: 'editor' });
  });

  test('`local` gives programs of this machine a role, but not what comes through a proxy', async () => {
    await using gate = await withRoles({ ...PROXY, proxy: { addresses: ['10.0.0.5'] }, local: 'operator' });
    const role = async (headers: Record<string, string>): Promise<unknown> =>
      (JSON.parse((await call(gate, 'GET', '/api/me', headers)).text) as { role: unknown }).role;
    expect(await role({})).toBe('operator');
    expect(await role({ 'x-forwarded-for': '203.0.113.7' })).toBe(null);
    expect(await role({ 'x-forwarded-user': 'ann' })).toBe(null);
    expect(await role({ 'x-forwarded-groups': 'editors' })).toBe(null);
    for (const name of FORWARDED) {
      expect([name, await role({ [name]: 'ann' })]).toEqual([name, null]);
      const { text } = await call(gate, 'GET', '/api/overview', { [name]: 'ann' });
      expect(text).toContain(`programs of this machine do not send the header \`${name}\``);
    }
    for (const headers of OWN_PROGRAMS) expect([headers, await role(headers)]).toEqual([headers, 'operator']);
  });

  test('a refusal says that `local` is `none`, and which header a forwarded request has, with and without `proxy`', async () => {
    const { proxy: _proxy, ...roles } = PROXY;
    await using gate = await withRoles(roles);
    expect((await call(gate, 'GET', '/api/overview', {})).text).toContain(
      'it is a program of this machine, and `config.adminRoles.local` is `none`: set it',
    );
    const { text } = await call(gate, 'GET', '/api/overview', { 'x-user': 'ann' });
    expect(text).toContain('do not send the header `x-user`');
    expect(text).not.toContain('adminRoles.proxy');
  });

  // The address of a connection that its client has reset is not known any more, as that of a unix socket.
  test('a client that resets its connection after it has sent a request has no role', async () => {
    await using gate = await withRoles({ ...PROXY, proxy: { addresses: ['10.0.0.5'] }, local: 'viewer' });
    await call(gate, 'GET', '/logging', {});
    const { host, port } = new URL(gate.admin);
    const socket = connect(Number(port), '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.write(`POST /logging?level=mcp%3Dtrace HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 0\r\n\r\n`);
    socket.resetAndDestroy();
    await until(() => gate.log.some((line) => line.includes('\taudit\tlog.level\t')));
    expect(gate.log.filter((line) => line.includes('\taudit\tlog.level\t'))).toEqual([
      expect.stringContaining('outcome="refused"'),
    ]);
    expect((await call(gate, 'GET', '/logging', {})).text).not.toContain('trace');
  });

  // nginx leaves out a header that is empty: nobody has signed in.
  test('a proxy that sends no headers gives no role, whatever `local` gives', async () => {
    await using gate = await withRoles({ ...PROXY, local: 'editor' });
    const reply = await call(gate, 'GET', '/api/me', {});
    expect(JSON.parse(reply.text)).toMatchObject({ actor: { kind: 'proxy' }, role: null });
    expect((await call(gate, 'GET', '/api/overview', {})).text).toContain(
      'the proxy has sent no `x-forwarded-user`',
    );
  });

  test('headers of the proxy under other names are not local either', async () => {
    const proxy = { addresses: ['10.0.0.5'], user: 'x-person', groups: 'x-teams' };
    await using gate = await withRoles({ ...PROXY, proxy, local: 'editor' });
    const { text } = await call(gate, 'GET', '/api/me', { 'x-teams': 'viewers' });
    expect(JSON.parse(text)).toMatchObject({ role: null });
  });

  test('a header of the pages on a gateway that this gateway has not signed is refused', async () => {
    await using gate = await withRoles({ ...PROXY, local: 'editor' });
    for (const header of ['', '.', 'e30.e30', Buffer.from('{"role":"editor"}').toString('base64url')]) {
      const reply = await call(gate, 'GET', '/api/overview', { 'x-agctl-caller': header });
      expect([header, reply.status]).toEqual([header, 403]);
    }
  });
});

/** Headers of proxies, and of services of sign-in, that say who somebody else is. */
const FORWARDED = [
  ...[
    'x-forwarded-proto',
    'x-auth-request-user',
    'remote-user',
    'cf-connecting-ip',
    'forwarded',
    'x-webauth-user',
  ],
  ...[
    'x-authentik-username',
    'x-pomerium-jwt-assertion',
    'x-vouch-user',
    'x-consumer-username',
    'x-user',
    'x-email',
  ],
  ...['ssl-client-s-dn', 'x-envoy-external-address', 'x-client-ip', 'x-request-id', 'authorization', 'x'],
];

/** What programs of a machine send. */
const OWN_PROGRAMS: Record<string, string>[] = [
  { 'user-agent': 'curl/8.5.0', accept: '*/*' },
  {
    ...{ accept: 'text/html', 'accept-language': 'en', 'accept-encoding': 'gzip, br, zstd', cookie: 'a=b' },
    ...{ 'sec-ch-ua': '"Chromium";v="140"', 'sec-ch-ua-mobile': '?0', 'sec-ch-ua-platform': '"Linux"' },
    ...{
      'sec-fetch-site': 'none',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'document',
      'sec-fetch-user': '?1',
    },
    ...{
      'upgrade-insecure-requests': '1',
      'sec-gpc': '1',
      dnt: '1',
      priority: 'u=0, i',
      'cache-control': 'max-age=0',
    },
  },
  { 'user-agent': 'Prometheus/3.5.0', 'x-prometheus-scrape-timeout-seconds': '10', accept: 'text/plain' },
  { 'user-agent': 'Go-http-client/1.1', 'accept-encoding': 'gzip' },
];

/** The pages on a gateway, with keys whose metadata have names. */
async function onGateway(claim: string, keys: object[], more: object = {}): Promise<TestGateway> {
  const adminPort = await freePort();
  const { proxy: _proxy, ...roles } = PROXY;
  return gateway(
    JSON.stringify({
      config: { adminAddr: `127.0.0.1:${adminPort}`, adminRoles: { ...roles, claim, ...more } },
      gateways: { default: { port: 0 } },
      ui: { policies: { apiKey: { keys } } },
    }),
    { admin: true, adminPort },
  );
}

describe('roles of the pages on a gateway', () => {
  const asked = async (gate: TestGateway, key: string, path = '/api/me', method: Method = 'GET') =>
    send(`${gate.url}${path}`, { method, headers: { authorization: `Bearer ${key}` } });

  // goharbor/harbor#15416, nxzai/NextExplorer#279: a claim with one group is a string, and nobody had a role.
  test.each([
    ['a list', ['x', 'operators'], 'operator', undefined],
    ['a string', 'editors', 'editor', undefined],
    ['an empty list', [], null, 'is an empty list'],
    ['a list of names that give no role', ['x', 'y'], null, 'is "x", "y"'],
    ['a number', 7, null, 'expected a string or a list of strings, but it is a number'],
    ['a map', { editors: true }, null, 'it is a map'],
    ['a list with another value', ['editors', 1], null, 'it is a list with other values'],
    ['null', null, null, 'it is absent'],
  ])('a claim that is %s', async (_, groups, role, reason) => {
    await using gate = await onGateway('apiKey.groups', [{ key: 'k', metadata: { name: 'ci', groups } }]);
    const seen = JSON.parse((await asked(gate, 'k')).text) as Record<string, unknown>;
    expect(seen).toMatchObject({ actor: { kind: 'key', name: 'ci' }, role });
    if (reason !== undefined) expect(seen['reason']).toContain(reason);
    const overview = await asked(gate, 'k', '/api/overview');
    expect(overview.status).toBe(role === null ? 403 : 200);
    if (reason !== undefined) expect(problemOf(overview.text)).toContain(reason);
  });

  test('a claim that is missing gives no role, and the refusal names what was expected', async () => {
    await using gate = await onGateway('apiKey.groups', [{ key: 'k', metadata: { name: 'ci' } }]);
    const { status, text } = await asked(gate, 'k', '/api/overview');
    expect(status).toBe(403);
    expect(problemOf(text)).toMatch(
      /^GET \/api\/overview needs the role `viewer`, and "ci" has no role: `apiKey\.groups`/,
    );
    expect(text).toContain('groups');
  });

  test('a caller with thousands of names has the role of one of them', async () => {
    const groups = [...Array.from({ length: 5_000 }, (_, index) => `group-${index}`), 'viewers'];
    await using gate = await onGateway('apiKey.groups', [{ key: 'k', metadata: { groups } }]);
    expect(JSON.parse((await asked(gate, 'k')).text)).toMatchObject({ role: 'viewer' });
  });

  test('callers without a key have no role, also from this machine, and cannot bring the header of the gateway', async () => {
    await using gate = await onGateway('apiKey.groups', [{ key: 'k', metadata: { groups: 'editors' } }]);
    expect((await send(`${gate.url}/api/overview`)).status).toBe(403);
    expect((await send(`${gate.admin}/api/overview`)).status).toBe(403);
    const received = await capturedHeader();
    for (const origin of [gate.url, gate.admin])
      expect((await send(`${origin}/api/overview`, { headers: { 'x-agctl-caller': received } })).status).toBe(
        403,
      );
  });

  test('the configuration of roles is read again by a reload', async () => {
    const yaml = (editor: string): string =>
      JSON.stringify({
        config: { adminAddr: 'off', adminRoles: { ...PROXY, editor: [editor] } },
        gateways: { default: { port: 0 } },
      });
    await using folder = await temporaryFolder();
    await using gate = await gateway(yaml('editors'), { admin: true, live: 'asked', folder: folder.path });
    const me = async (): Promise<unknown> =>
      JSON.parse((await call(gate, 'GET', '/api/me', asRole('editor'))).text);
    expect(await me()).toMatchObject({ role: 'editor' });
    const opened = (role: string) => STREAMS.map((path) => streamOf(`${gate.admin}${path}`, asRole(role)));
    const [ended, kept] = [await Promise.all(opened('editor')), await Promise.all(opened('operator'))];
    writeFileSync(`${folder.path}/test.yaml`, yaml('nobody'));
    expect(await gate.live.reload()).toBe(true);
    expect(await me()).toMatchObject({ role: null });
    await endsSoon(ended);
    expect(kept.map(({ hasEnded }) => hasEnded())).toEqual([false, false]);
    for (const stream of kept) stream.leave();
  });

  test('streams through the pages on a gateway end when roles change, and with the key of their caller', async () => {
    const adminPort = await freePort();
    const { proxy: _proxy, ...roles } = PROXY;
    const yaml = (editor: string, key = 'k'): string =>
      JSON.stringify({
        config: {
          adminAddr: `127.0.0.1:${adminPort}`,
          adminRoles: { ...roles, editor: [editor], claim: 'apiKey.groups' },
        },
        gateways: { default: { port: 0 } },
        ui: { policies: { apiKey: { keys: [{ key, metadata: { groups: ['editors', 'viewers'] } }] } } },
      });
    await using folder = await temporaryFolder();
    await using gate = await gateway(yaml('editors'), {
      ...{ admin: true, adminPort, live: 'asked', folder: folder.path, limits: { keyRefresh: 50 } },
    });
    const opened = (paths: readonly string[]) =>
      Promise.all(paths.map((path) => streamOf(`${gate.url}${path}`, { authorization: 'Bearer k' })));
    const ofEditor = await opened(STREAMS);
    writeFileSync(`${folder.path}/test.yaml`, yaml('nobody'));
    expect(await gate.live.reload()).toBe(true);
    await endsSoon(ofEditor);
    const ofViewer = await opened(['/api/requests']);
    writeFileSync(`${folder.path}/test.yaml`, yaml('nobody', 'another'));
    expect(await gate.live.reload()).toBe(true);
    await endsSoon(ofViewer);
  });

  /** The streams of the admin server that go on until somebody ends them. */
  const STREAMS = ['/debug/trace?follow=true', '/api/requests'] as const;

  async function streamOf(url: string, headers: Record<string, string>) {
    const leaving = new AbortController();
    const response = await fetch(url, {
      headers: { ...headers, accept: 'text/event-stream' },
      signal: leaving.signal,
    });
    expect([url, response.status]).toEqual([url, 200]);
    let ended = false;
    const end = (): void => {
      ended = true;
    };
    // A connection that is cut is an end, too.
    void response.text().then(end, end);
    return { hasEnded: () => ended, leave: () => leaving.abort() };
  }

  /** Within two seconds: streams are looked at every second. */
  async function endsSoon(streams: readonly { hasEnded(): boolean }[]): Promise<void> {
    const since = performance.now();
    await until(() => streams.every(({ hasEnded }) => hasEnded()));
    expect(performance.now() - since).toBeLessThan(2000);
  }

  /** The header that another gateway has signed for an editor. */
  async function capturedHeader(): Promise<string> {
    await using admin = await httpUpstream();
    const config = {
      config: { adminAddr: admin.address },
      gateways: { default: { port: 0 } },
      ui: { policies: { apiKey: { keys: [{ key: 'k' }] } } },
    };
    await using gate = await gateway(JSON.stringify(config));
    await asked(gate, 'k', '/api/overview');
    const headers = admin.received[0]?.headers ?? {};
    return String((headers as Record<string, unknown>)['x-agctl-caller']);
  }
});

test('a viewer sees neither bodies of requests in fields that were added, nor what the configuration quotes', async () => {
  await using gate = await withRoles();
  await send(gate.url, { method: 'POST', body: 'SECRET-BODY' });
  await gate.accessLine(1);
  for (const path of ['/api/requests', '/ui/status', '/api/overview', '/api/requests/open', '/debug/tasks']) {
    const seen = await call(gate, 'GET', path, asRole('viewer'));
    expect([path, seen.status, seen.text.includes('SECRET-BODY')]).toEqual([path, 200, false]);
  }
  const seen = await call(gate, 'GET', '/api/requests', asRole('operator'));
  expect(seen.text).toContain('SECRET-BODY');
  expect((await call(gate, 'GET', '/api/requests', asRole('viewer'))).text).toContain(
    '"http.method": "POST"',
  );
});
