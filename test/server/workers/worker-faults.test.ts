import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WorkerProcess } from '../../../src/server/workers/worker-process.ts';
import { chaos } from '../../kit/config.ts';
import { isAlive } from '../../kit/is-alive.ts';
import { INITIALIZE, MCP_HEADERS } from '../../kit/mcp.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { freshly, type WorkerGateway, workerGateway } from '../../kit/workers.ts';

const BODY = { name: 'hello', policies: { directResponse: { status: 200, body: 'hello' } } };
const config = (routes: readonly object[] = [BODY]) => ({
  config: { connectionTerminationDeadline: '2s' },
  gateways: { default: { port: 0, routes } },
});

/**
 * Sends requests on connections of their own until the returned function is called, which resolves to the outcomes. With
 * pauses: faults must meet requests in flight, and workers that start need the processor.
 */
function load(url: string): () => Promise<readonly string[]> {
  const outcomes: string[] = [];
  let isOver = false;
  const senders = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      outcomes.push(
        await freshly(url).then(
          ({ status }) => String(status),
          (error: { code?: string }) => String(error.code),
        ),
      );
      await setTimeout(5);
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(senders);
    return outcomes;
  };
}

async function replaced(gate: WorkerGateway, before: readonly number[], which: number): Promise<void> {
  await until(() => gate.pids().length === 2 && !gate.pids().includes(before[which] as number), 20_000);
}

