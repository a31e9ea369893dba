import { describe, expect, test } from 'vitest';
import type { Overview } from '../../src/core/overview.ts';
import { chaos, mcpConfig } from '../kit/config.ts';
import { openEvents } from '../kit/event-stream.ts';
import { gateway } from '../kit/gateway.ts';
import { openSession } from '../kit/mcp.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { httpUpstream } from '../kit/upstream.ts';
import { covers, verifies } from '../kit/verifies.ts';

covers('gateway.service.8.admin');

const dead = { name: 'dead', mcp: { host: 'http://127.0.0.1:1/mcp' } };

interface Answers {
  readonly workload: readonly string[];
  readonly admin: readonly string[];
  readonly openRequests: number;
  readonly allocation_stats: { readonly heap_used: number; readonly resident: number };
  readonly allocator: {
    readonly comparable: { readonly mapped_bytes: number; readonly retained_bytes: number };
  };
  readonly bounds: readonly {
    readonly name: string;
    readonly used?: number;
    readonly max: number;
    readonly keepsLatest?: boolean;
  }[];
  readonly total: number;
  readonly requests: readonly { readonly id: number; readonly fields: Readonly<Record<string, unknown>> }[];
}

async function json(url: string): Promise<Answers> {
  return JSON.parse((await send(url)).text) as Answers;
}

describe('runtime state', () => {
  verifies('gateway.admin.tasks', 'the admin server lists open requests, sessions and targets', async () => {
    const { gateways, ...config } = JSON.parse(mcpConfig([chaos('a'), dead]));
    const listened = { port: 0, listeners: [{ name: 'main' }] };
    const routes = [{ ...gateways.default.routes[0], gateways: 'default' }];
    await using running = await gateway(
      JSON.stringify({ ...config, gateways: { default: listened }, routes }),
      { admin: true },
    );
    const session = await openSession(`${running.url}/mcp`);
    await using call = await openEvents(`${running.url}/mcp`, {
      session: session.id,
      message: {
        id: 1,
        method: 'tools/call',
        params: { name: 'a_progress', arguments: { steps: 1000, ms: 50 } },
      },
    }).catch(() => openEvents(`${running.url}/mcp`, { session: session.id }));
    expect(call.status).toBe(200);
    const { workload, admin } = await json(`${running.admin}/debug/tasks`);
    expect(workload[0]).toBe(`gateway default on port ${running.port}`);
    expect(workload[1]).toMatch(
      /^ {2}(?:POST|GET) \/mcp from 127\.0\.0\.1, route default\/route0.* for \d+ ms$/,
    );
    expect(workload).toContain('mcp backend routes.0.backends.0.mcp: 1 session');
    expect(workload).toContain('  target a: ready, 1 connection');
    expect(workload.at(-1)).toMatch(/^ {2}target dead: failing, 0 connections: .+/);
    expect(admin[0]).toBe('admin server: 0 streams');
    call.close();
    await until(async () => (await json(`${running.admin}/api/overview`)).openRequests === 0);
  });

  test('the overview shows how many tools each of several targets lists', async () => {
    await using running = await gateway(
      mcpConfig([chaos('a', '--tools=echo,slow'), chaos('b', '--tools=echo')]),
      { admin: true },
    );
    const session = await openSession(`${running.url}/mcp`);
    await session.request('tools/list', {});
    const { text } = await send(`${running.admin}/api/overview`);
    const { gateways } = JSON.parse(text) as Overview;
    expect(gateways[0]?.routes[0]?.backends[0]?.targets?.map(({ name, tools }) => [name, tools])).toEqual([
      ['a', 2],
      ['b', 1],
    ]);
    await session.end();
    const later = JSON.parse((await send(`${running.admin}/api/overview`)).text) as Overview;
    expect(later.gateways[0]?.routes[0]?.backends[0]?.targets?.map(({ toolNames }) => toolNames)).toEqual([
      ['echo', 'slow'],
      ['echo'],
    ]);
  });

  verifies(
    'gateway.admin.memory',
    '/memory shows memory and every bounded buffer with its use and limit',
    async () => {
      await using running = await gateway(mcpConfig([chaos('a')]), { admin: true });
      await openSession(`${running.url}/mcp`);
      const memory = await json(`${running.admin}/memory`);
      expect(memory.allocation_stats.heap_used).toBeGreaterThan(1_000_000);
      expect(memory.allocation_stats.resident).toBeGreaterThan(memory.allocation_stats.heap_used);
      const { mapped_bytes, retained_bytes } = memory.allocator.comparable;
      expect(retained_bytes).toBeGreaterThan(0);
      expect(retained_bytes).toBeLessThan(mapped_bytes);
      const bounds = new Map(memory.bounds.map((bound) => [bound.name, bound]));
      expect(bounds.get('mcp.sessions')).toEqual({
        name: 'mcp.sessions',
        at: 'gateways.default.routes.0.backends.0.mcp',
        used: 1,
        max: 5000,
      });
      expect(bounds.get('mcp.children')).toEqual({ name: 'mcp.children', used: 1, max: 64 });
      expect(bounds.get('connections')?.used).toBeGreaterThan(0);
      for (const { name, used = 0, max } of memory.bounds) expect(used, name).toBeLessThanOrEqual(max);
      // What is full in the long run, and loses nothing by that.
      const latest = memory.bounds.filter(({ keepsLatest }) => keepsLatest === true).map(({ name }) => name);
      expect(latest).toEqual([
        'mcp.endedSessions',
        'upstream.hosts',
        'cel.patterns',
        'admin.recentRequests',
        'admin.recentRequestBytes',
        'admin.auditEvents',
      ]);
    },
  );
});

