import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ShownServices } from '../../../src/core/service-figures.ts';
import { chaos } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { isAlive, pidsIn } from '../../kit/is-alive.ts';
import { legacyClient } from '../../kit/legacy-client.ts';
import { answering, CHAT, completion, llmProvider } from '../../kit/llm-provider.ts';
import { INITIALIZE, MCP_HEADERS } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { envelope, MODERN } from '../../kit/modern.ts';
import type { HttpReply } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { freshly, type WorkerGateway, workerGateway } from '../../kit/workers.ts';

type Folder = Awaited<ReturnType<typeof temporaryFolder>>;

let folder: Folder;
let up: Awaited<ReturnType<typeof mcpUpstream>>;
let gate: WorkerGateway;
const mark = (name: string): string => join(folder.path, name);

/** Targets on one route each. */
const route = (path: string, target: object, backend: object = {}) => ({
  name: path,
  matches: [{ path: { pathPrefix: `/${path}` } }],
  backends: [{ mcp: { ...backend, targets: [target] } }],
});

/** A stdio target that notes the process ids of its processes in a file. */
function marked(name: string, more: object = {}) {
  const { stdio, ...rest } = chaos(name, `--mark=${mark(name)}`);
  return { ...rest, stdio: { ...stdio, ...more } };
}

/** Processes of a target that were started, and those that still run. */
function processes(name: string): { started: number; running: number } {
  const pids = pidsIn(mark(name));
  return { started: pids.length, running: pids.filter(isAlive).length };
}

beforeAll(async () => {
  folder = await temporaryFolder();
  up = await mcpUpstream();
  gate = await workerGateway({
    config: { connectionTerminationDeadline: '1s' },
    gateways: {
      default: {
        port: 0,
        routes: [
          route('own', marked('own')),
          route('shared', marked('shared', { shared: true })),
          route('stateless', marked('stateless'), { statefulMode: 'stateless' }),
          route('modern', marked('modern')),
          route('warm', marked('warm', { warm: 3 })),
          route('http', { name: 'up', mcp: { host: up.url } }),
          route('legacy', marked('legacy')),
        ],
      },
    },
  });
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  await up[Symbol.asyncDispose]();
  await folder.remove();
});

const message = (path: string, body: object, headers: Record<string, string> = {}): Promise<HttpReply> =>
  freshly(`${gate.url}/${path}`, {
    method: 'POST',
    headers: { ...MCP_HEADERS, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...body }),
  });

/** Number of sessions that were opened. */
let opened = 0;

/** Opens a session; returns the header that names it. */
async function open(path: string): Promise<{ 'mcp-session-id': string }> {
  opened += 1;
  const { headers } = await message(path, INITIALIZE);
  const session = { 'mcp-session-id': String(headers['mcp-session-id']) };
  await message(path, { method: 'notifications/initialized' }, session);
  return session;
}

const call = (
  path: string,
  session: Record<string, string>,
  name = 'echo',
  id = 1,
  args: object = {},
): Promise<HttpReply> =>
  message(path, { id, method: 'tools/call', params: { name, arguments: args } }, session);

/** Opens sessions until each worker has one. */
async function openOnBoth(path: string): Promise<{ 'mcp-session-id': string }[]> {
  const byWorker = new Map<string, { 'mcp-session-id': string }>();
  while (byWorker.size < 2) {
    const session = await open(path);
    byWorker.set(workerOf(session), session);
    // Opening takes two connections, one of each worker: another one makes it the other's turn.
    await freshly(`${gate.url}/none`);
  }
  return [...byWorker.values()];
}

const workerOf = (session: { 'mcp-session-id': string }): string =>
  session['mcp-session-id'].split('.').at(-1) as string;

describe('an MCP session at a gateway with two workers', () => {
  test('is served on connections of both workers, with one process', async () => {
    const sessions = await openOnBoth('own');
    for (const session of sessions)
      for (let id = 1; id <= 4; id++) {
        const { status, text } = await call('own', session, 'echo', id);
        expect([status, text]).toEqual([200, expect.stringContaining(`"id":${id},"result"`)]);
      }
    expect(processes('own').started).toBe(opened);
  });

  test('gets notifications on a stream that the other worker forwards', async () => {
    for (const session of await openOnBoth('own')) {
      await using events = await openEvents(`${gate.url}/own`, { headers: session });
      const changed = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n';
      await call('own', session, 'emit', 1, { pieces: [Buffer.from(changed).toString('base64')] });
      await events.next(({ method }) => method === 'notifications/tools/list_changed');
    }
  });

  test('ends on whichever connection the client ends it, once', async () => {
    const session = await open('own');
    const end = () => freshly(`${gate.url}/own`, { method: 'DELETE', headers: session });
    expect((await end()).status).toBe(204);
    for (let index = 0; index < 4; index++) expect((await end()).status).toBe(404);
  });

  test('is logged once per request, with the address of the client', async () => {
    const session = await open('own');
    for (let index = 0; index < 4; index++) await call('own/logged', session);
    const lines = (): string[] => gate.accessLog.filter((line) => line.includes('/own/logged'));
    await until(() => lines().length >= 4);
    expect(lines()).toHaveLength(4);
    expect(lines().every((line) => / src\.addr=127\.0\.0\.1:\d+ /.test(line))).toBe(true);
  });

  test('runs a process that sessions share once', async () => {
    const sessions = [await open('shared'), await open('shared'), await open('shared')];
    for (const session of [...sessions, ...sessions])
      expect((await call('shared', session)).status).toBe(200);
    expect(processes('shared').started).toBe(1);
  });

  test('needs one process for all requests without sessions', async () => {
    for (let id = 1; id <= 6; id++) expect((await call('stateless', {}, 'echo', id)).status).toBe(200);
    expect(processes('stateless').started).toBe(1);
  });

  test('divides spare processes among the workers', async () => {
    await until(() => processes('warm').running === 3);
    expect(processes('warm').started).toBe(3);
  });

  test('of the transport HTTP+SSE takes messages on connections of both workers', async () => {
    await using client = await legacyClient(`${gate.url}/legacy/sse`);
    await client.initialize();
    for (let id = 10; id < 14; id++) {
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo' } });
      const headers = { 'content-type': 'application/json' };
      expect((await freshly(client.endpoint, { method: 'POST', headers, body })).status).toBe(202);
      await until(() => client.messages.some((each) => each.id === id));
    }
  });
});

