import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { freshly, type WorkerGateway, workerGateway } from '../../kit/workers.ts';

const answer = (body: string, policies: object = {}, path = `/${body}`) => ({
  name: body,
  matches: [{ path: { pathPrefix: path } }],
  policies: { ...policies, directResponse: { status: 200, body } },
});

const LIMIT = { maxTokens: 100, tokensPerFill: 100, fillInterval: '1h' };
const CONFIG = {
  config: { connectionTerminationDeadline: '1s' },
  gateways: {
    default: {
      port: 0,
      routes: [
        answer('plain'),
        answer('limited', { localRateLimit: [LIMIT] }),
        answer('keyed', { localRateLimit: [{ ...LIMIT, key: 'request.headers["x-user"]' }] }),
      ],
    },
  },
};

let gate: WorkerGateway;
beforeAll(async () => {
  gate = await workerGateway(CONFIG);
});
afterAll(() => gate[Symbol.asyncDispose]());

const admin = async (path: string, init?: RequestInit): Promise<string> =>
  (await fetch(`${gate.admin}${path}`, init)).text();
const adminJson = async (path: string) => JSON.parse(await admin(path));

/** Opens a trace; resolves when all workers take part in it. */
async function openTrace(query: string): Promise<{ readonly ended: Promise<string> }> {
  const response = await fetch(`${gate.admin}/debug/trace${query}`);
  let text = '';
  const ended = (async () => {
    for await (const chunk of response.body as ReadableStream<Uint8Array>) text += Buffer.from(chunk);
    return text;
  })();
  await until(() => text.includes(': ready'));
  return { ended };
}

/** Requests that each worker has handled, by their numbers in the metrics of the worker. */
async function handled(): Promise<number[]> {
  const counts: number[] = [];
  for (const worker of gate.pool.processes) {
    const requests = (await worker.metrics()).find(({ name }) => name === 'gw_requests');
    counts.push((requests?.values ?? []).reduce((sum, { value }) => sum + value, 0));
  }
  return counts;
}

