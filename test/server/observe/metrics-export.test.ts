import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { AUTHORITY } from '../../kit/certificates.ts';
import type { TestGateway, TestGatewayOptions } from '../../kit/gateway.ts';
import { type ParsedFamily, parseMetrics, sampleValue } from '../../kit/open-metrics.ts';
import { type Collector, collector, type ReceivedMetric } from '../../kit/otlp.ts';
import { serve } from '../../kit/process.ts';
import { answeringGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream, refusingPort } from '../../kit/upstream.ts';
import { freshly } from '../../kit/workers.ts';

const hostOf = ({ url }: Collector): string => new URL(url).host;

/** A gateway that sends its metrics to a collector: when it is closed, unless there is a shorter interval. */
const exporting = (
  host: string,
  protocol: 'grpc' | 'http',
  { otlp = {}, metrics = {}, config = {} }: { otlp?: object; metrics?: object; config?: object } = {},
  options: TestGatewayOptions = {},
): Promise<TestGateway> =>
  answeringGateway(
    {},
    { config: { ...config, metrics: { ...metrics, otlp: { host, protocol, interval: '1h', ...otlp } } } },
    options,
  );

const named = (metrics: readonly ReceivedMetric[], name: string): ReceivedMetric => {
  const found = metrics.findLast((metric) => metric.name === name);
  if (found === undefined) throw new Error(`no ${name} among ${metrics.map((each) => each.name).join()}`);
  return found;
};

const parsed = async (gate: TestGateway): Promise<Map<string, ParsedFamily>> =>
  parseMetrics(await gate.running.metrics.render());

/** Samples of a scrape as text: the name without suffix, the labels, and the value. */
function scraped({ samples }: ParsedFamily, suffix: string): string[] {
  return samples
    .filter(({ name }) => name.endsWith(suffix))
    .map(({ labels, value }) => JSON.stringify([labels, value]))
    .toSorted();
}

