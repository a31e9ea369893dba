import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { LIMITS, type Limits } from '../../../../../src/core/limits.ts';
import { mcpConfig } from '../../../../kit/config.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { type McpReply, openSession } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, type Received, type Script } from '../../../../kit/mcp-upstream.ts';
import { until } from '../../../../kit/until.ts';

const target = (up: McpUpstream) => ({ name: 'up', mcp: { host: up.url } });
const CALL = { id: 7, method: 'tools/call', params: { name: 'say', _meta: { progressToken: 'p' } } };

const event = (message: object, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;

/** Answers a GET that resumes a stream; `turn` counts from 0. */
type Resumption = (response: ServerResponse, answer: (text: string) => string, turn: number) => void;

/**
 * A target whose calls are answered with `opening` only; the rest is left to the GETs with `Last-Event-ID`, whose ids
 * and times are recorded.
 */
async function hangingUp(opening: string, resume: Resumption, isClean = true) {
  const resumed: { id: unknown; at: number; headers: Received['headers'] }[] = [];
  let hungUpAt = 0;
  let callId: unknown;
  const answer = (text: string): string =>
    event({ id: callId, result: { content: [{ type: 'text', text }] } });
  const script: Script = (request, response) => {
    if (request.message?.method === 'tools/call') {
      callId = request.message.id;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(opening, () => {
        hungUpAt = performance.now();
        if (isClean) response.end();
        else response.destroy();
      });
      return true;
    }
    if (request.verb !== 'GET' || request.headers['last-event-id'] === undefined) return false;
    const { headers } = request;
    resumed.push({ id: headers['last-event-id'], at: performance.now() - hungUpAt, headers });
    resume(response, answer, resumed.length - 1);
    return true;
  };
  const up = await mcpUpstream({ script });
  return { up, resumed, [Symbol.asyncDispose]: () => up[Symbol.asyncDispose]() };
}

const stream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });

/** Makes the one call of a session through a gateway. */
async function callThrough(up: McpUpstream, limits: Partial<Limits> = {}): Promise<McpReply> {
  await using gate = await gateway(mcpConfig([target(up)]), { limits });
  const session = await openSession(`${gate.url}/mcp`, { authorization: 'Bearer mine' });
  return await session.send(CALL);
}

const PRIMED = 'id: first\nretry: 150\ndata: \n\n';

describe('a response stream of an HTTP target that ends before the response', () => {
  test("an interrupted response stream of an HTTP target is resumed with GET and Last-Event-ID after the server's retry time", async () => {
    await using server = await hangingUp(PRIMED, (response, answer) => stream(response).end(answer('late')));
    const { result } = await callThrough(server.up);
    expect(result.content[0].text).toBe('late');
    expect(server.resumed).toHaveLength(1);
    expect(server.resumed[0]).toMatchObject({
      id: 'first',
      headers: {
        'mcp-session-id': 'up-1',
        'mcp-protocol-version': '2025-06-18',
        authorization: 'Bearer mine',
      },
    });
    expect(server.resumed[0]?.at).toBeGreaterThanOrEqual(145);
    expect(server.up.of('tools/call')).toHaveLength(1);
  });

  test('a response stream of an HTTP target is resumed when the connection breaks', async () => {
    const resume: Resumption = (response, answer) => stream(response).end(answer('late'));
    await using server = await hangingUp(PRIMED, resume, false);
    expect((await callThrough(server.up)).result.content[0].text).toBe('late');
  });

  test('a response stream that is interrupted repeatedly is resumed from the last event each time, without losing messages', async () => {
    const progress = (n: number) =>
      event({ method: 'notifications/progress', params: { progressToken: 'p', progress: n } }, `e${n}`);
    await using server = await hangingUp('id: e0\nretry: 5\ndata: \n\n', (response, answer, turn) => {
      if (turn < 2) stream(response).end(progress(turn + 1));
      else stream(response).end(answer('at last'));
    });
    const { messages } = await callThrough(server.up);
    expect(messages.map(({ params, result }) => params?.progress ?? result.content[0].text)).toEqual([
      1,
      2,
      'at last',
    ]);
    expect(server.resumed.map(({ id }) => id)).toEqual(['e0', 'e1', 'e2']);
  });

  test('resuming a response stream is retried while the HTTP target is briefly unavailable', async () => {
    await using server = await hangingUp('id: a\nretry: 5\ndata: \n\n', (response, answer, turn) => {
      if (turn === 0) response.writeHead(503).end('restarting');
      else if (turn === 1) response.destroy();
      else stream(response).end(answer('back'));
    });
    expect((await callThrough(server.up)).result.content[0].text).toBe('back');
  });

  test('a call fails after a few failed attempts to resume its stream, and is not sent again', async () => {
    await using server = await hangingUp('id: a\nretry: 5\ndata: \n\n', (response) =>
      response.writeHead(500).end(),
    );
    // The waits between attempts add up to 11 s otherwise.
    const { error } = await callThrough(server.up, { retryDelayMax: 100 });
    expect(error.message).toBe(
      'target "up" is not available: the response stream ended before the response and could not be resumed: ' +
        'the server answered HTTP 500',
    );
    expect(server.resumed).toHaveLength(LIMITS.resumeAttempts);
    expect(server.up.of('tools/call')).toHaveLength(1);
  });

  test.each([400, 404, 405])(
    'a call fails immediately when resuming its stream is answered with %i',
    async (status) => {
      await using server = await hangingUp('id: a\nretry: 5\ndata: \n\n', (response) =>
        response.writeHead(status).end(),
      );
      const { error } = await callThrough(server.up);
      expect(error.message).toContain(`could not be resumed: the server answered HTTP ${status}`);
      expect(server.resumed).toHaveLength(1);
      expect(server.up.of('tools/call')).toHaveLength(1);
    },
  );

  test('a response stream is no longer resumed after the client has disconnected', async () => {
    let isOpen = false;
    await using server = await hangingUp('id: a\nretry: 5\ndata: \n\n', (response) => {
      isOpen = true;
      stream(response).flushHeaders();
      response.once('close', () => {
        isOpen = false;
      });
    });
    await using gate = await gateway(mcpConfig([target(server.up)]));
    const session = await openSession(`${gate.url}/mcp`);
    const call = await openEvents(session.url, { session: session.id, message: CALL });
    await until(() => isOpen);
    call.close();
    await until(() => !isOpen);
    await until(() => server.up.of('notifications/cancelled').length === 1);
    expect(server.resumed).toHaveLength(1);
  });
});
