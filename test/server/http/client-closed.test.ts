import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway, parseAccessLine, type TestGateway } from '../../kit/gateway.ts';
import { llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { MCP_HEADERS, openSession } from '../../kit/mcp.ts';
import { parseMetrics } from '../../kit/open-metrics.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

interface Sent {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  /** Disconnects when this resolves, or by default at the first bytes of the response. */
  readonly leave?: () => Promise<unknown>;
}

/** Sends a request, disconnects before the end of the response, and returns the access-log line. */
async function leaveFrom(gate: TestGateway, { path = '/', headers, body, leave }: Sent) {
  const before = gate.accessLog.length;
  const method = body === undefined ? 'GET' : 'POST';
  const sent = request(`${gate.url}${path}`, { method, ...(headers && { headers }) });
  sent.on('error', () => undefined).end(body);
  if (leave === undefined) {
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    answer.on('error', () => undefined);
    await once(answer, 'data');
  } else await leave();
  sent.destroy();
  return gate.accessLine(before + 1);
}

/** The fields of a line that describe how the request ended. */
const endOf = (line: Record<string, string>) => ({
  status: line['http.status'],
  reason: line['reason'],
  error: line['error'],
  detail: line['error.detail'],
});

const CLOSED = { reason: 'ClientClosed', error: undefined, detail: undefined };

test('a client disconnect during a plain HTTP request is logged and counted before and during the response', async () => {
  await using upstream = await httpUpstream((incoming, response) => {
    if (incoming.url === '/begun') response.writeHead(200).write('part');
  });
  await using gate = await proxyGateway(upstream.address);
  const asked = await leaveFrom(gate, { leave: () => until(() => upstream.received.length === 1) });
  expect(endOf(asked)).toEqual({ status: '499', ...CLOSED });
  const begun = await leaveFrom(gate, { path: '/begun' });
  expect(endOf(begun)).toEqual({ status: '200', ...CLOSED });
  const families = parseMetrics(await gate.running.metrics.render());
  const counted = families
    .get('gw_requests')
    ?.samples.map(({ labels }) => `${labels['status']} ${labels['reason']}`);
  expect(counted?.toSorted()).toEqual(['200 ClientClosed', '499 ClientClosed']);
});

test('a client disconnect is logged while the request body is sent and while a policy waits for a service', async () => {
  await using upstream = await httpUpstream((incoming) => void incoming.resume(), { streaming: true });
  await using gate = await proxyGateway(upstream.address);
  const sent = request(gate.url, { method: 'POST', headers: { 'content-length': 1_000_000 } });
  sent.on('error', () => undefined).write('x');
  await until(() => upstream.received.length === 1);
  sent.destroy();
  expect(endOf(await gate.accessLine(1))).toEqual({ status: '499', ...CLOSED });
  await using authz = await httpUpstream(() => undefined);
  const policies = { extAuthz: { host: authz.address, protocol: { http: {} } } };
  await using guarded = await proxyGateway(upstream.address, policies);
  const asked = await leaveFrom(guarded, { leave: () => until(() => authz.received.length === 1) });
  expect(endOf(asked)).toEqual({ status: '499', ...CLOSED });
});

test('a client disconnect during an LLM call is logged before the response, in a stream and in a whole response', async () => {
  const chunk = { choices: [{ index: 0, delta: { content: 'Hi' } }] };
  await using provider = await llmProvider((_, response, { body }) => {
    if (body.includes('"silent"')) return;
    const isStream = body.includes('"stream":true');
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
    // A short answer is only sent when it is complete.
    response.write(isStream ? `data: ${JSON.stringify(chunk)}\n\n` : `{"choices":[${' '.repeat(200_000)}`);
  });
  await using gate = await llmGateway(provider);
  const headers = { 'content-type': 'application/json' };
  const ask = (content: string, more: object = {}): Sent => ({
    path: '/v1/chat/completions',
    headers,
    body: JSON.stringify({ model: 'acme-mini', messages: [{ role: 'user', content }], ...more }),
  });
  const leave = (): Promise<unknown> => until(() => provider.received.length === 1);
  expect(endOf(await leaveFrom(gate, { ...ask('silent'), leave }))).toEqual({ status: '499', ...CLOSED });
  expect(endOf(await leaveFrom(gate, ask('x', { stream: true })))).toEqual({ status: '200', ...CLOSED });
  expect(endOf(await leaveFrom(gate, ask('x')))).toEqual({ status: '200', ...CLOSED });
});

test('a client disconnect during an MCP call is logged before and after the response head', async () => {
  await using gate = await gateway(mcpConfig([chaos('a')]));
  const session = await openSession(`${gate.url}/mcp`);
  const headers = { ...MCP_HEADERS, 'mcp-session-id': session.id };
  const params = { name: 'hang', arguments: {} };
  const call = {
    path: '/mcp',
    headers,
    body: JSON.stringify({ jsonrpc: '2.0', id: 'x', method: 'tools/call', params }),
  };
  // An answered ping shows that the target runs and that the call before it has arrived.
  const early = await leaveFrom(gate, { ...call, leave: () => session.request('ping') });
  expect(early['mcp.method.name']).toBe('ping');
  const hangs = (): Record<string, string>[] =>
    gate.accessLog.map(parseAccessLine).filter((line) => line['gen_ai.tool.name'] === 'hang');
  await until(() => hangs().length === 1);
  expect(hangs().map(endOf)).toEqual([{ status: '499', ...CLOSED }]);
  const sent = request(session.url, { method: 'POST', headers }).on('error', () => undefined);
  sent.end(call.body);
  // The head of a slow call is sent before its first event.
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.on('error', () => undefined);
  sent.destroy();
  await until(() => hangs().length === 2);
  expect(hangs().map(endOf)[1]).toEqual({ status: '200', ...CLOSED });
});

test('what an upstream sends before it ends or breaks its response early reaches the client, and the failure is logged', async () => {
  const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  await using upstream = await httpUpstream((incoming, response) => {
    if (incoming.url === '/ended') response.write('part', () => response.destroy());
    else response.socket?.end(`${head}4\r\npart\r\nnot a length\r\n`);
  });
  await using gate = await proxyGateway(upstream.address);
  for (const [index, path] of ['/ended', '/malformed'].entries()) {
    const sent = request(gate.url + path).on('error', () => undefined);
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    let received = '';
    answer
      .on('error', () => undefined)
      .on('data', (chunk: Buffer) => {
        received += chunk.toString();
      });
    await new Promise((resolve) => answer.on('close', resolve));
    expect(received).toBe('part');
    const line = await gate.accessLine(index + 1);
    expect(line).toMatchObject({ 'http.status': '200', reason: 'UpstreamFailure' });
  }
});

test('a request aborted at the drain deadline is not logged as a client disconnect', async () => {
  await using upstream = await httpUpstream((_, response) => {
    response.writeHead(200).write('part');
  });
  await using gate = await proxyGateway(
    upstream.address,
    {},
    { config: { connectionTerminationDeadline: '50ms' } },
  );
  const sent = request(gate.url).on('error', () => undefined);
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.on('error', () => undefined).resume();
  await gate.close();
  expect(endOf(await gate.accessLine(1))).toMatchObject({
    reason: 'Timeout',
    error: 'the gateway is closing this port, and the drain timeout has expired',
  });
});
