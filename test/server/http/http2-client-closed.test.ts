import { once } from 'node:events';
import { constants } from 'node:http2';
import { expect, test } from 'vitest';
import { GOOD_TLS } from '../../kit/certificates.ts';
import { chaos } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { answerOf, http2Client } from '../../kit/http2.ts';
import { llmProvider } from '../../kit/llm-provider.ts';
import { INITIALIZE, MCP_HEADERS } from '../../kit/mcp.ts';
import { parseMetrics } from '../../kit/open-metrics.ts';
import { until } from '../../kit/until.ts';
import { type Answer, httpUpstream } from '../../kit/upstream.ts';

/** More than the window of a stream: the end cannot be sent before the client has read. */
const LARGE = 'x'.repeat(1_000_000);

/** A gateway with TLS and one backend, and a client that keeps its HTTP/2 connection open. */
const behindTls = async (backend: object) => {
  const routes = [{ backends: [backend] }];
  const gate = await gateway(JSON.stringify({ gateways: { default: { port: 0, tls: GOOD_TLS, routes } } }));
  const client = await http2Client(gate.port);
  return {
    gate,
    client,
    [Symbol.asyncDispose]: async () => {
      await client[Symbol.asyncDispose]();
      await gate.close();
    },
  };
};

const answer: Answer = (request, response) => {
  if (request.url === '/streamed') {
    response.write('one');
    setImmediate(() => response.end('two'));
  } else if (request.url === '/begun') response.write('part');
  else if (request.url === '/large') response.end(LARGE);
  else if (request.url === '/empty') response.writeHead(204).end();
  else if (request.url !== '/silent') response.end('ok');
};

const POST = { ':method': 'POST' };

const reasonOf = async (gate: TestGateway, count: number): Promise<string | undefined> =>
  (await gate.accessLine(count))['reason'];

test('a POST over HTTP/2 whose answer was read is not logged or counted as left by the client', async () => {
  await using upstream = await httpUpstream(answer);
  await using all = await behindTls({ host: upstream.address });
  const paths = ['/', '/streamed', '/large', '/empty'];
  for (const [index, path] of paths.entries()) {
    await all.client.send({ ...POST, ':path': path }, 'body');
    expect([path, await reasonOf(all.gate, index + 1)]).toEqual([path, undefined]);
  }
  const counted = parseMetrics(await all.gate.running.metrics.render()).get('gw_requests')?.samples;
  expect(counted?.length).toBeGreaterThan(0);
  expect(counted?.filter(({ labels }) => labels['reason'] === 'ClientClosed')).toEqual([]);
});

test('LLM calls over HTTP/2 whose answers were read, whole and streamed, are not logged as left by the client', async () => {
  const chunk = { choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }] };
  const message = {
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  };
  await using provider = await llmProvider((_, response, { body }) => {
    const isStream = body.includes('"stream":true');
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
    if (isStream) response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
    else response.end(JSON.stringify(message));
  });
  await using all = await behindTls({
    ai: { name: 'acme', hostOverride: provider.address, provider: { openAI: {} } },
  });
  for (const [index, stream] of [false, true].entries()) {
    const call = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], stream });
    const headers = { ...POST, ':path': '/v1/chat/completions', 'content-type': 'application/json' };
    const { status, text } = await all.client.send(headers, call);
    expect([status, text.includes('Hi')]).toEqual([200, true]);
    expect([stream, await reasonOf(all.gate, index + 1)]).toEqual([stream, undefined]);
  }
});

test('an MCP call over HTTP/2 whose answer was read is not logged as left by the client', async () => {
  await using all = await behindTls({ mcp: { targets: [chaos('a')] } });
  const headers = { ...POST, ':path': '/mcp', ...MCP_HEADERS };
  const { status } = await all.client.send(headers, JSON.stringify(INITIALIZE));
  expect([status, await reasonOf(all.gate, 1)]).toEqual([200, undefined]);
});

test('an HTTP/2 client that ends its body late, or before the answer begins, has not left', async () => {
  const waiting: (() => void)[] = [];
  await using upstream = await httpUpstream(
    (request, response) => {
      if (request.url === '/late') response.write('begun');
      request.on('end', () => waiting.push(() => response.end('done'))).resume();
    },
    { streaming: true },
  );
  await using all = await behindTls({ host: upstream.address });
  for (const [index, path] of ['/late', '/early'].entries()) {
    const stream = all.client.open({ ...POST, ':path': path });
    const read = answerOf(stream);
    stream.write('one');
    if (path === '/late') await once(stream, 'data');
    stream.end('two');
    await until(() => waiting.length === index + 1);
    waiting[index]?.();
    expect((await read).text).toContain('done');
    expect([path, await reasonOf(all.gate, index + 1)]).toEqual([path, undefined]);
  }
});

test.each([
  ['CANCEL', constants.NGHTTP2_CANCEL],
  ['NO_ERROR', constants.NGHTTP2_NO_ERROR],
])(
  'an HTTP/2 client that resets its POST with %s is logged as gone, before and during the answer',
  async (_, code) => {
    await using upstream = await httpUpstream(answer);
    await using all = await behindTls({ host: upstream.address });
    for (const [index, path] of ['/silent', '/begun', '/large'].entries()) {
      const stream = all.client.open({ ...POST, ':path': path });
      stream.end('body');
      if (path === '/silent') await until(() => upstream.received.length === 1);
      else await once(stream, 'response');
      stream.close(code);
      expect([path, await reasonOf(all.gate, index + 1)]).toEqual([path, 'ClientClosed']);
    }
  },
);

test('an HTTP/2 client that resets its POST with NO_ERROR while the end of a small answer waits for it is logged as gone', async () => {
  await using upstream = await httpUpstream(answer);
  await using all = await behindTls({ host: upstream.address });
  const { session } = all.client;
  await new Promise<void>((resolve) => session.settings({ initialWindowSize: 1 }, () => resolve()));
  const stream = all.client.open(POST);
  stream.end('body');
  await once(stream, 'response');
  stream.close(constants.NGHTTP2_NO_ERROR);
  expect(await all.gate.accessLine(1)).toMatchObject({ 'http.status': '200', reason: 'ClientClosed' });
});

test('a lost HTTP/2 connection during an answer to a POST is logged as a client that has left', async () => {
  await using upstream = await httpUpstream(answer);
  await using all = await behindTls({ host: upstream.address });
  const stream = all.client.open({ ...POST, ':path': '/large' });
  stream.end('body');
  await once(stream, 'response');
  all.client.session.destroy();
  expect(await reasonOf(all.gate, 1)).toBe('ClientClosed');
});
