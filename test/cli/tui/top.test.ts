import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { parseAddress } from '../../../src/cli/proxy/address.ts';
import { groupColumns, sorted, tableRow, withNames } from '../../../src/cli/tui/top/columns.ts';
import { gatewayStateIn } from '../../../src/cli/tui/top/gateway-state.ts';
import { figuresOf, groupsOf, inWindow, sparkline } from '../../../src/cli/tui/top/top-model.ts';
import { topRows } from '../../../src/cli/tui/top/top-screen.ts';
import { TopStore } from '../../../src/cli/tui/top/top-store.ts';
import { FIRST_TOP, pressTop, type TopUi, tableRows } from '../../../src/cli/tui/top/top-ui.ts';
import { LIMITS } from '../../../src/core/limits.ts';
import { displayWidth } from '../../../src/core/render/width.ts';
import type { FinishedRequest } from '../../../src/core/requests/finished.ts';
import { fakeAdmin, says } from '../../kit/fake-admin.ts';
import { until } from '../../kit/until.ts';

const NOW = Date.parse('2026-01-01T00:10:00Z');
const request = (id: number, fields: object, ago = 0): FinishedRequest => ({
  id,
  at: NOW - ago * 1000,
  fields: { 'http.method': 'GET', 'http.path': `/${id}`, 'http.status': 200, duration: `${id}ms`, ...fields },
});

describe('figures of agctl top', () => {
  test('figures count failures, tokens and cost, and give nearest-rank latencies', () => {
    const requests = Array.from({ length: 100 }, (_, index) =>
      request(index + 1, {
        'gen_ai.usage.input_tokens': 10,
        'gen_ai.usage.output_tokens': 2,
        ...(index === 0 ? { 'http.status': 500 } : {}),
        ...(index < 2 ? { 'gw.ai.usage.cost.total': '0.25' } : {}),
      }),
    );
    expect(figuresOf(requests, 50)).toEqual({
      requests: 100,
      errors: 1,
      rate: 2,
      p50: 50,
      p99: 99,
      input: 1000,
      output: 200,
      cost: 0.5,
    });
    expect(figuresOf([], 0)).toMatchObject({ requests: 0, rate: 0, p50: undefined, cost: undefined });
  });

  test('groups name tools with their target and leave out requests of none', () => {
    const requests = [
      request(1, { 'gen_ai.tool.name': 'echo', 'mcp.target': 'a' }),
      request(2, { 'gen_ai.tool.name': 'echo', 'mcp.target': 'b' }),
      request(3, {}),
    ];
    expect(groupsOf(requests, 'tools', 1).map(({ name }) => name)).toEqual(['echo on a', 'echo on b']);
    expect(groupsOf(requests, 'users', 1)).toEqual([]);
  });

  test('the rate of a window counts the time in which all requests are known', () => {
    const requests = [request(1, {}, 400), request(2, {}, 30), request(3, {}, 10)];
    expect(inWindow(requests, 60, NOW, 0)).toEqual({ requests: requests.slice(1), seconds: 60 });
    expect(inWindow(requests, 300, NOW, NOW - 20_000)).toMatchObject({ seconds: 20 });
  });

  test('the sparkline has the newest requests at the right', () => {
    const requests = [request(1, {}, 0), request(2, {}, 0), request(3, {}, 5), request(4, {}, 70)];
    expect(sparkline(requests, 60, NOW, 6)).toBe('     █');
    expect(sparkline(requests.slice(0, 2), 60, NOW + 30_000, 6)).toBe('  █   ');
  });

  test('groups are sorted by figures from largest to smallest, and names from A to Z', () => {
    const groups = groupsOf(
      [request(1, { route: 'b' }), request(2, { route: 'a' }), request(3, { route: 'b' })],
      'routes',
      1,
    );
    const names = (title: string, isReversed = false) =>
      sorted(
        groups,
        groupColumns('ROUTE').find((column) => column.title === title),
        isReversed,
      ).map(({ name }) => name);
    expect(names('REQS')).toEqual(['b', 'a']);
    expect(names('ROUTE')).toEqual(['a', 'b']);
    expect(names('ROUTE', true)).toEqual(['b', 'a']);
    expect(names('COST')).toEqual(['b', 'a']);
  });
});

