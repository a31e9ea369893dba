import { describe, expect, test } from 'vitest';
import type { CallSpan } from '../../../src/server/kernel/observer.ts';
import { withTraceMeta } from '../../../src/server/mcp/connection/call-trace.ts';
import { parseMessage } from '../../../src/server/mcp/protocol/message.ts';
import { parseTraceparent } from '../../../src/server/observe/otlp/tracing.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { answering, chat, completion, llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { openSession } from '../../kit/mcp.ts';
import { parseMetrics, sampleValue } from '../../kit/open-metrics.ts';
import { collector, type ReceivedSpan } from '../../kit/otlp.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { openTrace, traceServer } from '../../kit/trace.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { covers, verifies } from '../../kit/verifies.ts';

covers('gateway.service.8.traces', 'gateway.config.tracing.otlp', 'gateway.config.tracing.sampling');

const tracing = (url: string, more: object = {}): object => ({
  config: { tracing: { otlpEndpoint: url, randomSampling: true, ...more } },
});
const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00';
const server = (spans: readonly ReceivedSpan[]): ReceivedSpan =>
  spans.find(({ kind }) => kind === 2) as ReceivedSpan;
const client = (spans: readonly ReceivedSpan[]): ReceivedSpan =>
  spans.find(({ kind }) => kind === 3) as ReceivedSpan;

