import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { CHAT, llmGateway, llmProvider, chunk as piece } from '../../kit/llm-provider.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

/** The response to a GET, its received part, and whether it was complete. */
async function received(url: string): Promise<{ text: string; complete: boolean }> {
  const sent = request(url).on('error', () => undefined);
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  answer.setEncoding('utf8').on('data', (data: string) => (text += data));
  answer.on('error', () => undefined);
  await new Promise((resolve) => answer.once('close', resolve));
  return { text, complete: answer.complete };
}

test('backendIdleTimeout aborts a response whose backend stops sending', async () => {
  await using upstream = await httpUpstream((_, response) => response.writeHead(200).write('part'));
  await using gate = await proxyGateway(upstream.address, { timeout: { backendIdleTimeout: '300ms' } });
  expect(await received(gate.url)).toEqual({ text: 'part', complete: false });
  expect(await gate.accessLine(1)).toMatchObject({
    'http.status': '200',
    reason: 'Timeout',
    error: 'upstream call failed: the response body was silent for too long',
    'error.detail': `${upstream.address}: the response body was silent for too long`,
  });
});

test('backendIdleTimeout aborts neither a slow backend nor a slow client', async () => {
  await using upstream = await httpUpstream(async (_, response) => {
    response.writeHead(200);
    for (let count = 0; count < 10; count += 1) {
      response.write('x');
      await wait(150);
    }
    response.end();
  });
  // Longer in total than the limit for one silence.
  await using gate = await proxyGateway(upstream.address, { timeout: { backendIdleTimeout: '1s' } });
  expect(await received(gate.url)).toEqual({ text: 'xxxxxxxxxx', complete: true });
});

test('backendIdleTimeout 0s disables the limit, and there is a default limit', async () => {
  await using upstream = await httpUpstream(async (_, response) => {
    response.writeHead(200).write('a');
    await wait(1_500);
    response.end('b');
  });
  await using gate = await proxyGateway(upstream.address, { timeout: { backendIdleTimeout: '0s' } });
  expect(await received(gate.url)).toEqual({ text: 'ab', complete: true });
  // The default equals the limit for the response head.
  expect(LIMITS.backendIdle).toBe(LIMITS.upstreamHeadersTimeout);
});

test('backendIdleTimeout ends an LLM stream that stops with an error event', async () => {
  await using provider = await llmProvider((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(piece({ content: 'Hi' }));
  });
  const policies = { timeout: { backendIdleTimeout: '300ms' } };
  await using gate = await llmGateway(provider, { llm: { policies } });
  const { text } = await send(`${gate.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ ...CHAT, stream: true }),
  });
  expect(text).toContain('"code":"stream_idle"');
  expect(await gate.accessLine(1)).toMatchObject({ reason: 'Timeout' });
});

test('backendIdleTimeout aborts an LLM response that is not a stream', async () => {
  await using provider = await llmProvider((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"choices":');
  });
  const policies = { timeout: { backendIdleTimeout: '300ms' } };
  await using gate = await llmGateway(provider, { llm: { policies } });
  const sent = send(`${gate.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(CHAT) });
  expect((await sent).status).toBe(504);
  expect(await gate.accessLine(1)).toMatchObject({ reason: 'Timeout' });
});
