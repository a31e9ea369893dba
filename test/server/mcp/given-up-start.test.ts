import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { isAlive, pidsIn } from '../../kit/is-alive.ts';
import { INITIALIZE, MCP_HEADERS, type McpSession, openSession, post } from '../../kit/mcp.ts';
import { modern } from '../../kit/modern.ts';
import { until } from '../../kit/until.ts';

// Clients give up on `initialize` before `npx` or `uvx` has started a server, and try again: claude-code, opencode, hermes-agent and
// other clients with limits of 1 to 10 s. Each attempt started the processes anew.

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);
let files = 0;
const newFile = (): string => join(folder, `file-${++files}`);

/** A target whose processes write their ids to `mark`, and answer `initialize` once `gate` is there. */
function slow(name = 'a', more: object = {}) {
  const [mark, opened] = [newFile(), newFile()];
  const { stdio } = chaos(name, `--mark=${mark}`, `--starts-with=${opened}`);
  return {
    target: { name, stdio: { ...stdio, ...more } },
    started: (): number[] => pidsIn(mark),
    living(): number[] {
      return this.started().filter(isAlive);
    },
    open: () => writeFileSync(opened, ''),
  };
}

interface Attempt {
  readonly headers?: Record<string, string>;
  readonly initialize?: object;
}

/** Initializes, and leaves once the processes have started. */
async function giveUp(
  url: string,
  hasStarted: () => boolean,
  { headers = {}, initialize = INITIALIZE }: Attempt = {},
): Promise<void> {
  const leave = new AbortController();
  const left = fetch(url, {
    method: 'POST',
    headers: { ...MCP_HEADERS, ...headers },
    body: JSON.stringify(initialize),
    signal: leave.signal,
  }).catch(() => undefined);
  await until(hasStarted);
  leave.abort();
  await left;
}

const pidOf = async (session: McpSession, tool = 'pid'): Promise<number> =>
  Number((await session.request('tools/call', { name: tool })).result.content[0].text);

describe('a client that gives up while its session starts', () => {
  test('connects to the process of its first attempt', async () => {
    const server = slow();
    await using gate = await gateway(mcpConfig([server.target]));
    const url = `${gate.url}/mcp`;
    await giveUp(url, () => server.started().length === 1);
    await gate.accessLine(1);
    for (let attempt = 2; attempt <= 3; attempt += 1) {
      const impatient = post(url, INITIALIZE, {}, { signal: AbortSignal.timeout(200) });
      await expect(impatient).rejects.toThrow('timeout');
      await gate.accessLine(attempt);
    }
    server.open();
    const session = await openSession(url);
    expect(await pidOf(session)).toBe(server.started()[0]);
    expect(server.started()).toHaveLength(1);
    await session.end();
    await until(() => server.living().length === 0);
  });

  test('connects to the processes of three targets after they have started meanwhile', async () => {
    const servers = ['a', 'b', 'c'].map((name) => slow(name));
    await using gate = await gateway(mcpConfig(servers.map(({ target }) => target)));
    const url = `${gate.url}/mcp`;
    await giveUp(url, () => servers.every(({ started }) => started().length === 1));
    await gate.accessLine(1);
    for (const { open } of servers) open();
    const session = await openSession(url);
    const { result } = await session.request('tools/list');
    expect(result.tools.map(({ name }: { name: string }) => name).toSorted()).toEqual([
      'a_echo',
      'b_echo',
      'c_echo',
    ]);
    for (const [index, { started }] of servers.entries())
      expect(await pidOf(session, `${'abc'[index]}_pid`)).toBe(started()[0]);
    // The server has been told that its client is initialized, once.
    const received = (await session.request('tools/call', { name: 'a_received' })).result.content[0].text;
    expect(received.split('notifications/initialized')).toHaveLength(2);
  });

  test('finds the process that all sessions share', async () => {
    const server = slow('a', { shared: true });
    await using gate = await gateway(mcpConfig([server.target]));
    await giveUp(`${gate.url}/mcp`, () => server.started().length === 1);
    await gate.accessLine(1);
    server.open();
    expect(await pidOf(await openSession(`${gate.url}/mcp`))).toBe(server.started()[0]);
  });

  test('finds its process in revision 2026-07-28', async () => {
    const server = slow();
    await using gate = await gateway(mcpConfig([server.target]), { limits: { discoverTimeout: 100 } });
    const url = `${gate.url}/mcp`;
    const { signal } = { signal: AbortSignal.timeout(300) };
    await expect(
      Promise.race([
        modern(url, 'tools/list'),
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ]),
    ).rejects.toThrow();
    await until(() => server.started().length === 1);
    server.open();
    expect((await modern(url, 'tools/list')).result.tools).toHaveLength(1);
    expect(server.started()).toHaveLength(1);
  });

  const initialize = (params: object): object => ({
    ...INITIALIZE,
    params: { ...INITIALIZE.params, ...params },
  });
  test.each<[string, Attempt, Attempt]>([
    [
      'another credential',
      { headers: { authorization: 'Bearer a' } },
      { headers: { authorization: 'Bearer b' } },
    ],
    ['no credential', { headers: { 'x-api-key': 'a' } }, {}],
    ['another header of its own', { headers: { 'x-tenant': 'a' } }, { headers: { 'x-tenant': 'b' } }],
    ['other capabilities', {}, { initialize: initialize({ capabilities: {} }) }],
    ['another name', {}, { initialize: initialize({ clientInfo: { name: 'other', version: '1' } }) }],
    ['another revision', {}, { initialize: initialize({ protocolVersion: '2025-11-25' }) }],
  ])('does not pass its process on to a client with %s', async (_what, first, second) => {
    const server = slow();
    await using gate = await gateway(mcpConfig([server.target]));
    const url = `${gate.url}/mcp`;
    await giveUp(url, () => server.started().length === 1, first);
    await gate.accessLine(1);
    server.open();
    const session = await openSession(url, second.headers, second.initialize);
    expect(await pidOf(session)).toBe(server.started()[1]);
    const own = await openSession(url, { ...first.headers, 'x-request-id': 'another' }, first.initialize);
    expect(await pidOf(own)).toBe(server.started()[0]);
  });

  test('gives its process to one of two clients that connect at once', async () => {
    const server = slow();
    await using gate = await gateway(mcpConfig([server.target]));
    const url = `${gate.url}/mcp`;
    await giveUp(url, () => server.started().length === 1);
    await gate.accessLine(1);
    server.open();
    const sessions = await Promise.all([openSession(url), openSession(url)]);
    const pids = await Promise.all(sessions.map((session) => pidOf(session)));
    expect(new Set(pids).size).toBe(2);
    expect(pids).toContain(server.started()[0]);
  });
});

