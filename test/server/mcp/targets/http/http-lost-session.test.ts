import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { type Json, openSession, toolCall } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, reply, type Script } from '../../../../kit/mcp-upstream.ts';

const target = (up: McpUpstream, name = 'up') => ({ name, mcp: { host: up.url } });
const JSON_TYPE = 'application/json';
const rpc = (code: number, message: string, id: unknown = null): string =>
  JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });

type Answer = (id: unknown) => readonly [status: number, type: string, body: string];

/** What servers say of a session that they do not know, since they were restarted. */
const WORDS: [string, Answer][] = [
  // The specification.
  ['404', () => [404, 'text/plain', '']],
  ['404 with text', () => [404, 'text/plain', 'session not found']],
  ['404 with a page', () => [404, 'text/html', '<h1>Not Found</h1>']],
  ['404 with JSON-RPC', (id) => [404, JSON_TYPE, rpc(-32_001, 'Session not found', id)]],
  // python-sdk#1727, python-sdk#1004.
  ['400 with text', () => [400, 'text/plain; charset=utf-8', 'Bad Request: No valid session ID provided']],
  ['400 with -32600', () => [400, JSON_TYPE, rpc(-32_600, 'Session not found', 'server-error')]],
  ['400 with -32600 and the id', (id) => [400, JSON_TYPE, rpc(-32_600, 'Session terminated', id)]],
  // mcp-go#689.
  ['400 "Invalid session ID"', () => [400, 'text/plain', 'Invalid session ID\n']],
  // affine-mcp-server#301 and the examples of the TypeScript SDK.
  ['400 with -32000', () => [400, JSON_TYPE, rpc(-32_000, 'Bad Request: No valid session ID provided')]],
  ['400 "not initialized"', () => [400, JSON_TYPE, rpc(-32_000, 'Bad Request: Server not initialized')]],
  // OmniRoute#5957.
  ['400 "Unknown header"', () => [400, JSON_TYPE, rpc(-32_000, 'Unknown Mcp-Session-Id header')]],
  // rust-sdk#559, and the same SDK without the session.
  ['401 with text', () => [401, 'text/plain', 'Unauthorized: Session not found']],
  ['422 with text', () => [422, 'text/plain', 'Unexpected message, expect initialize request']],
  // mcp-proxy#149, neotoma#1923.
  ['410', () => [410, JSON_TYPE, '{"error":"session expired"}']],
  ['503', () => [503, JSON_TYPE, '{"error":"unknown session, restart the client"}']],
  // Spring AI, java-sdk#107.
  ['500 with the id of the session', () => [500, JSON_TYPE, '{"message":"Session not found: 6b966bec"}']],
  // DeepSeek-Reasonix#4734.
  ['200 with -32001', (id) => [200, JSON_TYPE, rpc(-32_001, 'Session not found', id)]],
  [
    '200 with -32001 in an event',
    (id) => [200, 'text/event-stream', `data: ${rpc(-32_001, 'Session not found', id)}\n\n`],
  ],
  [
    '200 with -32600 in an event',
    (id) => [200, 'text/event-stream', `data: ${rpc(-32_600, 'Server not initialized', id)}\n\n`],
  ],
];

const write = (response: ServerResponse, [status, type, body]: ReturnType<Answer>): true => {
  response.writeHead(status, type === '' ? {} : { 'content-type': type }).end(body);
  return true;
};

/** Answers every request of an unknown session like that, and `ping` of a known one. */
const refusing =
  (answer: Answer, knows: (session: string) => boolean): Script =>
  ({ message, headers }, response) => {
    if (message?.method === 'initialize') return false;
    if (!knows(String(headers['mcp-session-id']))) return write(response, answer(message?.id ?? null));
    if (message?.method !== 'ping') return false;
    reply(response, message, {});
    return true;
  };

