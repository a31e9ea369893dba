import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { AUTHORITY } from '../../kit/certificates.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { parseMetrics, sampleValue } from '../../kit/open-metrics.ts';
import { type Collector, collector } from '../../kit/otlp.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream, rawUpstream, refusingPort } from '../../kit/upstream.ts';

type Protocol = 'grpc' | 'http';

const hostOf = ({ url }: Collector): string => new URL(url).host;

/** A gateway that sends its access log to a collector. `otlp`: more settings of that; `log`: of the access log. */
const exporting = (
  sink: Collector,
  protocol: Protocol,
  otlp: object = {},
  { log = {}, more = {}, options = {} }: { log?: object; more?: object; options?: TestGatewayOptions } = {},
): Promise<TestGateway> =>
  answeringGateway(
    {},
    {
      frontendPolicies: { accessLog: { ...log, otlp: { host: hostOf(sink), protocol, ...otlp } } },
      ...more,
    },
    options,
  );

/** The line that says so. */
const lost = (gate: TestGateway): string | undefined =>
  gate.log.find((line) => line.includes('access-log records were lost'));

describe.each<[Protocol]>([['grpc'], ['http']])('accessLog.otlp over %s', (protocol) => {
  // openclaw/openclaw#91865: records without the ids of their trace cannot be found from it; traefik/traefik#11749: pages
  // that show the body of records show nothing for one without.
  test('a record has the fields of the access-log line, a body, and the ids of the span of its request', async () => {
    await using sink = await collector(protocol);
    const tracing = { otlpEndpoint: sink.url, otlpProtocol: protocol, randomSampling: true };
    const log = { add: { host: 'request.host', parts: '{"a": [1, "x"]}' }, remove: ['src.addr'] };
    const gate = await exporting(sink, protocol, {}, { log, more: { config: { tracing } } });
    const before = Date.now();
    expect((await send(`${gate.url}/a?token=secret-1`)).status).toBe(200);
    const line = await gate.accessLine(1);
    await gate.close();
    const [record] = sink.records;
    const [span] = sink.spans;
    expect(record).toMatchObject({
      severity: [9, 'INFO'],
      body: 'request',
      event: 'request',
      scope: 'agctl',
      traceId: span?.traceId,
      spanId: span?.spanId,
      resource: span?.resource,
    });
    expect(record?.time).toBeGreaterThanOrEqual(before);
    expect(record?.resource).toMatchObject({ 'service.name': 'agctl' });
    const written = Object.entries(record?.attributes ?? {}).map(([name, value]) => [name, String(value)]);
    expect({ ...Object.fromEntries(written), parts: undefined }).toEqual({ ...line, parts: undefined });
    expect(record?.attributes).toMatchObject({
      'http.status': 200,
      'http.path': '/a?token=<redacted>',
      host: new URL(gate.url).host,
      parts: '{"a":[1,"x"]}',
    });
    expect(record?.attributes).not.toHaveProperty(['src.addr']);
  });

  test('a request without a span has a record without a trace', async () => {
    await using sink = await collector(protocol);
    const gate = await exporting(sink, protocol);
    await send(gate.url);
    await gate.close();
    expect(sink.records).toMatchObject([{ traceId: '', spanId: '', attributes: { protocol: 'http' } }]);
    expect(sink.records[0]?.attributes).not.toHaveProperty(['trace.id']);
  });

  test('the credential of `policies` is sent, and shown nowhere', async () => {
    await using sink = await collector(protocol);
    const policies = { backendAuth: { key: 'key-for-the-collector' } };
    const gate = await exporting(sink, protocol, { policies }, { options: { admin: true } });
    await send(gate.url);
    const dump = await send(`${gate.admin}/config_dump`);
    const config = await send(`${gate.admin}/api/config`);
    await gate.close();
    expect(sink.headers[0]).toMatchObject({ authorization: 'Bearer key-for-the-collector' });
    expect(sink.records).toHaveLength(1);
    expect(config.text).toContain('backendAuth');
    for (const text of [dump.text, config.text, ...gate.log, ...gate.accessLog])
      expect(text).not.toContain('key-for-the-collector');
  });

  test('records are sent without a shutdown, and more than a batch of them', async () => {
    await using sink = await collector(protocol);
    await using gate = await exporting(sink, protocol);
    await send(gate.url);
    await until(() => sink.records.length === 1);
    for (let count = 0; count < 30; count += 1)
      await Promise.all(Array.from({ length: 20 }, () => send(gate.url)));
    await until(() => sink.records.length === 601);
  });
});

