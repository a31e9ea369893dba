import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
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
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
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

  test('ends a session without a stream, with its child process', async () => {
    await using folder = await temporaryFolder();
    const yaml = mcpConfig([chaos('up')], { route: { policies: VIRTUAL }, config: DATABASE });
    await using gate = await gateway(yaml, { folder: folder.path, admin: true, limits: SOON });
    const { secret } = await createKey(gate, { name: 'ann' });
    await openSession(gate.url, bearer(secret));
    expect(await boundsInUse(gate)).toMatchObject({ 'mcp.sessions': 1, 'mcp.children': 1 });
    await revoke(gate, 'ann');
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
