import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeCassette } from '../kit/cassette.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { INITIALIZE, type Json, toolCall } from '../kit/mcp.ts';
import { httpUpstream } from '../kit/upstream.ts';

// What verify compares of streams that have no end, calls that were cancelled and responses whose client had left.

const SSE = { 'content-type': 'text/event-stream' };
const jsonEvents = (...all: readonly object[]) => all.map((json, at) => ({ ms: at + 1, json }));

/** Verifies a recording against an address; resolves to the reported messages. */
async function verified(
  address: string,
  exchanges: readonly object[],
  ...more: string[]
): Promise<{ readonly code: number | null; readonly reported: readonly string[] }> {
  await using folder = await temporaryFolder();
  const cassette = join(folder.path, 'cassette.jsonl');
  writeCassette(cassette, exchanges);
  const against = ['--against', `http://${address}`];
  const { code, stdout } = await cli(['verify', cassette, ...against, '-o', 'json', ...more]);
  const { diagnostics } = JSON.parse(stdout);
  return { code, reported: diagnostics.map((each: Json) => `${each.severity} ${each.message}`) };
}

const sent = (at: number, json: object, response: object) => ({
  at,
  session: 's',
  request: { method: 'POST', target: '/mcp', headers: {}, body: { json: { jsonrpc: '2.0', ...json } } },
  response: { ms: 1, status: 200, headers: {}, ...response },
});
const begun = sent(0, INITIALIZE, { body: { json: { jsonrpc: '2.0', id: 0, result: {} } } });

function answer(response: ServerResponse, json: object): void {
  response.setHeader('content-type', 'application/json');
  response.setHeader('mcp-session-id', 'now');
  response.end(JSON.stringify({ jsonrpc: '2.0', ...json }));
}

test('notifications on streams without an end are compared with --strict only', async () => {
  await using upstream = await httpUpstream((request, response, { body }) => {
    if (request.method === 'POST') return answer(response, { id: JSON.parse(body).id, result: {} });
    return response.writeHead(200, SSE).end();
  });
  const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
  const opened = {
    at: 10,
    session: 's',
    request: { method: 'GET', target: '/mcp', headers: {} },
    response: { ms: 0, status: 200, headers: SSE, events: jsonEvents(changed), cut: 'client' },
  };
  expect(await verified(upstream.address, [begun, opened])).toEqual({ code: 0, reported: [] });
  expect(await verified(upstream.address, [begun, opened], '--strict')).toEqual({
    code: 1,
    reported: ['error GET /mcp: the stream lacks what was recorded'],
  });
});

test('a call is cancelled while it is open, and not compared', async () => {
  const order: string[] = [];
  let open: ServerResponse | undefined;
  await using upstream = await httpUpstream((request, response, { body }) => {
    if (request.method !== 'POST') return response.end();
    const { id, method } = JSON.parse(body);
    order.push(method);
    if (method === 'tools/call') {
      open = response.writeHead(200, SSE);
      return response.write(':\n\n');
    }
    if (method !== 'notifications/cancelled') return answer(response, { id, result: {} });
    order.push(open?.writableEnded === false ? 'open' : 'ended');
    const message = { jsonrpc: '2.0', method: 'notifications/message', params: { data: 'late' } };
    open?.end(`data: ${JSON.stringify(message)}\n\n`);
    return response.writeHead(202).end();
  });
  const cancel = { method: 'notifications/cancelled', params: { requestId: 1 } };
  const { code, reported } = await verified(upstream.address, [
    begun,
    sent(10, toolCall(1, 'slow'), { headers: SSE, events: jsonEvents({ method: 'notifications/message' }) }),
    sent(30, cancel, { status: 202 }),
    sent(50, { id: 2, method: 'ping' }, { body: { json: { jsonrpc: '2.0', id: 2, result: {} } } }),
  ]);
  expect(order).toEqual(['initialize', 'tools/call', 'notifications/cancelled', 'open', 'ping']);
  expect({ code, reported }).toEqual({ code: 0, reported: [] });
});

test('of a response whose client had left, what was recorded is compared, and not what follows', async () => {
  await using upstream = await httpUpstream((request, response) => {
    if (request.method === 'HEAD') return void response.end();
    if (request.url === '/text') return void response.write('never ends');
    response.writeHead(200, SSE);
    for (const data of ['{"n":1}', '{"n":2}', '{"n":3}']) response.write(`data: ${data}\n\n`);
  });
  const left = (at: number, target: string, response: object) => ({
    at,
    request: { method: 'POST', target, headers: {}, body: { json: { model: 'm' } } },
    response: { ms: 1, status: 200, headers: SSE, cut: 'client', ...response },
  });
  const error = { message: 'the client disconnected before the end of the response' };
  const { code, reported } = await verified(upstream.address, [
    left(0, '/v1/chat/completions', { events: jsonEvents({ choices: [{ delta: {} }] }, { error }) }),
    left(10, '/same', { events: jsonEvents({ n: 1 }, { n: 2 }) }),
    left(20, '/other', { events: jsonEvents({ n: 1 }, { n: 4 }) }),
    left(30, '/text', { headers: {}, body: { text: 'never' } }),
  ]);
  expect(reported).toEqual(['error POST /other m: the stream lacks what was recorded']);
  expect(code).toBe(1);
});