test('`filter` and `fields` of accessLog.otlp replace those of the access log', async () => {
  await using sink = await collector('http');
  const log = { filter: 'request.path != "/export"', add: { mine: '1' }, remove: ['http.status'] };
  const otlp = {
    filter: 'request.path == "/export" || request.path.missing',
    fields: { add: { theirs: 'request.method' }, remove: ['http.path'] },
  };
  const gate = await exporting(sink, 'http', otlp, { log });
  for (const path of ['/export', '/other']) await send(gate.url + path);
  await gate.close();
  expect(gate.accessLog).toEqual([expect.stringMatching(/http\.path=\/other .*mine=1/)]);
  expect(sink.records).toMatchObject([{ attributes: { theirs: 'GET', 'http.status': 200 } }]);
  expect(sink.records[0]?.attributes).not.toHaveProperty(['http.path']);
  expect(sink.records[0]?.attributes).not.toHaveProperty(['mine']);
});

test('records are exported although the access log is off', async () => {
  await using sink = await collector('http');
  const gate = await exporting(sink, 'http', {}, { options: { level: 'warn,request=off' } });
  await send(gate.url);
  await gate.close();
  expect([gate.accessLog.length, sink.records.length]).toEqual([0, 1]);
});

test('accessLog.otlp uses the path, TLS and the top-level backend that it names', async () => {
  await using sink = await collector('http', { certificate: 'good' });
  const policies = { backendTLS: { root: AUTHORITY, hostname: 'localhost' }, backendAuth: { key: 'k-123' } };
  const gate = await answeringGateway(
    {},
    {
      frontendPolicies: { accessLog: { otlp: { backend: 'otel', protocol: 'http', path: '/otlp/logs' } } },
      backends: [{ name: 'otel', host: hostOf(sink), policies }],
    },
  );
  await send(gate.url);
  await gate.close();
  expect(sink.records).toHaveLength(1);
  expect(sink.headers[0]).toMatchObject({ path: '/otlp/logs', authorization: 'Bearer k-123' });
});

test('a connection that is passed on has a record, unless there is a filter', async () => {
  const received: unknown[] = [];
  for (const filter of [undefined, 'true']) {
    await using sink = await collector('http');
    await using service = await httpUpstream((_, response) => response.end('reached'));
    const config = {
      frontendPolicies: {
        accessLog: { otlp: { host: hostOf(sink), protocol: 'http', ...(filter && { filter }) } },
      },
      binds: [
        { port: 0, listeners: [{ protocol: 'TCP', tcpRoutes: [{ backends: [{ host: service.address }] }] }] },
      ],
    };
    const gate = await gateway(JSON.stringify(config));
    await send(gate.url, { headers: { connection: 'close' } });
    await until(() => gate.accessLog.length === 1);
    await gate.close();
    received.push(sink.records.map(({ attributes }) => attributes['protocol']));
  }
  expect(received).toEqual([['tcp'], []]);
});

