import { writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { boundsInUse } from '../../kit/bounds-in-use.ts';
import { budgetGateway, createKey } from '../../kit/budgets.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { legacyClient } from '../../kit/legacy-client.ts';
import { openSession, post } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { modernEvents } from '../../kit/modern.ts';
import { realtimeClient, realtimeProvider } from '../../kit/realtime.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { signingKey, token } from '../../kit/tokens.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { freshly, workerGateway } from '../../kit/workers.ts';

// What stands without new requests must end with the credential that it was opened with: rmyndharis/OpenWA#1628 (revoked at another
// node, edited, revoked between the check and the registration), blockmineJS/blockmine#75, streamplace/streamplace#278.

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const SOON = { keyRefresh: 10 };
const VIRTUAL = { apiKey: { mode: 'strict', virtualKeys: {} } };
const DATABASE = { database: { url: 'sqlite://./agctl.db' } };

function mcpGateway(
  url: string,
  folder: string,
  policies: object,
  { path, config = {}, ...options }: TestGatewayOptions & { path?: string; config?: object } = {},
): Promise<TestGateway> {
  const route = { policies, ...(path && { matches: [{ path: { exact: path } }] }) };
  const yaml = mcpConfig([{ name: 'up', mcp: { host: url } }], { route, config });
  return gateway(yaml, { folder, limits: SOON, ...options });
}

const revoke = ({ admin }: { admin: string }, key: string) =>
  send(`${admin}/api/keys/revoke`, { method: 'POST', body: JSON.stringify({ key }) });

/** The status of a request of that session. */
const pinged = async (url: string, session: string, key: string): Promise<number> => {
  const headers = { ...bearer(key), 'mcp-session-id': session };
  return (await post(url, { jsonrpc: '2.0', id: 9, method: 'ping' }, headers)).status;
};

afterEach(() => void vi.useRealTimers());

describe('a virtual key that is revoked', () => {
  test('ends the GET stream and the session, here and at the server, and those of no other key', async () => {
    await using folder = await temporaryFolder();
    await using up = await mcpUpstream();
    await using gate = await mcpGateway(up.url, folder.path, VIRTUAL, { config: DATABASE, admin: true });
    const [ann, bob] = [await createKey(gate, { name: 'ann' }), await createKey(gate, { name: 'bob' })];
    const [hers, his] = [
      await openSession(gate.url, bearer(ann.secret)),
      await openSession(gate.url, bearer(bob.secret)),
    ];
    await using herStream = await openEvents(gate.url, { session: hers.id, headers: bearer(ann.secret) });
    await using hisStream = await openEvents(gate.url, { session: his.id, headers: bearer(bob.secret) });
    await revoke(gate, 'ann');
    await herStream.untilEnd();
    await until(() => up.sessions.size === 1);
    expect(hisStream.ended).toBe(false);
    expect(await pinged(gate.url, hers.id, ann.secret)).toBe(401);
    expect(await pinged(gate.url, his.id, bob.secret)).toBe(200);
  });

  test('ends a session without a stream, with its child process and its call, and the log says why', async () => {
    await using folder = await temporaryFolder();
    const yaml = mcpConfig([chaos('up')], { route: { policies: VIRTUAL }, config: DATABASE });
    await using gate = await gateway(yaml, { folder: folder.path, admin: true, limits: SOON });
    const { secret } = await createKey(gate, { name: 'ann' });
    const session = await openSession(gate.url, bearer(secret));
    expect(await boundsInUse(gate)).toMatchObject({ 'mcp.sessions': 1, 'mcp.children': 1 });
    const call = session.request('tools/call', { name: 'hang' });
    // The answer to the ping comes after the call was passed on, because one pipe carries both.
    await session.request('ping');
    await revoke(gate, 'ann');
    const told = 'the session ended: its credential is no longer accepted';
    expect((await call).error.message).toBe(told);
    const why = /its virtual key ann \(\w+\) is revoked/;
    await until(() => gate.accessLog.some((line) => line.includes(told) && why.test(line)));
    expect(gate.log.join('')).toMatch(
      new RegExp(`info.*session of a caller who is no longer let in.*${why.source}`),
    );
    await until(async () => (await boundsInUse(gate))['mcp.children'] === 0);
    expect(await boundsInUse(gate)).toMatchObject({ 'mcp.sessions': 0 });
  });

  test('ends the stream of the transport HTTP+SSE', async () => {
    await using folder = await temporaryFolder();
    await using up = await mcpUpstream();
    await using gate = await mcpGateway(up.url, folder.path, VIRTUAL, {
      config: DATABASE,
      admin: true,
      path: '/sse',
    });
    const { secret } = await createKey(gate, { name: 'ann' });
    await using client = await legacyClient(`${gate.url}/sse`, bearer(secret));
    await client.initialize();
    await revoke(gate, 'ann');
    await until(() => client.ended);
    await until(() => up.sessions.size === 0);
  });

  test('ends subscriptions/listen of revision 2026-07-28, and the session behind it', async () => {
    await using folder = await temporaryFolder();
    await using up = await mcpUpstream({ capabilities: { tools: { listChanged: true } } });
    await using gate = await mcpGateway(up.url, folder.path, VIRTUAL, { config: DATABASE, admin: true });
    const { secret } = await createKey(gate, { name: 'ann' });
    await using stream = await modernEvents(
      gate.url,
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      { headers: bearer(secret) },
    );
    await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged');
    await revoke(gate, 'ann');
    await stream.untilEnd();
    await until(() => up.sessions.size === 0);
  });

  test('closes a realtime session with code 1008, at both sides', async () => {
    await using folder = await temporaryFolder();
    await using provider = await realtimeProvider();
    const options = { options: { admin: true, limits: SOON } };
    const address = new URL(provider.baseUrl).host;
    await using gate = await budgetGateway({ address }, folder.path, VIRTUAL, options);
    const { secret } = await createKey(gate, { name: 'ann' });
    const url = `${gate.url}/v1/realtime?model=acme-mini`;
    await using client = await realtimeClient(url, { headers: bearer(secret) });
    await revoke(gate, 'ann');
    expect(await client.closed).toEqual([1008, 'the credential is no longer accepted']);
    await until(() => provider.closed.length === 1);
  });

  test('ends a WebSocket to a plain HTTP service, at both sides', async () => {
    await using folder = await temporaryFolder();
    await using service = await realtimeProvider();
    const options = { folder: folder.path, admin: true, limits: SOON };
    const { host } = new URL(service.baseUrl);
    await using gate = await proxyGateway(host, VIRTUAL, { config: DATABASE }, options);
    const { secret } = await createKey(gate, { name: 'ann' });
    await using client = await realtimeClient(gate.url, { headers: bearer(secret) });
    await revoke(gate, 'ann');
    await client.closed;
    await until(() => service.closed.length === 1);
  });

  test('ends them at other gateways with the same database', async () => {
    await using folder = await temporaryFolder();
    await using up = await mcpUpstream();
    const options = { config: DATABASE, admin: true };
    await using first = await mcpGateway(up.url, folder.path, VIRTUAL, options);
    await using second = await mcpGateway(up.url, folder.path, VIRTUAL, options);
    const { secret } = await createKey(first, { name: 'ann' });
    const { id } = await openSession(second.url, bearer(secret));
    await using stream = await openEvents(second.url, { session: id, headers: bearer(secret) });
    await revoke(first, 'ann');
    await stream.untilEnd();
  });

  test('ends them in workers, which ask the process that has the keys', async () => {
    await using folder = await temporaryFolder();
    await using up = await mcpUpstream();
    const config = JSON.parse(
      mcpConfig([{ name: 'up', mcp: { host: up.url } }], {
        route: { policies: VIRTUAL },
        config: { workers: 2, database: { url: `sqlite://${folder.path}/agctl.db` } },
      }),
    ) as object;
    await using gate = await workerGateway(config);
    const { secret } = await createKey(gate, { name: 'ann' });
    const { id } = await openSession(gate.url, bearer(secret));
    await using stream = await openEvents(gate.url, { session: id, headers: bearer(secret) });
    await freshly(`${gate.admin}/api/keys/revoke`, { method: 'POST', body: JSON.stringify({ key: 'ann' }) });
    await stream.untilEnd();
  });
});

test('a virtual key that expires ends the session with its stream', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-03-01T00:00:00Z') });
  await using folder = await temporaryFolder();
  await using up = await mcpUpstream();
  await using gate = await mcpGateway(up.url, folder.path, VIRTUAL, { config: DATABASE, admin: true });
  const { secret } = await createKey(gate, { name: 'ann', expiresAt: '2026-03-02T00:00:00Z' });
  const { id } = await openSession(gate.url, bearer(secret));
  await using stream = await openEvents(gate.url, { session: id, headers: bearer(secret) });
  vi.setSystemTime(Date.parse('2026-03-02T00:00:00Z'));
  await stream.untilEnd();
  await until(() => gate.accessLog.some((line) => /its virtual key ann \(\w+\) is expired/.test(line)));
});