describe.each(['grpc', 'http'] as const)('config.metrics.otlp over %s', (protocol) => {
  test('the collector gets every series that is scraped, with the same values', async () => {
    await using sink = await collector(protocol);
    const gate = await exporting(hostOf(sink), protocol);
    for (const path of ['/a', '/b']) await send(gate.url + path);
    await send(gate.url, { method: 'POST' });
    await until(() => gate.accessLog.length === 3);
    // Connections count when they are closed.
    const before = Date.now();
    const families = await parsed(gate);
    await gate.close();
    expect(sink.metrics.map(({ name }) => name).toSorted()).toEqual([...families.keys()].toSorted());
    for (const name of ['gw_requests', 'gw_build_info', 'gw_config_synchronized']) {
      const { type, points } = named(sink.metrics, name);
      const isCounter = type === 'sum';
      const received = points.map(({ attributes, value }) => JSON.stringify([attributes, value])).toSorted();
      expect(received, name).toEqual(
        scraped(families.get(name) as ParsedFamily, isCounter ? '_total' : name),
      );
    }
    const requests = named(sink.metrics, 'gw_requests');
    expect(requests).toMatchObject({
      type: 'sum',
      temporality: 2,
      isMonotonic: true,
      description: 'Total number of HTTP requests.',
    });
    expect(requests.points[0]?.start).toBe(Math.floor(performance.timeOrigin));
    expect(requests.points[0]?.time).toBeGreaterThanOrEqual(before);
    expect(requests.resource).toMatchObject({
      'service.name': 'agctl',
      'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    const duration = families.get('gw_request_duration_seconds') as ParsedFamily;
    const { type, temporality, points } = named(sink.metrics, 'gw_request_duration_seconds');
    expect([type, temporality]).toEqual(['histogram', 2]);
    for (const suffix of ['_count', '_sum'])
      expect(
        points
          .map(({ attributes, count, sum }) => JSON.stringify([attributes, suffix === '_sum' ? sum : count]))
          .toSorted(),
      ).toEqual(scraped(duration, suffix));
    const [point] = points;
    let below = 0;
    const cumulative = point?.counts.map((count) => (below += count));
    const lines = duration.samples.filter(
      ({ name, labels }) => name.endsWith('_bucket') && labels['method'] === point?.attributes['method'],
    );
    expect(cumulative).toEqual(lines.map(({ value }) => value));
    expect([...(point?.bounds ?? []), Number.POSITIVE_INFINITY]).toEqual(
      lines.map(({ labels }) => (labels['le'] === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels['le']))),
    );
  });

  test('metrics are sent again and again, also after a reload', async () => {
    await using sink = await collector(protocol);
    await using gate = await exporting(
      hostOf(sink),
      protocol,
      { otlp: { interval: '1s' } },
      { live: 'asked' },
    );
    await send(gate.url);
    const counted = (): number =>
      sink.metrics.findLast(({ name }) => name === 'gw_requests')?.points[0]?.value ?? 0;
    await until(() => counted() === 1);
    await gate.live.reload();
    await send(gate.url);
    await until(() => counted() === 2);
  });

  test('the credential of `policies` is sent', async () => {
    await using sink = await collector(protocol);
    const policies = { backendAuth: { key: 'key-for-the-collector' } };
    const gate = await exporting(hostOf(sink), protocol, { otlp: { policies } });
    await gate.close();
    expect(sink.headers[0]).toMatchObject({ authorization: 'Bearer key-for-the-collector' });
    for (const text of gate.log) expect(text).not.toContain('key-for-the-collector');
  });
});

test('`prefix`, `remove` and added labels apply to what is exported', async () => {
  await using sink = await collector('http');
  const metrics = { prefix: 'x_', remove: ['response_bytes'], fields: { add: { path: 'request.path' } } };
  const gate = await exporting(hostOf(sink), 'http', { metrics });
  await send(`${gate.url}/a`);
  await gate.close();
  expect(named(sink.metrics, 'x_requests').points[0]?.attributes).toMatchObject({ path: '/a' });
  expect(sink.metrics.filter(({ name }) => name.includes('response_bytes'))).toEqual([]);
});

test('config.metrics.otlp uses TLS and the path that it names', async () => {
  await using sink = await collector('http', { certificate: 'good' });
  const policies = { backendTLS: { root: AUTHORITY, hostname: 'localhost' } };
  const gate = await exporting(hostOf(sink), 'http', { otlp: { path: '/otlp/metrics', policies } });
  await gate.close();
  expect(sink.headers[0]).toMatchObject({ path: '/otlp/metrics' });
  expect(sink.metrics.length).toBeGreaterThan(5);
});

test.each([
  ['native', 'exponentialHistogram'],
  ['both', 'histogram'],
] as const)('with `histograms: %s`, a histogram is exported as %s', async (histograms, type) => {
  await using sink = await collector('http');
  const gate = await exporting(hostOf(sink), 'http', { config: { histograms } });
  await send(gate.url);
  await gate.close();
  const metric = named(sink.metrics, 'gw_request_duration_seconds');
  const [point] = metric.points;
  expect([metric.type, metric.points.length, point?.count]).toEqual([type, 1, 1]);
  expect(point?.counts.reduce((sum, count) => sum + count, point.zeros)).toBe(1);
  if (type === 'histogram') return;
  // OTLP, "Exponential Scale": a bucket has values above base^index, up to base^(index + 1).
  const { scale = 0, offset = 0, sum = 0, counts } = point ?? {};
  const base = 2 ** (2 ** -scale);
  expect(counts).toEqual([1]);
  expect(sum).toBeGreaterThan(base ** offset);
  expect(sum).toBeLessThanOrEqual(base ** (offset + 1));
});

test('many series are sent in several requests', async () => {
  await using sink = await collector('http');
  const gate = await exporting(hostOf(sink), 'http');
  const { requests, responseBytes, duration } = gate.running.metrics.families;
  const labels = requests.description.labels.length;
  for (const family of [requests, responseBytes, duration] as const)
    for (let count = 0; count < 900; count += 1)
      family.with([`backend ${count}`, ...Array.from({ length: labels - 1 }, () => 'x')]);
  await gate.close();
  expect(sink.headers.length).toBeGreaterThanOrEqual(3);
  const sizes = sink.headers.map((each) => Number(each['content-length']));
  expect(Math.max(...sizes)).toBeLessThan(4 * 2 ** 20);
  for (const name of ['gw_requests', 'gw_response_bytes', 'gw_request_duration_seconds'])
    expect(
      new Set(sink.metrics.filter((each) => each.name === name).flatMap(({ points }) => points)).size,
    ).toBe(900);
});

test('with two workers, one export has the sum of both, with requests that end during the shutdown, and all exports one instance', async () => {
  await using sink = await collector('http');
  let answer: ((response: string) => void) | undefined;
  await using upstream = await httpUpstream((request, response) => {
    if (request.url === '/late') answer = (text) => response.end(text);
    else response.end('ok');
  });
  await using served = await serve(
    routesConfig([{ backends: [{ host: upstream.address }] }], {
      config: {
        workers: 2,
        connectionTerminationDeadline: '30s',
        metrics: { otlp: { host: hostOf(sink), protocol: 'http', interval: '1h' } },
      },
      frontendPolicies: {
        tracing: { host: hostOf(sink), protocol: 'http', randomSampling: true },
        accessLog: { otlp: { host: hostOf(sink), protocol: 'http' } },
      },
    }),
  );
  let answered = 0;
  const ask = async (): Promise<void> => {
    await freshly(served.url);
    answered += 1;
  };
  for (let count = 0; count < 4; count += 1) await ask();
  const late = fetch(`${served.url}/late`).then((response) => response.text());
  await until(() => answer !== undefined);
  served.kill('SIGTERM');
  // Until the ports are closed, further requests are answered.
  await until(() =>
    ask().then(
      () => false,
      () => true,
    ),
  );
  answer?.('late');
  expect(await late).toBe('late');
  expect((await served.finished).code).toBe(0);
  const { points, resource } = named(sink.metrics, 'gw_requests');
  expect(points).toHaveLength(1);
  // The last request that was asked may have been counted before its connection was closed.
  const uncounted = Number(points[0]?.value) - answered - 1;
  expect([0, 1]).toContain(uncounted);
  // One gateway, also in what its workers export themselves.
  const exported = [...sink.metrics, ...sink.spans, ...sink.records];
  for (const { length } of [sink.spans, sink.records]) expect(length).toBeGreaterThan(answered);
  expect(new Set(exported.map((each) => each.resource['service.instance.id']))).toEqual(
    new Set([resource['service.instance.id']]),
  );
});

describe.concurrent('a collector that fails', () => {
  test.each<[string, (response: ServerResponse) => void, string]>([
    ['refuses the path', (response) => void response.writeHead(404).end(), 'status 404'],
    [
      'is a web server',
      (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
      'not OTLP',
    ],
    ['answers with other bytes', (response) => void response.writeHead(200).end('{"error": 1}'), 'not OTLP'],
    [
      'rejects a data point',
      (response) => void response.writeHead(200).end(Buffer.from('0a020801', 'hex')),
      'rejected',
    ],
  ])(
    'that %s loses data points, which are counted and logged, and no request',
    async (name, reply, problem) => {
      await using sink = await collector('http', { reply });
      await using gate = await exporting(hostOf(sink), 'http', { otlp: { interval: '1s' } });
      expect(sampleValue(await parsed(gate), 'gw_metric_points_lost_total')).toBe(0);
      const warning = (): string | undefined =>
        gate.log.find((line) => line.includes('data points of metrics were lost'));
      await until(() => warning() !== undefined);
      expect(warning()).toContain(problem);
      const lost = sampleValue(await parsed(gate), 'gw_metric_points_lost_total');
      if (name === 'rejects a data point') expect(lost).toBeLessThan(5);
      else expect(lost).toBeGreaterThan(5);
      expect((await send(gate.url)).status).toBe(200);
    },
  );

  test.each<['grpc' | 'http', string]>([
    ['grpc', 'takes metrics and never answers'],
    ['http', 'takes metrics and never answers'],
    ['grpc', 'refuses connections'],
    ['http', 'refuses connections'],
  ])('over %s that %s delays neither requests nor the shutdown', async (protocol, kind) => {
    await using sink = await collector(protocol, { answers: false });
    const host = kind === 'refuses connections' ? `127.0.0.1:${await refusingPort()}` : hostOf(sink);
    const gate = await exporting(host, protocol, { otlp: { interval: '1s' } });
    if (kind !== 'refuses connections') await until(() => sink.headers.length > 0);
    expect((await send(gate.url)).status).toBe(200);
    const began = performance.now();
    await gate.close();
    // 1.5 s, and what a busy machine takes; an export alone would take 5 s.
    expect(performance.now() - began).toBeLessThan(4_500);
    expect(sink.headers.length).toBeLessThan(2);
  });
});

test.each([
  [{ protocol: 'http' }, 'config.metrics.otlp.host'],
  [{ host: 'a:1', interval: '10ms' }, 'expected at least 1s'],
  [{ host: 'a:1', path: 'v1' }, 'config.metrics.otlp.path'],
])('config.metrics.otlp %j is refused', async (otlp, message) => {
  await expect(answeringGateway({}, { config: { metrics: { otlp } } })).rejects.toThrow(message);
});