describe('exported traces', () => {
  verifies(
    ['gateway.traces.export', 'gateway.traces.cost'],
    'an LLM call is exported over gRPC as one server and one client span with its cost',
    async () => {
      await using sink = await collector('grpc');
      await using provider = await llmProvider();
      const modelCatalog = [
        {
          inline: {
            providers: { openai: { models: { 'acme-mini-1': { rates: { input: '1', output: '2' } } } } },
          },
        },
      ];
      const { config } = tracing(sink.url) as { config: object };
      await using gate = await llmGateway(provider, { more: { config: { ...config, modelCatalog } } });
      await chat(gate);
      const line = await gate.accessLine(1);
      await gate.close();
      const request = server(sink.spans);
      const call = client(sink.spans);
      expect(sink.spans).toHaveLength(2);
      expect(request).toMatchObject({
        name: 'POST /*',
        parentSpanId: '',
        status: { code: 0 },
        traceId: line['trace.id'],
        spanId: line['span.id'],
        resource: { 'service.name': 'agctl' },
        attributes: {
          'http.response.status_code': 200,
          'gen_ai.request.model': 'acme-mini',
          'gw.ai.usage.cost.total': 0.000026,
          'gw.ai.usage.cost.input': 0.000012,
          'gw.ai.usage.cost.output': 0.000014,
          'gw.ai.usage.cost.cache_read': 0,
          duration: expect.any(Number),
          'server.address': '127.0.0.1',
          'server.port': gate.port,
          'url.scheme': 'http',
          'network.protocol.version': '1.1',
        },
      });
      expect(call).toMatchObject({
        name: 'chat acme-mini',
        traceId: request.traceId,
        parentSpanId: request.spanId,
        attributes: {
          'agentgateway.outbound.kind': 'Primary',
          'agentgateway.outbound.subtype': 'Llm',
          'http.response.status_code': 200,
          'server.address': '127.0.0.1',
          'server.port': provider.port,
          'gen_ai.usage.input_tokens': 12,
          'gen_ai.usage.output_tokens': 7,
        },
      });
      // strands-agents/harness-sdk#1267, pydantic/pydantic-ai#3995: pages that add up the spans of a trace, such as those of
      // Langfuse, count tokens twice that a parent has too.
      expect(Object.keys(request.attributes).filter((name) => /tokens/.test(name))).toEqual([]);
      expect(line['gen_ai.usage.input_tokens']).toBe('12');
      expect(provider.received[0]?.headers['traceparent']).toBe(`00-${call.traceId}-${call.spanId}-01`);
      expect(sink.headers[0]?.[':path']).toBe('/opentelemetry.proto.collector.trace.v1.TraceService/Export');
    },
  );

  test('a call that a policy repeats has its tokens in the span of the answered request', async () => {
    await using sink = await collector('http');
    let calls = 0;
    await using provider = await llmProvider((request, response, received) => {
      calls += 1;
      if (calls === 1) return void response.writeHead(503).end();
      return answering(completion('Hello.'))(request, response, received);
    });
    const { config } = tracing(sink.url, { otlpProtocol: 'http' }) as { config: object };
    const gate = await llmGateway(provider, {
      llm: { policies: { retry: { attempts: 2, codes: [503] } } },
      more: { config },
    });
    expect((await chat(gate)).status).toBe(200);
    await gate.close();
    const counted = sink.spans.map(({ kind, attributes }) => [
      kind,
      attributes['http.response.status_code'],
      attributes['gen_ai.usage.input_tokens'],
    ]);
    expect(counted.toSorted()).toEqual([
      [2, 200, undefined],
      [3, 200, 12],
      [3, 503, undefined],
    ]);
  });

  test('a 5xx response of a service or provider sets the span status to error', async () => {
    await using sink = await collector('http');
    await using provider = await llmProvider(answering('{"error":{"message":"no","code":"oops"}}', 500));
    await using other = await httpUpstream((_, response) => response.writeHead(503).end());
    const settings = tracing(sink.url, { otlpProtocol: 'http' }) as { config: object };
    const model = await llmGateway(provider, { more: settings });
    const plain = await proxyGateway(other.address, {}, settings);
    await chat(model);
    await send(plain.url);
    await Promise.all([model.accessLine(1), plain.accessLine(1)]);
    await Promise.all([model.close(), plain.close()]);
    const statuses = sink.spans
      .filter(({ kind }) => kind === 2)
      .map(({ attributes, status }) => [
        attributes['http.response.status_code'],
        status.code,
        attributes['error.type'],
      ]);
    expect(statuses.toSorted()).toEqual([
      [500, 2, 'oops'],
      [503, 2, '503'],
    ]);
  });

  test('the service name of a trace comes from the environment', async () => {
    await using sink = await collector('http');
    const yaml = routesConfig(
      [{ policies: { directResponse: { body: 'x' } } }],
      tracing(sink.url, { otlpProtocol: 'http' }),
    );
    const gate = await gateway(yaml, { env: { OTEL_SERVICE_NAME: 'edge-eu' } });
    await send(gate.url);
    await gate.accessLine(1);
    await gate.close();
    expect(sink.spans.map(({ resource }) => resource['service.name'])).toEqual(['edge-eu']);
  });

  test('an MCP call is exported as one server and one client span', async () => {
    await using sink = await collector('http');
    const more = tracing(sink.url, { otlpProtocol: 'http', headers: { 'x-key': 'k' } }) as { config: object };
    const gate = await gateway(mcpConfig([chaos('a', '--tools=echo')], more));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/call', { name: 'echo', arguments: {} });
    await until(() => gate.accessLog.length === 3);
    await gate.close();
    const spans = sink.spans.filter(({ attributes }) => attributes['mcp.method.name'] === 'tools/call');
    expect(spans).toHaveLength(2);
    expect(server(spans)).toMatchObject({
      name: 'tools/call echo',
      attributes: { 'gen_ai.tool.name': 'echo' },
    });
    expect(client(spans)).toMatchObject({
      name: 'tools/call echo',
      traceId: server(spans).traceId,
      parentSpanId: server(spans).spanId,
      attributes: { 'mcp.target': 'a', 'agentgateway.outbound.subtype': 'Mcp' },
    });
    expect(sink.headers[0]).toMatchObject({ path: '/v1/traces', 'x-key': 'k' });
  });

  test('a tool result with isError sets both spans to error', async () => {
    await using sink = await collector('http');
    const more = tracing(sink.url, { otlpProtocol: 'http' }) as { config: object };
    const gate = await gateway(mcpConfig([chaos('a')], more));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/call', { name: 'fail', arguments: {} });
    await until(() => gate.accessLog.length === 3);
    await gate.close();
    const spans = sink.spans.filter(({ attributes }) => attributes['mcp.method.name'] === 'tools/call');
    for (const span of [server(spans), client(spans)])
      expect(span.status).toEqual({ code: 2, message: 'the tool reported an error (isError)' });
    expect(server(spans).attributes).toMatchObject({
      'error.type': 'tool_error',
      'http.response.status_code': 200,
    });
  });

  test('a trace continues that of the client, replaces its traceparent upstream, and reports failures', async () => {
    await using sink = await collector('grpc');
    await using upstream = await httpUpstream((_, response) => response.writeHead(503).end());
    const gate = await proxyGateway(upstream.address, {}, tracing(sink.url, { randomSampling: false }));
    await send(`${gate.url}/none`);
    await send(`${gate.url}/traced?secret=1`, { headers: { traceparent: PARENT } });
    await until(() => gate.accessLog.length === 2);
    await gate.close();
    expect(sink.spans).toHaveLength(2);
    expect(server(sink.spans)).toMatchObject({
      traceId: PARENT.slice(3, 35),
      parentSpanId: PARENT.slice(36, 52),
    });
    expect(client(sink.spans)).toMatchObject({
      status: { code: 2, message: '' },
      attributes: { 'url.full': `http://${upstream.address}/traced`, 'http.response.status_code': 503 },
    });
    expect(upstream.received[1]?.headers['traceparent']).toBe(
      `00-${PARENT.slice(3, 35)}-${client(sink.spans).spanId}-01`,
    );
    expect(gate.accessLog[0]).not.toContain('trace.id');
  });

  test('traces are sampled, filtered and changed by expressions', async () => {
    await using sink = await collector('grpc');
    await using upstream = await httpUpstream((_, response) => response.end());
    const frontendPolicies = {
      tracing: {
        host: sink.url.slice('http://'.length),
        randomSampling: 'request.path.startsWith("/yes")',
        clientSampling: false,
        filter: 'response.code == 200 && request.path != "/yes/not"',
        attributes: { 'span.name': '"mine"', agent: 'request.headers["user-agent"]' },
        resources: { 'service.name': 'edge' },
        remove: ['src.addr'],
      },
    };
    const gate = await proxyGateway(upstream.address, {}, { frontendPolicies });
    await using watched = await traceServer(gate.running);
    await using watcher = await openTrace(watched, '?follow=true');
    for (const path of ['/no', '/yes/not', '/yes'])
      await send(gate.url + path, { headers: { 'user-agent': 'me' } });
    await send(`${gate.url}/yes/client`, { headers: { traceparent: PARENT } });
    await until(() => gate.accessLog.length === 4);
    await until(() => watcher.of('requestFinished').length === 4);
    expect(watcher.of('traceSampling').map(({ decision }) => decision)).toEqual([
      'not sampled (random)',
      'sample (random)',
      'sample (random)',
      'not sampled (client)',
    ]);
    await gate.close();
    expect(sink.spans).toHaveLength(2);
    expect(server(sink.spans)).toMatchObject({
      name: 'mine',
      attributes: { agent: 'me', 'url.path': '/yes' },
      resource: { 'service.name': 'edge' },
    });
    // By its name in the access log.
    expect(Object.keys(server(sink.spans).attributes).join()).not.toMatch(/src\.addr|client\.|peer/);
  });

  test('an unreachable or silent collector does not delay requests', async () => {
    await using silent = await collector('grpc', { answers: false });
    await using upstream = await httpUpstream((_, response) => response.end('ok'));
    for (const url of ['http://127.0.0.1:1', silent.url]) {
      const gate = await proxyGateway(upstream.address, {}, tracing(url));
      expect((await send(gate.url)).text).toBe('ok');
      await until(() => gate.accessLog.length === 1);
      const started = performance.now();
      await gate.close();
      expect(performance.now() - started).toBeLessThan(6000);
      expect(gate.log.join('')).toMatch(/telemetry::trace\tspans were lost.* collector="127\.0\.0\.1:\d+"/);
      // An empty heading that the gRPC library prints.
      expect(gate.log.join('')).not.toContain('Resolution note');
      const metrics = parseMetrics(await gate.running.metrics.render());
      expect(sampleValue(metrics, 'gw_trace_spans_lost_total')).toBe(2);
    }
  });

  test('tracing that is configured twice is a configuration error', async () => {
    const both = { ...tracing('http://127.0.0.1:1'), frontendPolicies: { tracing: { host: '127.0.0.1:1' } } };
    await expect(proxyGateway('127.0.0.1:1', {}, both)).rejects.toThrow(
      'cannot use deprecated config.tracing together with frontendPolicies.tracing',
    );
  });
});

