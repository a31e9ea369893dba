import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { prometheusAlerts } from '../../../src/cli/monitoring/alerts.ts';
import { grafanaDashboard } from '../../../src/cli/monitoring/dashboard.ts';
import { Queries } from '../../../src/cli/monitoring/queries.ts';
import { Metrics } from '../../../src/server/observe/metrics/metrics.ts';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}

const { panels } = JSON.parse(grafanaDashboard()) as { panels: readonly Panel[] };

describe('the Grafana dashboard', () => {
  test('the Grafana dashboard shows every metric of the gateway', () => {
    const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)).join('\n');
    const missing = new Metrics()
      .describe()
      .filter(({ name }) => !new RegExp(`\\b${name}(?:_total|_bucket|_sum)?\\{`).test(queries));
    expect(missing.map(({ name }) => name)).toEqual([]);
  });

  test('the Grafana dashboard has no overlapping panels and no id twice', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
  });
});

test('queries for dashboards and alerts refuse metrics and labels that do not exist', () => {
  const queries = new Queries([], '5m');
  expect(() => queries.rate('no_such')).toThrow('no counter is called gw_no_such');
  expect(() => queries.rate('request_duration_seconds')).toThrow('no counter is called');
  expect(() => queries.rate('requests', { by: ['model'] })).toThrow('gw_requests has no label model');
  expect(() => queries.rate('requests', { where: 'code="1"' })).toThrow('gw_requests has no label code');
  expect(queries.quantile(0.9, 'request_duration_seconds', { by: ['route'] })).toBe(
    'histogram_quantile(0.9, sum by (route, le) (rate(gw_request_duration_seconds_bucket[5m])))',
  );
});

test('an alert about a quantile compares it with the bound of a bucket: inside of one, a quantile is a guess', () => {
  const { groups } = parse(prometheusAlerts()) as { groups: { rules: { expr: string }[] }[] };
  const compared = groups
    .flatMap(({ rules }) => rules)
    .flatMap(({ expr }) => [
      ...expr.matchAll(/histogram_quantile\(.*?\((\w+)_bucket.*?\)\)\) [<>] ([\d.]+)/g),
    ]);
  expect(compared.length).toBeGreaterThan(0);
  const { families } = new Metrics();
  for (const [, name = '', threshold = ''] of compared) {
    const family = Object.values(families).find((each) => each.name === name);
    family?.with([]);
    expect(
      family?.read()?.values.map(({ labels }) => labels['le']),
      name,
    ).toContain(threshold);
  }
});