describe('processes of a session whose client has left while it started', () => {
  test('are stopped after a time', async () => {
    const server = slow();
    await using gate = await gateway(mcpConfig([server.target]), { limits: { keptStartTime: 1_500 } });
    await giveUp(`${gate.url}/mcp`, () => server.started().length === 1);
    expect(server.living()).toHaveLength(1);
    await until(() => server.living().length === 0);
  });

  test('are replaced by those of later ones beyond a number', async () => {
    const server = slow();
    await using gate = await gateway(mcpConfig([server.target]), { limits: { keptStarts: 2 } });
    for (let client = 1; client <= 4; client += 1) {
      await giveUp(`${gate.url}/mcp`, () => server.started().length === client, {
        headers: { 'x-client': String(client) },
      });
      await gate.accessLine(client);
    }
    const all = server.started();
    await until(() => server.living().length === 2);
    expect(server.living()).toEqual(all.slice(2));
  });

  test('are stopped for those of another client at maxChildren', async () => {
    const server = slow();
    await using gate = await gateway(mcpConfig([server.target], { config: { mcp: { maxChildren: 1 } } }));
    const url = `${gate.url}/mcp`;
    await giveUp(url, () => server.started().length === 1);
    await gate.accessLine(1);
    server.open();
    const other = await openSession(url, { 'x-client': 'other' });
    expect(await pidOf(other)).toBe(server.started()[1]);
    expect(server.living()).toHaveLength(1);
  });

  test('make room for another session at maxSessions', async () => {
    const server = slow();
    await using gate = await gateway(mcpConfig([server.target], { config: { mcp: { maxSessions: 1 } } }));
    const url = `${gate.url}/mcp`;
    await giveUp(url, () => server.started().length === 1);
    await gate.accessLine(1);
    server.open();
    expect(await pidOf(await openSession(url, { 'x-client': 'other' }))).toBe(server.started()[1]);
  });

  test('end with the gateway', async () => {
    const server = slow();
    const gate = await gateway(mcpConfig([server.target]));
    await giveUp(`${gate.url}/mcp`, () => server.started().length === 1);
    await gate.close();
    expect(server.living()).toEqual([]);
  });
});
