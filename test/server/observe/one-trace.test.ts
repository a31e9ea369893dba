import { expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { chaos } from '../../kit/config.ts';
import { gateway, parseAccessLine } from '../../kit/gateway.ts';
import { chat, llmProvider } from '../../kit/llm-provider.ts';
import { type Json, openSession } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { collector, type ReceivedSpan } from '../../kit/otlp.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CLIENT = 'b7ad6b7169203331';
const traceparent = `00-${TRACE}-${CLIENT}-01`;
const SERVER_SPAN = 2;
const CLIENT_SPAN = 3;

/** Access log fields that spans express differently: a failure is the span's status. */
const ONLY_IN_LOG = new Set(['error', 'trace.id', 'span.id']);

/** Access log fields with another name in the OpenTelemetry conventions. */
const IN_SPAN: Readonly<Record<string, string>> = {
  'src.addr': 'client.address',
  'http.method': 'http.request.method',
  'http.host': 'server.address',
  'http.path': 'url.path',
  'http.version': 'network.protocol.version',
  'http.status': 'http.response.status_code',
};

function pairOf(
  spans: readonly ReceivedSpan[],
  isIt: (span: ReceivedSpan) => boolean,
): { request: ReceivedSpan; calls: ReceivedSpan[] } {
  const request = spans.find((span) => span.kind === SERVER_SPAN && isIt(span));
  if (request === undefined) throw new Error(`no such span among ${spans.map(({ name }) => name).join()}`);
  const calls = spans.filter(
    ({ kind, parentSpanId }) => kind === CLIENT_SPAN && parentSpanId === request.spanId,
  );
  return { request, calls };
}

test('MCP tool calls and LLM calls under one traceparent form one connected trace', async () => {
  await using sink = await collector('grpc');
  await using provider = await llmProvider();
  await using http = await mcpUpstream({ name: 'web' });
  const targets = [
    chaos('child', '--tools=received'),
    { name: 'web', mcp: { host: http.url } },
    { name: 'dead', mcp: { host: 'http://127.0.0.1:1/mcp' } },
  ];
  const rates = { input: '1', output: '2' };
  const modelCatalog = [{ inline: { providers: { openai: { models: { 'acme-mini-1': { rates } } } } } }];
  const gate = await gateway(
    JSON.stringify({
      config: {
        adminAddr: 'off',
        connectionTerminationDeadline: '100ms',
        tracing: { otlpEndpoint: sink.url },
        modelCatalog,
      },
      gateways: { tools: { port: 0, routes: [{ backends: [{ mcp: { targets } }] }] } },
      llm: {
        port: 0,
        models: [{ name: '*', provider: 'oaiCompat', params: { baseUrl: `http://${provider.address}/v1` } }],
      },
    }),
    { admin: true },
  );
  const urlOf = (isTools: boolean): string => {
    const open = gate.running.listeners.find(({ gateway: { plan } }) => (plan.name === 'tools') === isTools);
    return `http://127.0.0.1:${open?.port}`;
  };
  const session = await openSession(`${urlOf(true)}/mcp`, { traceparent });
  const child = await session.request('tools/call', { name: 'child_received', arguments: {} });
  await session.request('tools/call', { name: 'web_say', arguments: { message: 'hi' } });
  await session.request('tools/list');

  const url = urlOf(false);
  expect((await chat({ url }, undefined, { traceparent })).status).toBe(200);
  await until(() => gate.accessLog.length === 6);
  // The queue of the exporter is listed whether or not it has spans.
  const memory = JSON.parse((await send(`${gate.admin}/memory`)).text) as { bounds: object[] };
  expect(memory.bounds).toContainEqual({
    name: 'tracing.spans',
    used: expect.any(Number),
    max: LIMITS.spanQueue,
  });
  await gate.close();

  const { spans } = sink;
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
  const known = new Set([CLIENT, ...spans.map(({ spanId }) => spanId)]);
  expect(spans.filter(({ parentSpanId }) => !known.has(parentSpanId))).toEqual([]);
  const contextOf = (span: ReceivedSpan | undefined): string => `00-${TRACE}-${span?.spanId}-01`;

  // A child process gets no headers: the trace context is in the message.
  const stdio = pairOf(spans, ({ attributes }) => attributes['mcp.target'] === 'child');
  const lines = JSON.parse(child.result.content[0].text) as string[];
  const got = lines.map((line) => JSON.parse(line) as Json).find(({ method }) => method === 'tools/call');
  expect(got.params['_meta']).toEqual({ traceparent: contextOf(stdio.calls[0]) });

  const web = pairOf(spans, ({ attributes }) => attributes['mcp.target'] === 'web');
  expect(http.of('tools/call').map(({ headers }) => headers['traceparent'])).toEqual([
    contextOf(web.calls[0]),
  ]);

  // Every target that was called has its own span; the unavailable one was never called.
  const list = pairOf(spans, ({ name }) => name === 'tools/list');
  expect(list.calls.map(({ name }) => name).sort()).toEqual(['tools/list child', 'tools/list web']);
  const listed = http.of('tools/list')[0];
  expect(listed?.headers['traceparent']).toBe(
    contextOf(list.calls.find(({ attributes }) => attributes['mcp.target'] === 'web')),
  );
  expect(listed?.message.params['_meta'].traceparent).toBe(listed?.headers['traceparent']);

  const model = pairOf(spans, ({ attributes }) => 'gen_ai.request.model' in attributes);
  expect(model.request.attributes).toMatchObject({
    'gw.ai.usage.cost.total': 0.000026,
    'gw.ai.usage.cost.input': 0.000012,
    'gw.ai.usage.cost.output': 0.000014,
  });
  expect(provider.received[0]?.headers['traceparent']).toBe(contextOf(model.calls[0]));

  // The attributes are the fields of the access log. Tokens stand in the span of the call, which backends add up.
  for (const line of gate.accessLog.map(parseAccessLine)) {
    const own = (field: string): readonly ReceivedSpan[] =>
      spans.filter((span) =>
        field.startsWith('gen_ai.usage.')
          ? span.parentSpanId === line['span.id']
          : span.spanId === line['span.id'],
      );
    for (const field of Object.keys(line)) {
      if (ONLY_IN_LOG.has(field)) continue;
      const attributes = own(field).flatMap((span) => Object.keys(span.attributes));
      expect(attributes.filter((name) => name === (IN_SPAN[field] ?? field))).toHaveLength(1);
    }
  }
});
