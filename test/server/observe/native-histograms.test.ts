import { describe, expect, test } from 'vitest';
import { parseMetrics } from '../../kit/open-metrics.ts';
import { type ServeProcess, serve } from '../../kit/process.ts';
import {
  type DecodedHistogram,
  decodeFamilies,
  nativeCounts,
  PROTOBUF_ACCEPT,
} from '../../kit/prometheus-protobuf.ts';
import { routesConfig } from '../../kit/routes.ts';
import { until } from '../../kit/until.ts';
import { freshly } from '../../kit/workers.ts';

const started = (histograms: string, more: object = {}): Promise<ServeProcess> =>
  serve(
    routesConfig([{ policies: { directResponse: { body: 'x' } } }], {
      config: { adminAddr: 'off', statsAddr: '127.0.0.1:0', histograms, ...more },
    }),
    { env: { STATS_ADDR: undefined } },
  );

const scrape = (served: ServeProcess, accept: string): Promise<Response> => {
  const address = /address="(\S+)" component="stats"/.exec(served.stderr)?.[1] as string;
  return fetch(`http://${address}/metrics`, { headers: { accept } });
};
const text = async (served: ServeProcess) => {
  const response = await scrape(served, 'application/openmetrics-text');
  expect(response.headers.get('content-type')).toMatch(/^application\/openmetrics-text/);
  return parseMetrics(await response.text());
};
const protobuf = async (served: ServeProcess) => {
  const response = await scrape(served, PROTOBUF_ACCEPT);
  expect(response.headers.get('content-type')).toBe(
    'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited',
  );
  return decodeFamilies(new Uint8Array(await response.arrayBuffer()));
};
/** Makes requests, and waits until all are counted. */
const answered = async (served: ServeProcess, count: number): Promise<void> => {
  for (let index = 0; index < count; index++) await freshly(served.url);
  await until(async () => {
    const [requests] = (await text(served)).get('gw_requests')?.samples ?? [];
    return requests?.value === count;
  });
};
const durations = async (served: ServeProcess): Promise<DecodedHistogram> => {
  const metrics = (await protobuf(served)).get('gw_request_duration_seconds')?.metric;
  expect(metrics).toHaveLength(1);
  return metrics?.[0]?.histogram as DecodedHistogram;
};
const bucketLines = async (served: ServeProcess): Promise<(string | undefined)[]> => {
  const { samples = [] } = (await text(served)).get('gw_request_duration_seconds') ?? {};
  return samples.filter(({ name }) => name.endsWith('_bucket')).map(({ labels }) => labels.le);
};
const total = (histogram: DecodedHistogram): number =>
  nativeCounts(histogram).reduce((sum, [, count]) => sum + count, histogram.zero_count ?? 0);

describe('config.histograms', () => {
  test('classic: a scraper that asks for protobuf gets text with buckets', async () => {
    await using served = await started('classic');
    await answered(served, 1);
    const response = await scrape(served, PROTOBUF_ACCEPT);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect((await bucketLines(served)).length).toBeGreaterThan(5);
  });

  test('native: protobuf has exponential buckets only, text has count and sum', async () => {
    await using served = await started('native');
    await answered(served, 3);
    const histogram = await durations(served);
    expect(histogram).toMatchObject({ sample_count: 3, schema: 3, zero_threshold: 2 ** -128, zero_count: 0 });
    expect(histogram.bucket).toBeUndefined();
    expect(total(histogram)).toBe(3);
    // The sum is between those of the lower and the upper bounds.
    const sums = [-1, 0].map((step) =>
      nativeCounts(histogram).reduce((sum, [index, count]) => sum + count * 2 ** ((index + step) / 8), 0),
    );
    expect(histogram.sample_sum).toBeGreaterThan(sums[0] as number);
    expect(histogram.sample_sum).toBeLessThanOrEqual(sums[1] as number);
    expect(await bucketLines(served)).toEqual(['+Inf']);
  });

  test('both: protobuf has both kinds of buckets, text the classic ones; other metrics are the same', async () => {
    await using served = await started('both');
    await answered(served, 2);
    const histogram = await durations(served);
    const bounds = (await bucketLines(served)).map(Number);
    expect(histogram.bucket?.map(({ upper_bound }) => upper_bound)).toEqual(bounds.slice(0, -1));
    expect(histogram.bucket?.at(-1)?.cumulative_count).toBe(2);
    expect(total(histogram)).toBe(2);
    const decoded = await protobuf(served);
    const expected = [...(await text(served))].map(([name, { type }]) => [
      type === 'counter' ? `${name}_total` : name,
      type.toUpperCase(),
    ]);
    expect([...decoded.values()].map(({ name, type }) => [name, type])).toEqual(expected);
    const [requests] = decoded.get('gw_requests_total')?.metric ?? [];
    expect(requests?.counter?.value).toBe(2);
    expect(requests?.label).toContainEqual({ name: 'status', value: '200' });
    expect(decoded.get('gw_config_synchronized')?.metric[0]?.gauge?.value).toBe(1);
  });

  test('the protobuf format is sent only to who prefers it, with its delimited encoding', async () => {
    await using served = await started('native');
    const type = 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily';
    for (const accept of [
      `${type};encoding=delimited;q=0.4,text/plain;q=0.5`,
      `${type};encoding=text`,
      `${type};encoding=delimited;q=0`,
      '*/*',
    ])
      expect((await scrape(served, accept)).headers.get('content-type'), accept).toMatch(/^text\/plain/);
    const escaping = `${type};encoding=delimited;escaping=allow-utf-8;q=0.6,text/plain;q=0.5`;
    expect((await scrape(served, escaping)).headers.get('content-type')).toContain('encoding=delimited');
  });

  test('with workers, native histograms of all workers are added up', async () => {
    await using served = await started('native', { workers: 2 });
    await answered(served, 6);
    const histogram = await durations(served);
    expect(histogram.sample_count).toBe(6);
    expect(total(histogram)).toBe(6);
    expect(await bucketLines(served)).toEqual(['+Inf']);
  });
});