test('figures of groups stand near the names at any width, and names that need more are cut', () => {
  const groups = groupsOf([request(1, { route: 'b' }), request(2, { route: 'a-long-name' })], 'routes', 1);
  const [group] = groups.filter(({ name }) => name === 'a-long-name');
  const line = (width: number): string =>
    group === undefined
      ? ''
      : tableRow(withNames(groupColumns('ROUTE'), groups, width), group, false, width)
          .map(({ text }) => text)
          .join('');
  for (const width of [80, 120, 200]) expect(line(width)).toMatch(/^ {2}a-long-name {5,12}1 /);
  expect(displayWidth(line(40))).toBeLessThanOrEqual(40);
});

describe('the keys of agctl top', () => {
  const view = {
    phase: 'live' as const,
    source: 'x',
    problem: '',
    requests: [
      request(1, { route: 'a' }),
      request(2, { route: 'b', 'jwt.sub': 'Ann' }),
      request(3, { route: 'a' }),
    ].map((each) => ({ ...each, text: '' })),
    open: [],
    openCount: 0,
    gateway: undefined,
    skew: 0,
    completeSince: 0,
    isRecording: false,
    recorded: 0,
    note: '',
  };
  const on = { view, now: NOW, page: 5, width: 80 };
  const press = (...keys: string[]): TopUi =>
    keys.reduce(
      (ui, input) =>
        pressTop(ui, /^[a-z]{2,}$/.test(input) ? { input: '', name: input as 'enter' } : { input }, on).ui,
      FIRST_TOP,
    );
  const listed = (ui: TopUi) => tableRows(ui, view, NOW, 80).map(({ key }) => key.replace(/^.*-/, ''));

  test.each([
    ['ann', ['2']],
    ['route:a', ['3', '1']],
    ['route:a /3', ['3']],
    ['status:5xx', []],
    ['status:5', ['3', '2', '1']],
    ['user:a*', ['2']],
  ])('the filter %j lists %j', (filter, expected) => {
    expect(listed({ ...FIRST_TOP, filter })).toEqual(expected);
  });

  test('the first row stays selected while requests arrive, another one stays the same request', () => {
    expect(press('j', 'k').selected).toBeUndefined();
    expect(press('j').selected).toBe(`${NOW}-2`);
  });

  test('enter on a group lists its requests, and escape goes back', () => {
    const inside = press('tab', 'enter');
    expect([inside.group, listed(inside)]).toEqual([{ kind: 'routes', name: 'a' }, ['3', '1']]);
    expect(press('tab', 'enter', 'escape')).toMatchObject({ tab: 'routes', group: undefined });
  });

  test('escape closes details, filter and group before it leaves', () => {
    const ui = press('/', 'a', 'enter', 'enter');
    expect(ui).toMatchObject({ isDetailed: true, filter: 'a' });
    const closed = pressTop(ui, { input: '', name: 'escape' }, on);
    expect(closed).toEqual({ ui: expect.objectContaining({ isDetailed: false, filter: 'a' }) });
    const cleared = pressTop(closed.ui, { input: '', name: 'escape' }, on);
    expect(cleared.ui.filter).toBe('');
    expect(pressTop(cleared.ui, { input: '', name: 'escape' }, on).action).toBe('quit');
  });

  test('at 120 columns, details are below the list, so that it has room for why a request failed', () => {
    const failed = request(1, {
      'http.method': 'POST',
      'http.path': '/mcp',
      'http.status': 401,
      route: 'internal/default',
      error: 'api key authentication failure: invalid credentials',
    });
    const known = { ...view, requests: [{ ...failed, text: '' }] };
    const lines = (columns: number, rows: number): readonly string[] =>
      topRows(known, FIRST_TOP, { columns, rows }, NOW, () => false).map((row) =>
        row.map(({ text }) => text).join(''),
      );
    const tall = lines(120, 40);
    const listed = tall.findIndex((line) =>
      line.includes('POST /mcp · api key authentication failure: invalid credentials'),
    );
    const details = tall.findIndex((line) => line.startsWith('── Request ─'));
    expect(listed).toBeGreaterThan(0);
    expect(details).toBeGreaterThan(listed);
    expect(tall.slice(details).join('\n')).toMatch(/http\.status +401/);
    // No room below, or enough beside.
    expect(lines(120, 24).join('\n')).not.toContain('── Request ─');
    expect(lines(160, 24).join('\n')).toMatch(/│── Request ─/);
  });

  test('a database that does not answer comes first in the line of what works', () => {
    const outages = [{ at: 'config.database', problem: 'PostgreSQL does not answer' }];
    const overview = { startedAt: new Date(NOW).toISOString(), uptimeSeconds: 1, outages, gateways: [] };
    const [, , line = []] = topRows(
      { ...view, gateway: gatewayStateIn(overview) },
      FIRST_TOP,
      { columns: 80, rows: 24 },
      NOW,
      () => false,
    );
    expect(line[0]).toEqual({ text: ' ✗ config.database: PostgreSQL does not answer', tone: 'red' });
  });

  test.each([20, 40, 60, 80, 100, 120, 200, 400])('no row of any tab is wider than %i columns', (columns) => {
    for (const rows of [3, 8, 24, 60])
      for (const tab of ['requests', 'routes', 'sessions'] as const)
        for (const isDetailed of [false, true]) {
          const screen = topRows(
            view,
            { ...FIRST_TOP, tab, isDetailed },
            { columns, rows },
            NOW,
            () => false,
          );
          expect(screen.length).toBeLessThan(rows);
          for (const row of screen)
            expect(displayWidth(row.map(({ text }) => text).join(''))).toBeLessThanOrEqual(columns);
        }
  });
});