describe('a reload', () => {
  const key = (text: string, metadata = {}) => ({ key: text, metadata });
  const config = (url: string, apiKey: object | undefined) =>
    mcpConfig([{ name: 'up', mcp: { host: url } }], { route: { policies: apiKey ? { apiKey } : {} } });

  test.each([
    ['that removes a key', { mode: 'strict', keys: [key('bob')] }],
    [
      'that changes the metadata of a key',
      { mode: 'strict', keys: [key('ann', { role: 'reader' }), key('bob')] },
    ],
  ])('%s ends its session, and that of no other key', async (_title, next) => {
    await using folder = await temporaryFolder();
    await using up = await mcpUpstream();
    const before = config(up.url, { mode: 'strict', keys: [key('ann'), key('bob')] });
    await using gate = await gateway(before, { folder: folder.path, live: 'asked', limits: SOON });
    const [hers, his] = [
      await openSession(gate.url, bearer('ann')),
      await openSession(gate.url, bearer('bob')),
    ];
    await using herStream = await openEvents(gate.url, { session: hers.id, headers: bearer('ann') });
    await using hisStream = await openEvents(gate.url, { session: his.id, headers: bearer('bob') });
    await writeFile(join(folder.path, 'test.yaml'), config(up.url, next));
    expect(await gate.live.reload()).toBe(true);
    await herStream.untilEnd();
    expect(hisStream.ended).toBe(false);
    expect(await pinged(gate.url, his.id, 'bob')).toBe(200);
    expect(await pinged(gate.url, hers.id, 'ann')).not.toBe(200);
  });

  test('that requires a key ends the session of a caller without one', async () => {
    await using folder = await temporaryFolder();
    await using up = await mcpUpstream();
    const before = config(up.url, { mode: 'optional', keys: [key('ann')] });
    await using gate = await gateway(before, { folder: folder.path, live: 'asked', limits: SOON });
    const { id } = await openSession(gate.url);
    await using stream = await openEvents(gate.url, { session: id });
    await writeFile(join(folder.path, 'test.yaml'), config(up.url, { mode: 'strict', keys: [key('ann')] }));
    expect(await gate.live.reload()).toBe(true);
    await stream.untilEnd();
  });

  test('of a file of users without one of them ends the session of that user', async () => {
    await using folder = await temporaryFolder();
    await using up = await mcpUpstream();
    // The password is `secret`.
    const line = (user: string) => `${user}:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n`;
    await writeFile(join(folder.path, 'users'), line('ann') + line('bob'));
    const policies = { basicAuth: { mode: 'strict', htpasswd: { file: 'users' } } };
    await using gate = await mcpGateway(up.url, folder.path, policies, { live: 'asked' });
    const basic = (user: string) => ({ authorization: `Basic ${btoa(`${user}:secret`)}` });
    const [hers, his] = [
      await openSession(gate.url, basic('ann')),
      await openSession(gate.url, basic('bob')),
    ];
    await using herStream = await openEvents(gate.url, { session: hers.id, headers: basic('ann') });
    await using hisStream = await openEvents(gate.url, { session: his.id, headers: basic('bob') });
    await writeFile(join(folder.path, 'users'), line('bob'));
    expect(await gate.live.reload()).toBe(true);
    await herStream.untilEnd();
    expect(hisStream.ended).toBe(false);
  });
});