test('streams that stand until one side ends them are marked, so that they are no latency', async () => {
  await using events = await httpUpstream((_, response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: 1\n\n'),
  );
  const at = (pathPrefix: string): object[] => [{ path: { pathPrefix } }];
  const routes = [
    { name: 'events', matches: at('/events'), backends: [{ host: events.address }] },
    { name: 'tools', matches: at('/mcp'), backends: [{ mcp: { targets: [chaos('a')] } }] },
  ];
  await using running = await gateway(
    JSON.stringify({ config: { adminAddr: 'off' }, gateways: { edge: { port: 0, routes } } }),
    { admin: true },
  );
  await send(`${running.url}/events`);
  const session = await openSession(`${running.url}/mcp`);
  const leave = new AbortController();
  const headers = { accept: 'text/event-stream', 'mcp-session-id': session.id };
  await fetch(`${running.url}/mcp`, { headers, signal: leave.signal });
  leave.abort();
  const marked = async (): Promise<unknown> => {
    const { requests } = JSON.parse((await send(`${running.admin}/api/requests`)).text) as {
      requests: { fields: Record<string, unknown> }[];
    };
    return requests.map(({ fields }) => [
      fields['http.method'],
      fields['http.path'],
      fields['response.stream'] ?? false,
    ]);
  };
  await until(async () => ((await marked()) as unknown[]).length === 4);
  expect(await marked()).toEqual([
    ['GET', '/events', true],
    ['POST', '/mcp', false],
    ['POST', '/mcp', false],
    ['GET', '/mcp', true],
  ]);
  expect(running.accessLog.join('')).not.toContain('response.stream');
});

describe('open requests', () => {
  test('open requests are listed with the fields known so far until their responses end', async () => {
    await using slow = await httpUpstream((_, response) => void response.writeHead(200).write('begun'));
    const yaml = JSON.stringify({
      config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
      frontendPolicies: { accessLog: { remove: ['http.host'] } },
      gateways: {
        a: { port: 0, routes: [{ name: 'slow', backends: [{ host: `127.0.0.1:${slow.port}` }] }] },
      },
    });
    await using running = await gateway(yaml, { admin: true });
    const leave = new AbortController();
    const response = await fetch(`${running.url}/slow?api_key=abc`, { signal: leave.signal });
    expect(response.status).toBe(200);
    const [first, second] = [
      await json(`${running.admin}/api/requests/open`),
      await json(`${running.admin}/api/requests/open`),
    ];
    expect(first).toEqual({ total: 1, requests: [expect.any(Object)] });
    const [open] = first.requests;
    expect(open?.fields).toMatchObject({
      route: 'default/slow',
      'http.path': '/slow?api_key=<redacted>',
      'http.status': 200,
    });
    expect(open?.fields).not.toHaveProperty('duration');
    expect(open?.fields).not.toHaveProperty('http.host');
    expect(second).toEqual(first);
    leave.abort();
    await until(async () => (await json(`${running.admin}/api/requests/open`)).total === 0);
  });
});

describe('recent requests', () => {
  /** A route that answers itself, and fields that expressions add. */
  const configOf = (add: Readonly<Record<string, string>> = {}): string =>
    JSON.stringify({
      config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
      frontendPolicies: { accessLog: { add } },
      gateways: { a: { port: 0, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
    });
  const yaml = configOf();

  test('recent requests are kept with their fields and continue on an event stream', async () => {
    await using running = await gateway(yaml, { admin: true });
    await send(`${running.url}/one?api_key=abc`);
    await until(() => running.accessLog.length === 1);
    const reading = await openEvents(`${running.admin}/api/requests`, {
      headers: { accept: 'text/event-stream' },
    });
    await using stream = reading;
    const first = await stream.next((request) => request['id'] === 1);
    expect(first['fields']).toMatchObject({ 'http.path': '/one?api_key=<redacted>', 'http.status': 200 });
    await send(`${running.url}/two`);
    expect(await stream.next((request) => request['id'] === 2)).toMatchObject({
      fields: { 'http.path': '/two' },
    });
    const { requests } = await json(`${running.admin}/api/requests?after=1`);
    expect(requests.map(({ fields }) => fields['http.path'])).toEqual(['/two']);
    expect((await json(`${running.admin}/memory`)).bounds).toContainEqual({
      name: 'admin.streams',
      used: 1,
      max: 64,
    });
    stream.close();
    await until(async () =>
      (await send(`${running.admin}/debug/tasks`)).text.includes('admin server: 0 streams'),
    );
  });

  test('recent requests are limited in size: the oldest are dropped, and the rest are complete', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `field${index}`);
    // Each takes three bytes in UTF-8.
    const add = Object.fromEntries(names.map((name) => [name, `"${'€'.repeat(300)}" + request.path`]));
    await using running = await gateway(configOf(add), { admin: true });
    for (let sent = 1; sent <= 250; sent += 1) await send(`${running.url}/${sent}`);
    await until(() => running.accessLog.length === 250);
    const { requests } = await json(`${running.admin}/api/requests`);
    // A MiB for some 11 KiB each.
    expect(requests.length).toBeGreaterThan(70);
    expect(requests.length).toBeLessThan(100);
    expect(requests.map(({ id }) => id)).toEqual(requests.map((_, index) => 251 - requests.length + index));
    for (const { id, fields } of requests)
      for (const name of names) expect(fields[name]).toBe(`${'€'.repeat(300)}/${id}`);
  });

  test('recent requests are limited to the newest thousand', async () => {
    await using running = await gateway(yaml, { admin: true });
    for (let sent = 1; sent <= 1_010; sent += 1) await send(`${running.url}/${sent}`);
    await until(() => running.accessLog.length === 1_010);
    const { requests } = await json(`${running.admin}/api/requests`);
    expect(requests.map(({ fields }) => fields['http.path'])).toEqual(
      Array.from({ length: 1_000 }, (_, index) => `/${index + 11}`),
    );
  });

  test('recent requests truncate long fields and drop the last of very many fields', async () => {
    const names = Array.from({ length: 60 }, (_, index) => `field${index}`);
    const add = Object.fromEntries(names.map((name) => [name, 'request.path']));
    await using running = await gateway(configOf(add), { admin: true });
    await send(`${running.url}/${'x'.repeat(5_000)}`);
    await until(() => running.accessLog.length === 1);
    const { requests } = await json(`${running.admin}/api/requests`);
    expect(requests[0]?.fields['http.path']).toBe(`/${'x'.repeat(1_023)}…`);
    expect(requests[0]?.fields['field0']).toBe(`/${'x'.repeat(1_023)}…`);
    expect(requests[0]?.fields).not.toHaveProperty('field59');
  });

  test('recent requests show client input as text on the page and escape terminal control characters', async () => {
    await using running = await gateway(yaml, { admin: true });
    await send(running.url, { target: '/?<script>alert(1)</script>"\'&' });
    await send(running.url, { headers: { 'user-agent': 'x' }, target: '/%1b]52;c;x%07' });
    await until(() => running.accessLog.length === 2);
    const { text } = await send(`${running.admin}/ui/status`);
    expect(text).toContain('&#60;script&#62;alert(1)');
    expect(text).not.toContain('<script');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  });
});

describe('admin traces', () => {
  for (const method of ['GET', 'POST']) {
    verifies('gateway.admin.trace', `the trace of the next request is streamed for ${method}`, async () => {
      await using running = await gateway(mcpConfig([chaos('a')]), { admin: true });
      const response = await fetch(
        `${running.admin}/debug/trace?expression=${encodeURIComponent('request.path == "/x"')}`,
        {
          method,
        },
      );
      expect([
        response.status,
        response.headers.get('content-type'),
        response.headers.get('cache-control'),
        response.headers.get('x-accel-buffering'),
      ]).toEqual([200, 'text/event-stream', 'no-cache, no-transform', 'no']);
      await send(`${running.url}/y`);
      await send(`${running.url}/x`);
      const text = await response.text();
      expect(text.startsWith(': ready\n\ndata: {"eventStart":null,')).toBe(true);
      expect(text.match(/"type":"requestStarted"/g)).toHaveLength(1);
      // The key that the configuration dump has for it.
      expect(text).toContain('"selectedRoute":"gateway/default/default/route0"');
      expect(text).toMatch(/"type":"requestFinished","status":406,/);
    });
  }

  test('a trace with an invalid expression is 400, and the watcher of a disconnected client is removed', async () => {
    await using running = await gateway(mcpConfig([chaos('a')]), { admin: true });
    const { status, text } = await send(`${running.admin}/debug/trace?expression=request.(`);
    expect([status, text.startsWith('invalid expression: ')]).toEqual([400, true]);
    const leave = new AbortController();
    await fetch(`${running.admin}/debug/trace`, { signal: leave.signal });
    expect(running.running.traceSubscribers.count).toBe(1);
    leave.abort();
    await until(() => running.running.traceSubscribers.count === 0);
  });
});
