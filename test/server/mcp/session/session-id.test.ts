import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { openSession as contentsOf } from '../../../../src/server/mcp/session/session-id.ts';
import { mcpConfig } from '../../../kit/config.ts';
import { openEvents } from '../../../kit/event-stream.ts';
import { gateway } from '../../../kit/gateway.ts';
import { INITIALIZE, openSession, post } from '../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream } from '../../../kit/mcp-upstream.ts';

const KEY = 'ab'.repeat(32);
const PING = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

const config = (up: McpUpstream, key = KEY) =>
  mcpConfig([{ name: 'up', mcp: { host: up.url } }], { config: { session: { key } } });

/** Two gateways: one issued the id, and the other one has never seen it. */
async function stage(otherKey = KEY) {
  const up = await mcpUpstream();
  const issuer = await gateway(config(up));
  const other = await gateway(config(up, otherKey));
  const { id } = await openSession(`${issuer.url}/mcp`);
  return {
    up,
    id,
    /** Statuses of a POST with that session id at both gateways. */
    statuses: (session: string) =>
      Promise.all(
        [issuer, other].map(
          async ({ url }) => (await post(`${url}/mcp`, PING, { 'mcp-session-id': session })).status,
        ),
      ),
    url: `${other.url}/mcp`,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([issuer.close(), other.close()]);
      await up[Symbol.asyncDispose]();
    },
  };
}

/** The id with another character at that index. */
const changed = (id: string, at: number): string =>
  id.slice(0, at) + (id[at] === 'A' ? 'B' : 'A') + id.slice(at + 1);

describe('a forged session id', () => {
  test('a session id that was changed at any place is answered with 404 by the process that issued it and by another one', async () => {
    await using own = await stage();
    expect(await own.statuses(own.id)).toEqual([200, 200]);
    for (let at = 0; at < own.id.length; at += 7)
      expect([at, await own.statuses(changed(own.id, at))]).toEqual([at, [404, 404]]);
    expect(await own.statuses(changed(own.id, own.id.length - 1))).toEqual([404, 404]);
    expect(own.up.of('initialize')).toHaveLength(1);
  });

  test.each<[string, (id: string) => string]>([
    ['cut', (id) => id.slice(0, -4)],
    ['longer', (id) => `${id}AAAA`],
    ['doubled', (id) => id + id],
    ['padded', (id) => `${id}=`],
    ['in another alphabet', (id) => `+/${id.slice(2)}`],
    ['random', () => randomBytes(120).toString('base64url')],
    ['short', () => 'AAAA'],
  ])('a session id that is %s is answered with 404', async (_, forge) => {
    await using own = await stage();
    expect(await own.statuses(forge(own.id))).toEqual([404, 404]);
  });

  test('a session id of another key is answered with 404 to POST, GET and DELETE, and the session continues where it was issued', async () => {
    await using own = await stage('cd'.repeat(32));
    expect(await own.statuses(own.id)).toEqual([200, 404]);
    await using events = await openEvents(own.url, { session: own.id });
    expect(events.status).toBe(404);
    const ended = await fetch(own.url, { method: 'DELETE', headers: { 'mcp-session-id': own.id } });
    expect(ended.status).toBe(404);
    expect(await own.statuses(own.id)).toEqual([200, 404]);
  });
});

test('a session id with two targets and the parameters of a client with all capabilities is shorter than 1 KiB', async () => {
  await using one = await mcpUpstream({ name: 'a'.repeat(36) });
  await using two = await mcpUpstream({ name: 'b'.repeat(36) });
  const targets = [one, two].map(({ url }, index) => ({ name: `target-${index}`, mcp: { host: url } }));
  await using gate = await gateway(mcpConfig(targets, { config: { session: { key: KEY } } }));
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {
      roots: { listChanged: true },
      sampling: { context: {}, tools: {} },
      elicitation: { form: {}, url: {} },
      tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} } } },
    },
    clientInfo: { name: 'some-desktop-client', title: 'Some Desktop Client', version: '2026.11.0' },
  };
  const { id } = await openSession(`${gate.url}/mcp`, {}, { ...INITIALIZE, params });
  expect(id.length).toBeGreaterThan(600);
  expect(id.length).toBeLessThan(1024);
});

test('the ids of 300 sessions have different nonces of 96 bits and different random parts of 128 bits', async () => {
  await using up = await mcpUpstream();
  await using gate = await gateway(config(up));
  const ids: string[] = [];
  for (let batch = 0; batch < 10; batch++) {
    const opened = await Promise.all(Array.from({ length: 30 }, () => openSession(`${gate.url}/mcp`)));
    ids.push(...opened.map(({ id }) => id));
  }
  const randomParts = ids.map((id) =>
    Buffer.from(contentsOf(Buffer.from(KEY, 'hex'), id)?.r ?? '', 'base64url'),
  );
  const nonces = ids.map((id) => Buffer.from(id, 'base64url').subarray(0, 12));
  for (const [parts, length] of [
    [nonces, 12],
    [randomParts, 16],
  ] as const) {
    expect(new Set(parts.map((part) => part.toString('hex'))).size).toBe(300);
    expect(new Set(parts.map((part) => part.length))).toEqual(new Set([length]));
    // Each bit has both values, which a counter, a time or a padded number does not give.
    for (let bit = 0; bit < length * 8; bit++)
      expect([bit, new Set(parts.map((part) => ((part[bit >> 3] ?? 0) >> (bit & 7)) & 1)).size]).toEqual([
        bit,
        2,
      ]);
  }
});

test('log and access log show the first 12 characters of a session id and no more, whatever the level', async () => {
  await using up = await mcpUpstream();
  await using gate = await gateway(config(up), { level: 'trace' });
  const session = await openSession(`${gate.url}/mcp`);
  await session.request('tools/list');
  const forged = changed(session.id, 30);
  expect((await post(session.url, PING, { 'mcp-session-id': forged })).status).toBe(404);
  await session.end();
  expect((await session.request('tools/list')).status).toBe(404);
  expect((await gate.accessLine(3))['mcp.session.id']).toBe(session.id.slice(0, 12));
  await gate.accessLine(6);
  expect(gate.log.join('')).toContain(session.id.slice(0, 12));
  expect([...gate.accessLog, ...gate.log].join('')).not.toContain(session.id.slice(0, 13));
});

/** An id that an earlier build created with `KEY`, at a target with the session `up-1`. Clients keep ids during an upgrade. */
const EARLIER_ID =
  'F_hEh9JEhJynbe9WUTjA_IDbEfPG08p_RuhuwAZ2xTm4LImXEslTQrjRUqO1twip-YZLF2QXjyRrkS8x1yQNoCubP_a50YUUrY4w3biN6glG7mbGuUaHcNpnCUsRrbaqry4peX0eSauPhyFT3epRZxUw1LoJlkBCpINnlwJDQKpFKjmS_RmkfQ3uj-StUNEQGCT8dU8eB1uCBX9QrtDutGiG7QkiEyGoB1u8ILqCJC4BsUzLW0IvJJtjiohntOaAkWcnQh0IlTa6vib2o8xgYcFxACyjXcDg8-hLRizrNwLu9RhCAJOv0L_yoesNi7yOLumxJUUgGX0vX2j8MkV7ilk';

test('a session id that an earlier build created continues its session at the target', async () => {
  await using up = await mcpUpstream();
  up.sessions.add('up-1');
  await using gate = await gateway(config(up));
  expect((await post(`${gate.url}/mcp`, PING, { 'mcp-session-id': EARLIER_ID })).status).toBe(200);
  expect(up.of('initialize')).toHaveLength(0);
});