/** A service whose answers of this type are never complete, until they are told to be. */
async function endless(type: string) {
  const open = new Set<ServerResponse>();
  const upstream = await httpUpstream((_, response) => {
    open.add(response);
    response.on('close', () => open.delete(response));
    response.writeHead(200, { 'content-type': type }).write('data: {"first":1,"choices":[{}]}\n\n');
  });
  return {
    ...upstream,
    open,
    end: () => {
      for (const response of open) response.end('data: {"last":1}\n\ndata: [DONE]\n\n');
    },
  };
}

const STREAM = 'text/event-stream';

describe('a stream of a service', () => {
  test.each([
    ['server-sent events', {}, undefined],
    ['an agent (A2A)', { a2a: {} }, { id: 1, method: 'message/stream' }],
  ])('of %s ends at both sides when the key of its caller is revoked', async (_title, policies, message) => {
    await using folder = await temporaryFolder();
    await using service = await endless(`${STREAM}; charset=utf-8`);
    const options = { folder: folder.path, admin: true, limits: SOON };
    await using gate = await proxyGateway(
      service.address,
      { ...VIRTUAL, ...policies },
      { config: DATABASE },
      options,
    );
    const [ann, bob] = [await createKey(gate, { name: 'ann' }), await createKey(gate, { name: 'bob' })];
    const opening = (key: string) => ({ headers: bearer(key), ...(message && { message }) });
    await using hers = await openEvents(gate.url, opening(ann.secret));
    await using his = await openEvents(gate.url, opening(bob.secret));
    await hers.next(() => true);
    await revoke(gate, 'ann');
    await hers.untilEnd();
    await until(() => service.open.size === 1);
    expect(his.ended).toBe(false);
  });
});