describe.concurrent('a collector that fails', () => {
  const endless = (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'application/x-protobuf' });
    const timer = setInterval(() => response.write(Buffer.alloc(16_384, 8)), 1);
    response.on('close', () => clearInterval(timer));
  };
  test.each<[string, (response: ServerResponse) => void, string]>([
    // Arize-ai/phoenix#7355: a server of traces only answers logs with 405.
    ['refuses the path', (response) => void response.writeHead(405).end(), 'status 405'],
    [
      'is a web server',
      (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
      'not OTLP',
    ],
    ['answers with other bytes', (response) => void response.writeHead(200).end('{"error": 1}'), 'not OTLP'],
    ['answers without end', endless, 'not OTLP'],
    ['breaks off', (response) => void response.destroy(), 'closed'],
    [
      'rejects the records',
      (response) => void response.writeHead(200).end(Buffer.from('0a020801', 'hex')),
      'rejected',
    ],
  ])('that %s loses records, which is logged, and no request', async (_, reply, problem) => {
    await using sink = await collector('http', { reply });
    await using gate = await exporting(sink, 'http');
    expect((await send(gate.url)).status).toBe(200);
    await until(() => lost(gate) !== undefined);
    expect(lost(gate)).toMatch(/lost=1 /);
    expect(lost(gate)).toContain(problem);
    const metrics = parseMetrics(await gate.running.metrics.render());
    expect(sampleValue(metrics, 'gw_access_log_records_lost_total')).toBe(1);
    expect((await send(gate.url)).status).toBe(200);
  });

  test('that is overloaded for a moment gets the records again', async () => {
    const reply = (response: ServerResponse, call: number): void =>
      void response.writeHead(call === 1 ? 503 : 200).end();
    await using sink = await collector('http', { reply });
    await using gate = await exporting(sink, 'http');
    await send(gate.url);
    await until(() => sink.headers.length === 2);
    await gate.close();
    expect([sink.records.length, lost(gate)]).toEqual([2, undefined]);
  });

  // elastic/integrations#20883: a receiver that hangs kept the workers of an application busy.
  test.each<[string, Protocol, () => Promise<{ readonly host: string } & AsyncDisposable>]>([
    ['takes records and never answers', 'grpc', () => hanging('grpc')],
    ['takes records and never answers', 'http', () => hanging('http')],
    ['says nothing', 'grpc', silent],
    ['refuses connections', 'grpc', refusing],
    ['refuses connections', 'http', refusing],
  ])('that %s (%s) delays neither requests nor the shutdown', async (_, protocol, open) => {
    await using target = await open();
    const otlp = { host: target.host, protocol };
    const gate = await answeringGateway({}, { frontendPolicies: { accessLog: { otlp } } });
    for (let count = 0; count < 30; count += 1) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => send(gate.url)));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    }
    const began = performance.now();
    await gate.close();
    // 1.5 s, and what a busy machine takes; an export alone would take 5 s.
    expect(performance.now() - began).toBeLessThan(4_500);
    expect(lost(gate)).toBeDefined();
  });
});

const hanging = async (protocol: Protocol): Promise<{ readonly host: string } & AsyncDisposable> => {
  const sink = await collector(protocol, { answers: false });
  return { host: hostOf(sink), [Symbol.asyncDispose]: () => sink[Symbol.asyncDispose]() };
};

const silent = async (): Promise<{ readonly host: string } & AsyncDisposable> => {
  const upstream = await rawUpstream(() => undefined);
  return { host: upstream.address, [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose]() };
};

const refusing = async (): Promise<{ readonly host: string } & AsyncDisposable> => ({
  host: `127.0.0.1:${await refusingPort()}`,
  [Symbol.asyncDispose]: () => Promise.resolve(),
});

test('a reload sends queued records to the former collector, and later ones to the new one', async () => {
  await using before = await collector('http');
  await using after = await collector('http');
  await using folder = await temporaryFolder();
  await using gate = await exporting(before, 'http', {}, { options: { live: 'asked', folder: folder.path } });
  await send(`${gate.url}/1`);
  const yaml = gate.live.served.source.text.replace(hostOf(before), hostOf(after));
  writeFileSync(`${folder.path}/test.yaml`, yaml);
  await gate.live.reload();
  await send(`${gate.url}/2`);
  await until(() => before.records.length === 1 && after.records.length === 1);
  expect([before, after].map(({ records }) => records[0]?.attributes['http.path'])).toEqual(['/1', '/2']);
});

test.each([
  [{ protocol: 'http' }, 'expected exactly one of `host` and `backend`'],
  [{ host: 'a:1', backend: 'b' }, 'expected exactly one of `host` and `backend`'],
  [{ service: { name: 'a', port: 1 }, host: 'a:1' }, 'service'],
  [{ host: 'a:1', fields: { add: { x: '1 +' } } }, 'frontendPolicies.accessLog.otlp.fields.add.x'],
  [{ host: 'a:1', filter: '1 +' }, 'frontendPolicies.accessLog.otlp.filter'],
])('accessLog.otlp %j is refused', async (otlp, message) => {
  await expect(answeringGateway({}, { frontendPolicies: { accessLog: { otlp } } })).rejects.toThrow(message);
});