describe('a gateway with two workers', () => {
  test('divides 200 connections evenly', async () => {
    const before = await handled();
    for (let round = 0; round < 20; round++)
      await Promise.all(Array.from({ length: 10 }, () => freshly(`${gate.url}/plain`)));
    const after = await handled();
    const shares = after.map((count, index) => count - (before[index] ?? 0));
    expect(shares[0] ?? 0).toBeGreaterThanOrEqual(80);
    expect(shares[1] ?? 0).toBeGreaterThanOrEqual(80);
    expect((shares[0] ?? 0) + (shares[1] ?? 0)).toBe(200);
  });

  test('admits exactly the requests of one rate limit under parallel load', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    const replies = await Promise.all(
      Array.from({ length: 300 }, () => send(`${gate.url}/limited`, { agent })),
    );
    agent.destroy();
    const statuses = replies.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(100);
    expect(statuses.filter((status) => status === 429)).toHaveLength(200);
    expect(replies.find(({ status }) => status === 429)?.headers).toMatchObject({
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '0',
    });
    const remaining = replies
      .filter(({ status }) => status === 200)
      .map(({ headers }) => Number(headers['x-ratelimit-remaining']));
    expect(remaining.sort((a, b) => a - b)).toEqual([...Array(100).keys()]);
  });

  test('counts down one bucket for each key', async () => {
    const remaining: unknown[] = [];
    for (const user of ['ann', 'ann', 'bob', 'ann', 'bob']) {
      const { headers } = await freshly(`${gate.url}/keyed`, { headers: { 'x-user': user } });
      remaining.push(headers['x-ratelimit-remaining']);
    }
    expect(remaining).toEqual(['99', '98', '99', '97', '98']);
  });

  test('adds up the metrics of its workers', async () => {
    const before = await handled();
    for (let index = 0; index < 6; index++) await freshly(`${gate.url}/plain`);
    await until(async () => (await handled()).reduce((a, b) => a + b) === before.reduce((a, b) => a + b) + 6);
    const text = await admin('/metrics');
    const counts = [...text.matchAll(/^gw_requests_total\{.*\} (\d+)$/gm)].map(([, count]) => Number(count));
    expect(counts.reduce((a, b) => a + b)).toBe((await handled()).reduce((a, b) => a + b));
    expect(text).toContain('\ngw_workers 2\n');
    expect(text).toMatch(/gw_request_duration_seconds_count\{[^}]*route="default\/plain"/);
    expect(text.match(/^gw_build_info/gm)).toHaveLength(1);
  });

  test('writes whole access-log lines of both workers', async () => {
    await Promise.all(Array.from({ length: 40 }, (_, index) => freshly(`${gate.url}/plain?n=${index}`)));
    // Lines of earlier requests may still arrive.
    const own = (): readonly string[] => gate.accessLog.filter((line) => line.includes('/plain?n='));
    await until(() => own().length === 40);
    const lines = own();
    expect(lines.every((line) => /^\S+\tinfo\trequest .* http\.status=200 .*\n$/.test(line))).toBe(true);
    expect(new Set(lines.map((line) => /n=(\d+)/.exec(line)?.[1]))).toEqual(
      new Set([...Array(40).keys()].map(String)),
    );
  });

  test('lists the last requests of both workers in the order of their end', async () => {
    for (let index = 0; index < 6; index++) await freshly(`${gate.url}/plain/${index}`);
    type Listed = { id: number; time: string; fields: Record<string, string> };
    const listed = async (): Promise<Listed[]> =>
      (await adminJson('/api/requests')).requests.filter(({ fields }: Listed) =>
        /^\/plain\/\d$/.test(fields['http.path'] as string),
      );
    await until(async () => (await listed()).length === 6);
    const requests = await listed();
    // Requests that end within a millisecond have no order.
    expect(requests.map(({ fields }) => fields['http.path']).sort()).toEqual(
      Array.from({ length: 6 }, (_, index) => `/plain/${index}`),
    );
    expect(requests.map(({ time }) => time)).toEqual(requests.map(({ time }) => time).sort());
    expect(new Set(requests.map(({ id }) => id)).size).toBe(6);
  });

  test('traces the next requests, whichever worker handles them', async () => {
    const trace = await openTrace('?count=4');
    for (let index = 0; index < 6; index++) await freshly(`${gate.url}/plain/trace${index}`);
    const text = await trace.ended;
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data as string));
    expect(new Set(events.map(({ requestId }) => requestId))).toEqual(new Set(['1', '2', '3', '4']));
    // Requests that end at two workers within a millisecond have no order: these need not be the first four.
    expect(new Set(text.match(/trace\d/g)).size).toBe(4);
  });

  test('traces one request without an id', async () => {
    const trace = await openTrace('');
    await freshly(`${gate.url}/plain/single`);
    await freshly(`${gate.url}/plain/other`);
    const text = await trace.ended;
    // Requests at two workers within a millisecond have no order.
    expect(['/plain/single', '/plain/other'].filter((path) => text.includes(path))).toHaveLength(1);
    expect(text).not.toContain('requestId');
  });

  test('shows both workers in /debug/tasks, /memory and a profile', async () => {
    const { workload } = await adminJson('/debug/tasks');
    expect(workload.filter((line: string) => line.startsWith('worker'))).toEqual(['worker 1', 'worker 2']);
    const memory = await adminJson('/memory');
    expect(memory.processes.map(({ name }: { name: string }) => name)).toEqual([
      'primary',
      'worker 1',
      'worker 2',
    ]);
    const resident = memory.processes.map(
      (each: { allocation_stats: { resident: number } }) => each.allocation_stats.resident,
    );
    expect(memory.allocation_stats.resident).toBe(resident[0] + resident[1] + resident[2]);
    const places = memory.bounds
      .filter(({ name }: { name: string }) => name === 'connections')
      .map(({ at }: { at: string }) => at);
    expect(places).toEqual(['worker 1: default', 'worker 2: default']);
    const profile = fetch(`${gate.admin}/debug/pprof/profile?seconds=1&frequency=1000`);
    const isDone = profile.then(() => true);
    const load = async (): Promise<void> => {
      while (!(await Promise.race([isDone, freshly(`${gate.url}/plain`).then(() => false)])));
    };
    await load();
    const names = Buffer.from(await (await profile).arrayBuffer()).toString('latin1');
    expect(names).toContain('worker 1');
    expect(names).toContain('worker 2');
  });

  test('changes the log level of both workers', async () => {
    expect(await admin('/logging?level=trace', { method: 'POST' })).toContain('trace');
    const isTraced = (): number => gate.log.filter((line) => /\ttrace\t/.test(line)).length;
    await until(async () => {
      await freshly(`${gate.url}/plain`);
      return isTraced() > 0;
    });
    await admin('/logging?level=info,request=info', { method: 'POST' });
  });

  test('shows the requests of both workers in the overview', async () => {
    const overview = await adminJson('/api/overview');
    expect(overview).toMatchObject({ openRequests: 0, gateways: [{ name: 'default' }] });
    expect(await adminJson('/config_dump')).toMatchObject({
      config: { numWorkerThreads: expect.any(Number) },
    });
  });
});
