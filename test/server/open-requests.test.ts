import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { llmCall } from '../../src/server/llm/llm-call.ts';
import { AT_ONCE } from '../kit/at-once.ts';
import type { TestGateway } from '../kit/gateway.ts';
import {
  CHAT,
  chat,
  chunk,
  completion,
  errorOf,
  guardrail,
  llmGateway,
  llmProvider,
  streaming,
  webhook,
} from '../kit/llm-provider.ts';
import { parseMetrics } from '../kit/open-metrics.ts';
import { rawRequest, sendRaw } from '../kit/raw-http.ts';
import { proxyGateway } from '../kit/routes.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { httpUpstream } from '../kit/upstream.ts';

// Responses to requests that are open at the drain deadline. The signal itself: test/cli/serve.test.ts.

const MESSAGE = 'the gateway is closing this port, and the drain timeout has expired';
const short = { config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' } };

const isOpen = ({ running }: TestGateway) => until(() => running.openRequests.size === 1);

/** The one access-log line after the gateway has closed, whose log reports one cut request. */
async function cutLine(gate: TestGateway): Promise<Record<string, string>> {
  const line = await gate.accessLine(1);
  expect(gate.accessLog).toHaveLength(1);
  expect(gate.log.filter((line) => line.includes('\t1 request was aborted at the deadline'))).toHaveLength(1);
  return line;
}

test('a request without a response at the drain deadline gets 503 with response policies and is counted once', async () => {
  await using backend = await httpUpstream(() => undefined);
  const cors = { allowOrigins: ['https://app.example'] };
  await using gate = await proxyGateway(backend.address, { cors }, short);
  const call = send(gate.url, { headers: { origin: 'https://app.example' } });
  await until(() => backend.received.length === 1);
  await gate.close();
  expect(await call).toMatchObject({
    status: 503,
    text: MESSAGE,
    headers: { connection: 'close', 'access-control-allow-origin': 'https://app.example' },
  });
  expect(await cutLine(gate)).toMatchObject({ 'http.status': '503', error: MESSAGE, reason: 'Timeout' });
  const requests = parseMetrics(await gate.running.metrics.render()).get('gw_requests')?.samples;
  expect(requests?.map(({ labels: { status, reason }, value }) => [status, reason, value])).toEqual([
    ['503', 'Timeout', 1],
  ]);
});

test.each([
  ['that a route of models reads', () => llmProvider(), (address: string) => llmGateway({ address })],
  [
    'that goes on to its backend',
    () => httpUpstream(() => undefined, { streaming: true }),
    (address: string) => proxyGateway(address, {}, short),
  ],
])('an upload %s gets 503 at the drain deadline', async (_, upstream, open) => {
  await using backend = await upstream();
  await using gate = await open(backend.address);
  const head = rawRequest('POST /v1/chat/completions HTTP/1.1', ['Content-Length: 1000000'], '{"model":');
  const reply = sendRaw(gate.port, head);
  await isOpen(gate);
  await gate.close();
  const { statuses, text, closed } = await reply;
  expect([statuses, closed]).toEqual([[503], true]);
  expect(text).toMatch(/\r\nconnection: close\r\n/i);
  expect(text).toContain(MESSAGE);
  expect(await cutLine(gate)).toMatchObject({ 'http.status': '503', error: MESSAGE });
});

test("an LLM call that waits for a guardrail gets 503 in the API's error format at the drain deadline", async () => {
  await using hook = await httpUpstream(() => undefined);
  await using provider = await llmProvider();
  await using gate = await llmGateway(provider, { model: { guardrails: { request: [webhook(hook)] } } });
  const call = chat(gate);
  await until(() => hook.received.length === 1);
  await gate.close();
  const reply = await call;
  expect(reply.status).toBe(503);
  expect(errorOf(reply)).toEqual({ message: MESSAGE, type: 'api_error', code: 'gateway_closing' });
  expect(provider.received).toEqual([]);
  expect(await cutLine(gate)).toMatchObject({ error: MESSAGE, reason: 'Timeout' });
});

test('an LLM stream ends with an error event at the drain deadline, without content held back by a guardrail', async () => {
  await using hook = await guardrail(() => ({}));
  await using provider = await llmProvider(
    streaming((response) => response.write(chunk({ content: 'held back' }))),
  );
  await using gate = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
  const reply = await fetch(`${gate.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ ...CHAT, stream: true }),
  });
  const [x] = gate.running.openRequests;
  await until(() => x !== undefined && (llmCall.get(x)?.outputBytes ?? 0) > 0);
  await gate.close();
  const error = { message: MESSAGE, type: 'api_error', code: 'gateway_closing' };
  expect(await reply.text()).toBe(`data: ${JSON.stringify({ error })}\n\n`);
  expect(await cutLine(gate)).toMatchObject({
    'http.status': '200',
    error: MESSAGE,
    reason: 'Timeout',
    'gw.ai.usage.estimated': `the response ended before the provider reported usage: ${MESSAGE}`,
  });
});

test('a response that is not an event stream is aborted at the drain deadline', async () => {
  // A short one is only sent when it is complete.
  const whole = completion('x'.repeat(300_000));
  await using provider = await llmProvider((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': whole.length });
    response.write(whole.slice(0, 200_000));
  });
  await using gate = await llmGateway(provider);
  const reply = await fetch(`${gate.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(CHAT),
  });
  await gate.close();
  await expect(reply.text()).rejects.toThrow();
  expect(await cutLine(gate)).toMatchObject({ 'http.status': '200' });
});

test('a client that reads nothing does not delay the shutdown', async () => {
  await using provider = await llmProvider(
    streaming((response) => {
      const more = (): void =>
        void response.write(chunk({ content: 'x'.repeat(60_000) }), (no) => no ?? more());
      more();
    }),
  );
  await using gate = await llmGateway(provider);
  const body = JSON.stringify({ ...CHAT, stream: true });
  const socket = connect(gate.port, '127.0.0.1').pause();
  socket.on('error', () => undefined);
  socket.write(rawRequest('POST /v1/chat/completions HTTP/1.1', [`Content-Length: ${body.length}`], body));
  await isOpen(gate);
  const [x] = gate.running.openRequests;
  await until(() => (x?.response.writableLength ?? 0) > 0);
  const started = performance.now();
  await gate.close();
  expect(performance.now() - started).toBeLessThan(AT_ONCE);
  const closed = once(socket, 'close');
  socket.resume();
  await closed;
  expect(await cutLine(gate)).toMatchObject({ reason: 'Timeout' });
});