test('requests of revision 2026-07-28 of one caller share one process of a target', async () => {
  const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'echo' };
  for (let id = 1; id <= 6; id++) {
    const params = { name: 'echo', arguments: {}, _meta: envelope() };
    const { status, text } = await message('modern', { id, method: 'tools/call', params }, headers);
    expect([status, text]).toEqual([200, expect.stringContaining('"result"')]);
  }
  expect(processes('modern').started).toBe(1);
});

test('no client can claim an address with the header that workers use among themselves', async () => {
  const session = await open('own');
  for (let index = 0; index < 4; index++)
    await call('own/claimed', { ...session, 'x-agctl-client': '9.9.9.9 1 9.9.9.9 1' });
  const lines = (): string[] => gate.accessLog.filter((line) => line.includes('/own/claimed'));
  await until(() => lines().length === 4);
  expect(lines().join('')).not.toContain('9.9.9.9');
});

describe('when a worker is killed', () => {
  async function killOwner(session: { 'mcp-session-id': string }): Promise<void> {
    const index = Number(workerOf(session)) - 1;
    const before = gate.pids();
    process.kill(before[index] as number, 'SIGKILL');
    await until(() => gate.pids().length === 2 && !gate.pids().includes(before[index] as number), 20_000);
  }

  test('its sessions at HTTP targets continue, also for requests that come meanwhile', async () => {
    const session = await open('http');
    const index = Number(workerOf(session)) - 1;
    const before = gate.pids();
    process.kill(before[index] as number, 'SIGKILL');
    await until(() => gate.pids().length === 1);
    const { status } = await call('http', session, 'say');
    expect(status).toBe(200);
    for (let id = 2; id < 6; id++) expect((await call('http', session, 'say', id)).status).toBe(200);
    expect(up.of('initialize').length).toBe(1);
  });

  test('its sessions with processes are gone: 404, and the processes end', async () => {
    const session = await open('own');
    const { running } = processes('own');
    await killOwner(session);
    for (let index = 0; index < 4; index++) expect((await call('own', session)).status).toBe(404);
    await until(() => processes('own').running < running);
  });
});

describe('failover with two workers', () => {
  const failing = async (eviction: object) => {
    const first = await llmProvider(answering('{"error":{}}', 500));
    const second = await llmProvider(answering(completion('Hello.')));
    const entry = (name: string, { address }: { address: string }, more: object = {}) => ({
      name,
      provider: 'oaiCompat',
      params: { baseUrl: `http://${address}/v1` },
      ...more,
    });
    const models = [entry('first', first, { health: { eviction } }), entry('second', second)];
    const targets = [
      { model: 'first', priority: 0 },
      { model: 'second', priority: 1 },
    ];
    const llm = { port: 0, models, virtualModels: [{ name: 'safe', routing: { failover: { targets } } }] };
    const served = await workerGateway({ config: {}, llm });
    return { first, second, served };
  };

  test.each([
    ['the first failure', {}, 1],
    ['three failures in a row', { consecutiveFailures: 3 }, 3],
  ])('%s of calls through any worker evict a model for all', async (_what, eviction, expected) => {
    const { first, second, served } = await failing({ duration: '60s', ...eviction });
    const chat = () =>
      freshly(`${served.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...CHAT, model: 'safe' }),
      });
    const statuses: number[] = [];
    for (let index = 0; index < 8; index++) statuses.push((await chat()).status);
    expect(statuses).toEqual(Array(8).fill(200));
    expect([first.received.length, second.received.length]).toEqual([expected, 8]);
    await served[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
  });
});

test('calls of a target that several workers have handled are counted together', async () => {
  const before = Date.now();
  const calls = async (): Promise<number> => {
    const { since, services } = (await (await fetch(`${gate.admin}/api/services`)).json()) as ShownServices;
    expect(since).toBeLessThanOrEqual(before);
    return services.find(({ kind, name }) => kind === 'target' && name === 'stateless')?.calls ?? 0;
  };
  const start = await calls();
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, id) =>
      message('stateless', { id, method: 'tools/call', params: { name: 'echo', arguments: { text: 'x' } } }),
    ),
  );
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  await until(async () => (await calls()) === start + 20);
});