describe('a token that expires', () => {
  const START = Date.parse('2026-03-01T00:00:00Z');
  const key = signingKey('k1');
  const ISSUER = 'https://login.example.com';
  const JWT = { mode: 'strict', issuer: ISSUER, jwks: JSON.stringify({ keys: [key.jwk] }) };
  const exp = (date: string): Record<string, string> =>
    bearer(token(key, { iss: ISSUER, sub: 'ann', exp: Date.parse(date) / 1000 }));
  const SHORT = '2026-03-01T01:00:00Z';
  /** The last time before, and the first after the token, with the accepted difference of clocks. */
  const [BEFORE, AFTER] = [Date.parse('2026-03-01T01:00:59.999Z'), Date.parse('2026-03-01T01:01:00Z')];

  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: START }));

  test('ends its streams a minute after `exp`; tokens of 26 days later and of the year 9999 go on', async () => {
    await using service = await endless(STREAM);
    await using gate = await proxyGateway(service.address, { jwtAuth: JWT }, {}, { limits: SOON });
    const open = (date: string) => openEvents(gate.url, { headers: exp(date) });
    await using first = await open('2026-03-01T00:30:00Z');
    await using short = await open(SHORT);
    await using later = await open('2026-03-27T00:00:00Z');
    await using last = await open('9999-12-31T23:59:59Z');
    vi.setSystemTime(BEFORE);
    // It is swept in the same turn as the others.
    await first.untilEnd();
    expect([short.ended, later.ended, last.ended]).toEqual([false, false, false]);
    vi.setSystemTime(AFTER);
    await short.untilEnd();
    await until(() => service.open.size === 2);
    expect([later.ended, last.ended]).toEqual([false, false]);
  });

  test.each([['jwtAuth'], ['mcpAuthentication']])(
    'of %s ends the GET stream of a session, which goes on with the next token',
    async (policy) => {
      await using folder = await temporaryFolder();
      await using up = await mcpUpstream();
      const more =
        policy === 'jwtAuth'
          ? {}
          : { audiences: ['api'], resourceMetadata: { resource: 'http://127.0.0.1/' } };
      await using gate = await mcpGateway(up.url, folder.path, { [policy]: { ...JWT, ...more } });
      const of = (date: string) =>
        bearer(token(key, { iss: ISSUER, sub: 'ann', aud: 'api', exp: Date.parse(date) / 1000 }));
      const { id } = await openSession(gate.url, of(SHORT));
      await using stream = await openEvents(gate.url, { session: id, headers: of(SHORT) });
      vi.setSystemTime(AFTER);
      await stream.untilEnd();
      const next = of('2026-03-01T02:00:00Z');
      await using again = await openEvents(gate.url, { session: id, headers: next });
      expect([again.status, up.sessions.size]).toEqual([200, 1]);
    },
  );

  test('ends subscriptions/listen with its response', async () => {
    await using folder = await temporaryFolder();
    await using up = await mcpUpstream({ capabilities: { tools: { listChanged: true } } });
    await using gate = await mcpGateway(up.url, folder.path, { jwtAuth: JWT });
    await using stream = await modernEvents(
      gate.url,
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      { headers: exp(SHORT) },
    );
    await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged');
    vi.setSystemTime(AFTER);
    await stream.untilEnd();
    expect(stream.messages.at(-1)).toMatchObject({ result: { resultType: 'complete' } });
  });

  test('ends the stream of the transport HTTP+SSE', async () => {
    await using folder = await temporaryFolder();
    await using up = await mcpUpstream();
    await using gate = await mcpGateway(up.url, folder.path, { jwtAuth: JWT }, { path: '/sse' });
    await using client = await legacyClient(`${gate.url}/sse`, exp(SHORT));
    await client.initialize();
    vi.setSystemTime(AFTER);
    await until(() => client.ended);
  });

  test('closes a realtime session, and leaves the answer of a model that has begun', async () => {
    await using folder = await temporaryFolder();
    await using provider = await realtimeProvider();
    await using model = await endless(STREAM);
    const options = { options: { limits: SOON } };
    await using spoken = await budgetGateway(
      { address: new URL(provider.baseUrl).host },
      folder.path,
      { jwtAuth: JWT },
      options,
    );
    await using written = await budgetGateway(model, folder.path, { jwtAuth: JWT }, options);
    const headers = { ...exp(SHORT), 'content-type': 'application/json' };
    await using client = await realtimeClient(`${spoken.url}/v1/realtime?model=acme-mini`, { headers });
    const body = JSON.stringify({
      model: 'acme-mini',
      stream: true,
      messages: [{ role: 'user', content: 'x' }],
    });
    const answer = send(`${written.url}/v1/chat/completions`, { method: 'POST', headers, body });
    await until(() => model.open.size === 1);
    vi.setSystemTime(AFTER);
    expect(await client.closed).toEqual([1008, 'the credential is no longer accepted']);
    model.end();
    expect((await answer).text).toContain('[DONE]');
  });

  test('counts beside a key: the stream ends with the first of both', async () => {
    await using folder = await temporaryFolder();
    await using service = await endless(STREAM);
    const apiKey = { ...VIRTUAL.apiKey, location: { header: { name: 'x-key', prefix: '' } } };
    const options = { folder: folder.path, admin: true, limits: SOON };
    await using gate = await proxyGateway(
      service.address,
      { jwtAuth: JWT, apiKey },
      { config: DATABASE },
      options,
    );
    const { secret } = await createKey(gate, { name: 'ann' });
    const open = (date: string) => openEvents(gate.url, { headers: { ...exp(date), 'x-key': secret } });
    await using short = await open(SHORT);
    await using long = await open('2026-04-01T00:00:00Z');
    vi.setSystemTime(AFTER);
    await short.untilEnd();
    expect(long.ended).toBe(false);
    await revoke(gate, 'ann');
    await long.untilEnd();
  });
});