test('agctl top shows that it records traces once the gateway has answered, which traces from then on', async () => {
  const asked = Promise.withResolvers<ServerResponse>();
  await using admin = await fakeAdmin({ '/debug/trace': (response) => asked.resolve(response) });
  const store = new TopStore(parseAddress(admin.address, '--admin'));
  store.toggleRecording();
  const response = await asked.promise;
  expect(store.view()).toMatchObject({ isRecording: false, note: '' });
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  await until(() => store.view().isRecording);
  store.toggleRecording();
  await until(() => store.view().note === 'recording has stopped');
  expect(store.view().isRecording).toBe(false);
});

test('the store of agctl top keeps a limited number of requests', async () => {
  const entries = Array.from({ length: LIMITS.topRequests + 50 }, (_, index) => ({
    id: index + 1,
    time: new Date(NOW + index).toISOString(),
    fields: { 'http.status': 200 },
  }));
  const overview = { startedAt: new Date(NOW).toISOString(), uptimeSeconds: 0, gateways: [] };
  await using admin = await fakeAdmin({
    '/api/requests': (response, { headers }) => {
      if (headers.accept !== 'text/event-stream') {
        response.end(JSON.stringify({ requests: entries.slice(0, 10) }));
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const entry of entries) response.write(`event: request\ndata: ${JSON.stringify(entry)}\n\n`);
    },
    '/api/requests/open': says(JSON.stringify({ total: 0, requests: [] })),
    '/api/overview': says(JSON.stringify(overview)),
  });
  const store = new TopStore(parseAddress(admin.address, '--admin'));
  try {
    await store.start();
    expect(store.view().requests.length).toBeGreaterThanOrEqual(10);
    await until(() => store.view().requests.at(-1)?.id === entries.length);
    expect(store.view().requests).toHaveLength(LIMITS.topRequests);
    expect(store.view().requests[0]?.id).toBe(51);
    // Earlier ones are not known any more.
    await until(() => store.view().completeSince === NOW + 50);
  } finally {
    store.stop();
  }
});