test.each([
  [
    '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1.0}}',
    '"params":{"_meta":{"traceparent":"T"},"a":1.0}}',
  ],
  ['{"jsonrpc":"2.0","id":1,"method":"m","params":{ }}', '"params":{"_meta":{"traceparent":"T"} }}'],
  [
    '{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":7}}}',
    '"_meta":{"traceparent":"T","progressToken":7}}}',
  ],
  [
    '{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":"old"}}}',
    '"_meta":{"traceparent":"T"}}}',
  ],
  ['{"jsonrpc":"2.0","id":1,"method":"m"}', '"method":"m"}'],
])('a target receives the traceparent in _meta: %s', (text, end) => {
  const span = { traceparent: PARENT } as CallSpan;
  const told = withTraceMeta(parseMessage(text), span).text;
  expect(told.replace(span.traceparent, 'T').slice(-end.length)).toBe(end);
});

test.each([
  [[PARENT], true],
  [[`01${PARENT.slice(2)}-more`], true],
  [[], false],
  [[PARENT, PARENT], false],
  [[`${PARENT}-more`], false],
  [[PARENT.toUpperCase()], false],
  [[`ff${PARENT.slice(2)}`], false],
  [[PARENT.replace(/-0af[0-9a-f]+/, `-${'0'.repeat(32)}`)], false],
  [[PARENT.replace('b7ad6b7169203331', '0'.repeat(16))], false],
])('traceparent %j is valid: %s', (values, isValid) => {
  expect(parseTraceparent(values) !== undefined).toBe(isValid);
});