/** Preloads a module that runs `code` in a worker when it gets the signal: to block it, exhaust its memory, or throw. */
const misbehaving = (signal: string, code: string): Record<string, string> => ({
  NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(`process.on('${signal}', () => { ${code} });`)}`,
});

describe('a worker that is killed', () => {
  let gate: WorkerGateway;
  beforeAll(async () => {
    gate = await workerGateway(config());
  });
  afterAll(() => gate[Symbol.asyncDispose]());

  test('takes only its own connections with it and is replaced, each in turn', async () => {
    const stop = load(gate.url);
    const lost: number[] = [];
    for (const which of [0, 1]) {
      const before = gate.pids();
      process.kill(before[which] as number, 'SIGKILL');
      await replaced(gate, before, which);
      lost.push(gate.log.filter((line) => line.includes('a worker has ended')).length);
    }
    const outcomes = await stop();
    expect(lost).toEqual([1, 2]);
    expect(outcomes.filter((each) => each === '200').length).toBeGreaterThan(20);
    // One request per connection: no more than those that the two workers had.
    expect(outcomes.filter((each) => each !== '200' && each !== 'ECONNRESET')).toEqual([]);
    expect(outcomes.filter((each) => each === 'ECONNRESET').length).toBeLessThanOrEqual(16);
    expect(await (await fetch(`${gate.admin}/metrics`)).text()).toContain('\ngw_worker_restarts_total 2\n');
  });

  test('does not lower the counters that were read before, and files may change while another one starts', async () => {
    const total = async (): Promise<number> => {
      const text = await (await fetch(`${gate.admin}/metrics`)).text();
      return Number(/^gw_requests_total\{.*\} (\d+)$/m.exec(text)?.[1]);
    };
    const earlier = await total();
    for (let index = 0; index < 10; index++) await freshly(gate.url);
    await until(async () => (await total()) === earlier + 10);
    const before = gate.pids();
    process.kill(before[0] as number, 'SIGKILL');
    // A file that changes while a worker starts does not break it.
    await until(() => {
      void gate.pool.filesChanged(['/keys.json']);
      return gate.pids().length === 2 && !gate.pids().includes(before[0] as number);
    }, 20_000);
    expect(await total()).toBe(earlier + 10);
    expect(gate.log.join('')).not.toContain('internal error');
  });

  test('leaves connections to the other one while both are replaced', async () => {
    const before = gate.pids();
    for (const pid of before) process.kill(pid, 'SIGKILL');
    await until(() => gate.pids().length === 0);
    // It waits in the primary process for a worker.
    expect((await freshly(gate.url)).status).toBe(200);
    await until(() => gate.pids().length === 2, 20_000);
  });
});

test('a worker in an endless loop gets no further connections and is killed and replaced', async () => {
  await using gate = await workerGateway(config(), {
    limits: { workerPingInterval: 100, workerSilence: 1_000 },
    env: misbehaving('SIGUSR2', 'for (;;);'),
  });
  const before = gate.pids();
  process.kill(before[0] as number, 'SIGUSR2');
  const stop = load(gate.url);
  await replaced(gate, before, 0);
  const outcomes = await stop();
  expect(gate.log.some((line) => line.includes('a worker does not answer and is killed'))).toBe(true);
  expect(outcomes.filter((each) => each === '200').length).toBeGreaterThan(20);
  // Those that it had when the loop began.
  expect(outcomes.filter((each) => each !== '200').length).toBeLessThanOrEqual(8);
});

test('a worker that runs out of memory is replaced', async () => {
  const hoard = 'const all = []; for (;;) all.push(new Array(1000).fill({}));';
  const { NODE_OPTIONS } = misbehaving('SIGUSR2', hoard);
  await using gate = await workerGateway(config(), {
    env: { NODE_OPTIONS: `--max-old-space-size=96 ${NODE_OPTIONS}` },
  });
  const before = gate.pids();
  process.kill(before[1] as number, 'SIGUSR2');
  await replaced(gate, before, 1);
  expect(gate.log.join('')).toContain('JavaScript heap out of memory');
  expect((await freshly(gate.url)).status).toBe(200);
});

test('a worker with an uncaught error finishes its requests, and another one takes its place', async () => {
  let release: (() => void) | undefined;
  await using backend = await httpUpstream((_, response) => {
    release = () => response.end('late');
  });
  const slowRoute = config([{ name: 'slow', backends: [{ host: backend.address }] }]);
  // Longer than another worker takes to start on a busy machine.
  slowRoute.config.connectionTerminationDeadline = '30s';
  await using gate = await workerGateway(slowRoute, {
    env: misbehaving('SIGUSR2', "setImmediate(() => { throw new Error('on command'); });"),
  });
  const pids = gate.pids();
  const slow = freshly(gate.url);
  await until(() => release !== undefined);
  const open = await Promise.all(
    gate.pool.processes.map(async (each) => (await each.activity()).openRequests),
  );
  const which = open.indexOf(1);
  process.kill(pids[which] as number, 'SIGUSR2');
  await replaced(gate, pids, which);
  expect(isAlive(pids[which] as number)).toBe(true);
  release?.();
  expect((await slow).text).toBe('late');
  await until(() => !isAlive(pids[which] as number));
  expect(gate.log.join('')).toContain('internal error, stopping');
});

test('a shutdown finishes the open requests of all workers', async () => {
  const releases: (() => void)[] = [];
  await using backend = await httpUpstream((_, response) => {
    releases.push(() => response.end('done'));
  });
  const gate = await workerGateway(config([{ name: 'slow', backends: [{ host: backend.address }] }]));
  const replies = [freshly(gate.url), freshly(gate.url), freshly(gate.url)];
  await until(() => releases.length === 3);
  const pids = gate.pids();
  const closed = gate[Symbol.asyncDispose]();
  await expect(freshly(gate.url)).rejects.toThrow();
  for (const release of releases) release();
  expect((await Promise.all(replies)).map(({ text }) => text)).toEqual(['done', 'done', 'done']);
  await closed;
  expect(pids.filter(isAlive)).toEqual([]);
});

describe('a reload with workers', () => {
  const saying = (body: string, more: object = {}) =>
    config([{ name: 'a', policies: { directResponse: { status: 200, body } }, ...more }]);

  /** What all workers answer. */
  const answers = async (): Promise<Set<string>> => {
    const all = await Promise.all(Array.from({ length: 6 }, () => freshly(gate.url)));
    return new Set(all.map(({ text }) => text));
  };

  let gate: WorkerGateway;
  beforeAll(async () => {
    gate = await workerGateway(saying('0'));
  });
  afterAll(() => gate[Symbol.asyncDispose]());

  test('loses no request in 30 reloads, and activates each configuration in all workers', async () => {
    const stop = load(gate.url);
    for (let index = 1; index <= 30; index++) await gate.reload(saying(String(index)));
    expect(new Set(await stop())).toEqual(new Set(['200']));
    expect(await answers()).toEqual(new Set(['30']));
  });

  test('activates it in no worker if one refuses it', async () => {
    const accept = refusePrepare(gate.pool.processes[1]);
    await expect(gate.reload(saying('refused'))).rejects.toThrow('the file is gone');
    accept();
    expect(await answers()).toEqual(new Set(['30']));
  });

  test('opens and closes ports, also for a worker that starts later', async () => {
    const two = {
      config: {},
      gateways: { default: { port: 0, routes: [BODY] }, second: { port: 0, routes: [BODY] } },
    };
    await gate.reload(two);
    const before = gate.pids();
    process.kill(before[0] as number, 'SIGKILL');
    await replaced(gate, before, 0);
    const urls = gate.pool.listeners.map(({ port }) => `http://127.0.0.1:${port}`);
    for (const url of [...urls, ...urls, ...urls, ...urls]) expect((await freshly(url)).text).toBe('hello');
    await gate.reload(config());
    await expect(freshly(urls[1] as string)).rejects.toThrow();
    expect((await freshly(urls[0] as string)).text).toBe('hello');
  });

  test('waits for a worker that is being replaced, which then has the new configuration', async () => {
    const before = gate.pids();
    process.kill(before[0] as number, 'SIGKILL');
    await until(() => gate.pids().length === 1);
    await gate.reload(saying('two'));
    await replaced(gate, before, 0);
    expect(await answers()).toEqual(new Set(['two']));
  });
});

