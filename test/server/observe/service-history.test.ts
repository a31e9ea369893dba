import { expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { quantile } from '../../../src/core/render/figures.ts';
import type { Field } from '../../../src/server/observe/request-fields.ts';
import { figuresOfServices, ServiceHistory } from '../../../src/server/observe/service-history.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NOON = Date.UTC(2026, 5, 10, 12);

const call = (target: string, ms: number, status = 200): Field[] => [
  ['mcp.target', target],
  ['http.status', status],
  ['duration', `${ms}ms`],
];

test('p95 of an hour, of a day and of several processes is within 12 % of the exact one', () => {
  const histories = [new ServiceHistory(), new ServiceHistory()];
  const exact: number[] = [];
  for (let index = 0; index < 2_000; index += 1) {
    const ms = Math.round(1.007 ** index);
    exact.push(ms);
    histories[index % 2]?.add(call('files', ms), NOON + index);
  }
  for (const step of ['minute', 'hour', 'day'] as const) {
    const [figures] = figuresOfServices(
      histories.map((history) => history.counted(step, NOON - DAY, NOON + DAY)),
    );
    expect([figures?.calls, figures?.errors, figures?.buckets.length]).toEqual([2_000, 0, 1]);
    // Beyond nine minutes, all latencies are counted together.
    const expected = Math.min(quantile(exact, 0.95) ?? 0, 524_288);
    expect(Math.abs((figures?.p95 ?? 0) / expected - 1)).toBeLessThan(0.13);
  }
});

test('each hour of a day and each day of a month is kept apart, and later ones take the place of the oldest', () => {
  const history = new ServiceHistory();
  for (let hour = 0; hour < 40 * 24; hour += 1)
    history.add(call('files', 10, hour % 2 === 0 ? 200 : 502), NOON + hour * HOUR);
  const end = NOON + 40 * DAY;
  const [hours] = figuresOfServices([history.counted('hour', end - 7 * DAY, end)]);
  expect(hours?.buckets.length).toBe(25);
  expect(hours?.buckets.map(({ calls }) => calls)).toEqual(Array.from({ length: 25 }, () => 1));
  expect(hours?.errors).toBe(13);
  const [days] = figuresOfServices([history.counted('day', end - 90 * DAY, end)]);
  expect(days?.buckets.length).toBe(31);
  expect(days?.buckets.slice(0, 2).map(({ calls, errors }) => [calls, errors])).toEqual([
    [24, 12],
    [24, 12],
  ]);
  expect(figuresOfServices([history.counted('day', NOON, NOON + DAY)])).toEqual([]);
});

test('each minute of an hour is kept, with 100 calls a second', () => {
  const history = new ServiceHistory();
  for (let second = 0; second < 90 * 60; second += 1)
    for (let index = 0; index < 100; index += 1)
      history.add(call('files', 10, index === 0 ? 502 : 200), NOON + second * 1_000);
  const end = NOON + 90 * MINUTE;
  const [minutes] = figuresOfServices([history.counted('minute', end - HOUR, end)]);
  expect([minutes?.calls, minutes?.errors, minutes?.buckets.length]).toEqual([360_000, 3_600, 60]);
  expect(minutes?.buckets[0]).toMatchObject({ at: end - HOUR, calls: 6_000, errors: 60 });
});

test('failed models are counted as failovers, and requests without a service or with odd fields are not', () => {
  const history = new ServiceHistory();
  history.add(
    [
      ['gen_ai.provider.name', 'openai'],
      ['http.status', 200],
      ['duration', 'soon'],
      ['gw.ai.failover.from', 'first, second'],
    ],
    NOON,
  );
  history.add([['http.status', 200]], NOON);
  history.add([['mcp.target', '']], NOON);
  history.add([['mcp.target', '__proto__']], NOON);
  const figures = figuresOfServices([history.counted('hour', NOON, NOON + 1)]);
  expect(figures.map(({ kind, name, calls, failovers, p95 }) => [kind, name, calls, failovers, p95])).toEqual(
    [
      ['provider', 'openai', 1, 0, null],
      ['model', 'first', 0, 1, null],
      ['model', 'second', 0, 1, null],
      ['target', '__proto__', 1, 0, null],
    ],
  );
});

test('what another part of the gateway has answered is no call of the service', () => {
  const history = new ServiceHistory();
  const refused = [
    ['APIKeyAuth', 401],
    ['Authorization', 403],
    ['RateLimit', 429],
    ['Guardrail', 503],
    ['Internal', 503],
    ['Policy', 500],
  ] as const;
  for (const [reason, status] of refused)
    history.add([...call('files', 1, status), ['gen_ai.provider.name', 'openai'], ['reason', reason]], NOON);
  for (const reason of ['UpstreamFailure', 'Timeout'])
    history.add([...call('files', 1, 504), ['reason', reason]], NOON);
  const figures = figuresOfServices([history.counted('hour', NOON, NOON + 1)]);
  expect(figures.map(({ name, calls, errors }) => [name, calls, errors])).toEqual([['files', 2, 2]]);
});

test('the number of services is bounded, and those that are known are still counted', () => {
  const history = new ServiceHistory();
  for (let index = 0; index < LIMITS.countedServices + 50; index += 1)
    history.add(call(`target ${index}`, 1), NOON);
  history.add(call('target 0', 1), NOON);
  const figures = figuresOfServices([history.counted('hour', NOON, NOON + 1)]);
  expect([history.size, figures.length, figures[0]?.calls]).toEqual([
    LIMITS.countedServices,
    LIMITS.countedServices,
    2,
  ]);
});