describe('a restarted HTTP target', () => {
  test.each(WORDS)(
    'a target that reports an unknown session with %s gets a new one, and the call runs',
    async (_, answer) => {
      await using up = await mcpUpstream({ script: refusing(answer, (session) => up.sessions.has(session)) });
      await using gate = await gateway(mcpConfig([target(up)]));
      const session = await openSession(`${gate.url}/mcp`);
      up.sessions.clear();
      const { result } = await session.send(toolCall(1, 'say', { message: 'hello' }));
      expect(result?.content[0].text).toBe('up says hello');
      expect(up.of('initialize')).toHaveLength(2);
      expect(up.of('tools/call').map(({ headers }) => headers['mcp-session-id'])).toEqual(['up-1', 'up-2']);
    },
  );

  // agentgateway#3622.
  test.each(WORDS)(
    'one of several targets that reports an unknown session with %s is called and listed again',
    async (_, answer) => {
      await using up = await mcpUpstream({ script: refusing(answer, (session) => up.sessions.has(session)) });
      await using other = await mcpUpstream({ name: 'other' });
      await using gate = await gateway(mcpConfig([target(up), target(other, 'other')]));
      const session = await openSession(`${gate.url}/mcp`);
      up.sessions.clear();
      const listed = await session.request('tools/list');
      expect(listed.result.tools.map(({ name }: Json) => name)).toEqual(['up_say', 'other_say']);
      up.sessions.clear();
      const { result } = await session.send(toolCall(9, 'up_say', { message: 'hello' }));
      expect(result?.content[0].text).toBe('up says hello');
      expect(other.of('initialize')).toHaveLength(1);
    },
  );

  test.each(WORDS)(
    'a target that never knows its session, as it says with %s, is opened again once, and its words are passed on',
    async (_, answer) => {
      await using up = await mcpUpstream({ script: refusing(answer, () => false) });
      await using gate = await gateway(mcpConfig([target(up)]));
      const session = await openSession(`${gate.url}/mcp`);
      const { error } = await session.send(toolCall(1, 'say'));
      expect(error.message).toContain('target "up" is not available: the server no longer knows the session');
      const [status, type, body] = answer(1);
      if (status !== 200) expect(error.message).toContain(`HTTP ${status}`);
      if (type === 'text/plain') expect(error.message).toContain(body.trim());
      expect(up.of('initialize')).toHaveLength(2);
      expect(up.of('tools/call')).toHaveLength(2);
    },
  );

  test('a target that reports an unknown session for the log level, which all targets get, gets a new session', async () => {
    const refuse = refusing(
      () => [400, 'text/plain', 'Invalid session ID'],
      (session) => up.sessions.has(session),
    );
    const capabilities = { tools: {}, logging: {} };
    const script: Script = (request, response) => {
      if (
        request.message?.method !== 'logging/setLevel' ||
        !up.sessions.has(String(request.headers['mcp-session-id']))
      )
        return refuse(request, response);
      reply(response, request.message, {});
      return true;
    };
    const up: McpUpstream = await mcpUpstream({ capabilities, script });
    await using _up = up;
    await using other = await mcpUpstream({ name: 'other' });
    await using gate = await gateway(mcpConfig([target(up), target(other, 'other')]));
    const session = await openSession(`${gate.url}/mcp`);
    up.sessions.clear();
    const { result } = await session.request('logging/setLevel', { level: 'debug' });
    expect(result).toEqual({});
    expect(up.of('logging/setLevel').at(-1)?.headers['mcp-session-id']).toBe('up-2');
  });
});

describe('a call that a server with a known session answers with an error', () => {
  // Each may have run: a second call could pay or delete twice.
  const ERRORS: [string, Answer, string][] = [
    [
      '400 for bad arguments',
      (id) => [400, JSON_TYPE, rpc(-32_602, 'Invalid arguments for tool say', id)],
      'Invalid arguments',
    ],
    [
      '400 with text about arguments',
      () => [400, 'text/plain', 'missing argument: session'],
      'missing argument',
    ],
    [
      '400 of a tool about its own session',
      (id) => [400, JSON_TYPE, rpc(-32_000, 'Browser session not found', id)],
      'Browser session',
    ],
    [
      '500 of a tool about its own session',
      () => [500, 'text/plain', 'database session expired'],
      'database session',
    ],
    [
      '200 of a tool about its own session',
      (id) => [200, JSON_TYPE, rpc(-32_001, 'Session not found', id)],
      'Session not found',
    ],
    [
      'an event of a tool about its own session',
      (id) => [200, 'text/event-stream', `data: ${rpc(-32_000, 'session closed', id)}\n\n`],
      'session closed',
    ],
    [
      'a result about a session',
      (id) => [
        200,
        JSON_TYPE,
        JSON.stringify({
          jsonrpc: '2.0',
          id,
          result: { isError: true, content: [{ type: 'text', text: 'Session not found' }] },
        }),
      ],
      'Session not found',
    ],
    ['401 with a challenge', () => [401, 'text/plain', 'session expired'], 'session expired'],
  ];

  test.each(ERRORS)(
    'a call that is answered with %s is sent once, and the client gets the answer',
    async (_, answer, text) => {
      const script: Script = ({ message }, response) => {
        if (message?.method === 'ping') reply(response, message, {});
        else if (message?.method !== 'tools/call') return false;
        else {
          const [status] = answer(message.id);
          if (status === 401) response.setHeader('www-authenticate', 'Bearer');
          write(response, answer(message.id));
        }
        return true;
      };
      await using up = await mcpUpstream({ script });
      await using gate = await gateway(mcpConfig([target(up)]));
      const session = await openSession(`${gate.url}/mcp`);
      const called = await session.send(toolCall(1, 'say'));
      expect(called.text).toContain(text);
      expect(up.of('tools/call')).toHaveLength(1);
      expect(up.of('initialize')).toHaveLength(1);
    },
  );

  test('a call is sent once to a target that rejects its words about a session and does not implement ping', async () => {
    const script: Script = ({ message }, response) => {
      if (message?.method !== 'tools/call') return false;
      return write(response, [400, 'text/plain', 'no such session']);
    };
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    const { status, text } = await session.send(toolCall(1, 'say'));
    expect([status, text]).toEqual([400, 'no such session']);
    expect(up.of('tools/call')).toHaveLength(1);
  });
});