/** As if only this worker could not read a file of the configuration, until the returned function is called. */
function refusePrepare(worker: WorkerProcess | undefined): () => void {
  const link = worker?.link as unknown as { call(...args: unknown[]): Promise<unknown> };
  const call = link.call.bind(link);
  link.call = async (...args) => {
    const result = await call(...args);
    return args[0] === 'prepare' ? 'the file is gone' : result;
  };
  return () => {
    link.call = call;
  };
}

test('calls that other workers forward get the error of a shutdown at its deadline', async () => {
  const target = chaos('slow');
  const routes = [
    { backends: [{ mcp: { targets: [{ ...target, stdio: { ...target.stdio, shared: true } }] } }] },
  ];
  const gate = await workerGateway({
    config: { connectionTerminationDeadline: '500ms' },
    gateways: { default: { port: 0, routes } },
  });
  const headers = MCP_HEADERS;
  const message = (body: object, session: Record<string, string> = {}) =>
    freshly(gate.url, { method: 'POST', headers: { ...headers, ...session }, body: JSON.stringify(body) });
  const { headers: opened } = await message(INITIALIZE);
  const session = { 'mcp-session-id': String(opened['mcp-session-id']) };
  const calls = [1, 2, 3, 4].map((id) =>
    message({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'hang' } }, session),
  );
  const open = async (): Promise<number> => {
    const all = await Promise.all(gate.pool.processes.map((each) => each.activity()));
    return all.reduce((sum, { openRequests }) => sum + openRequests, 0);
  };
  // Two of them twice: at the worker that forwards them, too.
  await until(async () => (await open()) === 6);
  await gate[Symbol.asyncDispose]();
  for (const { text } of await Promise.all(calls)) expect(text).toContain('-32603');
});

test('the admin server shows the other workers while one is blocked', async () => {
  await using gate = await workerGateway(config(), {
    limits: { workerStopGrace: 100, workerSilence: 15_000 },
    // Blocked without using the processor, which the requests below need.
    env: misbehaving('SIGUSR2', 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);'),
  });
  for (let index = 0; index < 4; index++) await freshly(gate.url);
  const admin = async (path: string): Promise<string> => (await fetch(`${gate.admin}${path}`)).text();
  process.kill(gate.pids()[0] as number, 'SIGUSR2');
  // Until the worker gets to the signal, it answers.
  await until(async () => (await admin('/debug/tasks')).includes('does not answer'));
  const [tasks, memory, metrics] = await Promise.all(['/debug/tasks', '/memory', '/metrics'].map(admin));
  expect(JSON.parse(tasks as string).workload).toEqual([
    'worker 1',
    '  does not answer',
    'worker 2',
    expect.stringContaining('gateway default'),
  ]);
  expect(JSON.parse(memory as string).processes).toMatchObject([{ name: 'primary' }, { name: 'worker 2' }]);
  expect(metrics).toContain('gw_requests_total');
});
