import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { mcpConfig } from '../../kit/config.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { MCP_HEADERS, type McpSession, openSession, read } from '../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, type Script } from '../../kit/mcp-upstream.ts';
import { until } from '../../kit/until.ts';

// Another process can resume a session with HTTP targets from its id, but must not resume an ended session.

/** A server that does not let clients end sessions, as MCP allows: it serves the session for ever. */
const keepsSessions: Script = ({ verb }, response) => {
  if (verb !== 'DELETE') return false;
  response.writeHead(405).end();
  return true;
};
const target = (up: McpUpstream) => ({ name: 'up', mcp: { host: up.url } });

/** What a client that has the id of an ended session gets for each kind of message. */
async function statusesOf({ url, id, send }: McpSession): Promise<number[]> {
  const ask = async (method: string): Promise<number> => {
    const { status, body } = await fetch(url, { method, headers: { ...MCP_HEADERS, 'mcp-session-id': id } });
    await body?.cancel();
    return status;
  };
  return [
    (await send({ id: 1, method: 'tools/call', params: { name: 'say' } })).status,
    (await send({ method: 'notifications/roots/list_changed' })).status,
    await ask('GET'),
    await ask('DELETE'),
    (await send({ id: 2, method: 'tools/call', params: { name: 'say' } })).status,
  ];
}
const DEAD = [404, 404, 404, 404, 404];

describe('the id of an ended session whose HTTP target keeps the session', () => {
  test('a session id is rejected after DELETE although the HTTP target keeps the session', async () => {
    await using up = await mcpUpstream({ script: keepsSessions });
    await using gate = await gateway(mcpConfig([target(up)]));
    const [session, other] = [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)];
    expect((await session.end()).status).toBe(204);
    expect(up.received.at(-1)).toMatchObject({ verb: 'DELETE', headers: { 'mcp-session-id': 'up-1' } });
    expect(await statusesOf(session)).toEqual(DEAD);
    expect(up.of('tools/call')).toEqual([]);
    expect((await other.request('tools/list')).status).toBe(200);
  });

  test('a session id is rejected while the target has not yet answered the DELETE', async () => {
    const script: Script = ({ verb }) => verb === 'DELETE';
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    const ending = session.end();
    await until(() => up.received.some(({ verb }) => verb === 'DELETE'));
    expect(await statusesOf(session)).toEqual(DEAD);
    expect(up.of('tools/call')).toEqual([]);
    expect((await ending).status).toBe(204);
  });

  test('a session id is rejected after DELETE in a process that had resumed the session', async () => {
    await using up = await mcpUpstream({ script: keepsSessions });
    const yaml = mcpConfig([target(up)], { config: { session: { key: 'ab'.repeat(32) } } });
    await using first = await gateway(yaml);
    await using second = await gateway(yaml);
    const { id } = await openSession(`${first.url}/mcp`);
    const headers = { ...MCP_HEADERS, 'mcp-session-id': id };
    const ask = async (method: string) => (await fetch(`${second.url}/mcp`, { method, headers })).status;
    expect(await ask('DELETE')).toBe(204);
    expect(await ask('GET')).toBe(404);
    expect(await ask('DELETE')).toBe(404);
  });

  test('a session id is rejected after DELETE by a configuration that is loaded later', async () => {
    await using up = await mcpUpstream({ script: keepsSessions });
    await using folder = await temporaryFolder();
    const yaml = (failureMode: string) => mcpConfig([target(up)], { backend: { failureMode } });
    await using gate = await gateway(yaml('failOpen'), { folder: folder.path, live: 'asked' });
    const [before, after] = [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)];
    await before.end();
    writeFileSync(join(folder.path, 'test.yaml'), yaml('failClosed'));
    expect(await gate.live.reload()).toBe(true);
    expect(await statusesOf(before)).toEqual(DEAD);
    expect((await after.end()).status).toBe(204);
    expect(await statusesOf(after)).toEqual(DEAD);
    expect(up.of('tools/call')).toEqual([]);
  });

  test('a session id is rejected after the session has expired by idleness', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      await using up = await mcpUpstream({ script: keepsSessions });
      await using gate = await gateway(mcpConfig([target(up)], { config: { mcp: { sessionTtl: '1ms' } } }));
      const session = await openSession(`${gate.url}/mcp`);
      await until(() => {
        vi.advanceTimersByTime(LIMITS.sessionSweep);
        return up.received.some(({ verb }) => verb === 'DELETE');
      });
      expect(await statusesOf(session)).toEqual(DEAD);
      expect(up.of('tools/call')).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  test('a request that arrives together with the DELETE does not resume the session', async () => {
    await using up = await mcpUpstream({ script: keepsSessions });
    const yaml = mcpConfig([target(up)], { config: { session: { key: 'ab'.repeat(32) } } });
    await using first = await gateway(yaml);
    await using second = await gateway(yaml);
    for (let round = 0; round < 10; round += 1) {
      const { id } = await openSession(`${first.url}/mcp`);
      const session = { ...(await openSession(`${second.url}/mcp`)), id };
      const headers = { ...MCP_HEADERS, 'mcp-session-id': id };
      const ask = (method: string) => fetch(session.url, { method, headers }).then(read);
      const gets = [0, 1, 2].map(() => ask('GET'));
      const end = ask('DELETE');
      expect((await end).status).toBe(204);
      // The streams that had begun end with the session.
      await Promise.all(gets);
      expect((await ask('DELETE')).status).toBe(404);
    }
  });
});
