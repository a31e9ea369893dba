import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, parseAccessLine, type TestGateway } from '../../kit/gateway.ts';
import { isAlive } from '../../kit/is-alive.ts';
import {
  INITIALIZE,
  MCP_HEADERS,
  type McpSession,
  openSession,
  post,
  read,
  toolCall,
} from '../../kit/mcp.ts';
import { until } from '../../kit/until.ts';

const NOT_FOUND = 'mcp: session not found: start a new one with an initialize request';

/** All clients get the same error; the access log has the reason. */
const logSays = (why: string): Promise<void> =>
  until(() => parseAccessLine(gate.accessLog.at(-1) ?? '')['error.detail'] === why);

let gate: TestGateway;
let session: McpSession;
beforeAll(async () => {
  const route = (name: string) => ({
    name,
    matches: [{ path: { exact: `/${name}` } }],
    backends: [{ mcp: { targets: [chaos('a')] } }],
  });
  gate = await gateway(
    JSON.stringify({ gateways: { default: { port: 0, routes: [route('one'), route('two')] } } }),
  );
  session = await openSession(`${gate.url}/one`);
});
afterAll(() => gate.close());

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };

/** Status and text for this session id, for POST of a request, of a notification, GET and DELETE. */
async function everyWay(id: string, path = '/one'): Promise<{ status: number; text: string }[]> {
  const url = `${gate.url}${path}`;
  const headers = { ...MCP_HEADERS, 'mcp-session-id': id };
  const replies = [
    await post(url, PING, headers),
    await post(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers),
    await read(await fetch(url, { headers })),
    await read(await fetch(url, { method: 'DELETE', headers })),
  ];
  return replies.map(({ status, text }) => ({ status, text }));
}

describe('unknown session ids', () => {
  const flip = (id: string): string => (id.startsWith('A') ? `B${id.slice(1)}` : `A${id.slice(1)}`);
  const ids: [string, () => string][] = [
    ['garbage', () => 'garbage'],
    ['a UUID', () => '6f1f8e0e-7d0c-4b57-a9a4-0b7b2f1f4d7e'],
    ['a single character', () => 'x'],
    ['four kilobytes', () => 'x'.repeat(4_096)],
    ['one with another first character', () => flip(session.id)],
    ['one that is cut', () => session.id.slice(0, -1)],
    ['one with padding', () => `${session.id}=`],
    ['two in one field', () => `${session.id}, ${session.id}`],
    ['a path', () => '../../etc/passwd'],
    ['the name of a member of every object', () => '__proto__'],
  ];
  test.each(ids)('an unknown session id is 404: %s', async (_what, id) => {
    expect(await everyWay(id())).toEqual(Array(4).fill({ status: 404, text: NOT_FOUND }));
    await logSays('the id was not created with the current config.session.key');
  });

  test('the session id of another route is 404', async () => {
    expect(await everyWay(session.id, '/two')).toEqual(Array(4).fill({ status: 404, text: NOT_FOUND }));
    await logSays('it belongs to another backend');
    expect((await session.request('ping')).status).toBe(200);
  });

  test('the session id of another process is 404', async () => {
    await using other = await gateway(mcpConfig([chaos('a')]));
    const foreign = await openSession(`${other.url}/mcp`);
    expect((await post(session.url, PING, { 'mcp-session-id': foreign.id })).status).toBe(404);
  });

  test('the id of an ended session is 404, also for a second DELETE', async () => {
    const own = await openSession(session.url);
    expect((await own.end()).status).toBe(204);
    expect(await everyWay(own.id)).toEqual(Array(4).fill({ status: 404, text: NOT_FOUND }));
    await logSays('it has ended, or its process has: sessions with stdio targets cannot be resumed');
  });

  test('a missing session id is 400 with an error that says what is missing', async () => {
    const text = 'mcp: session header is required for non-initialize requests';
    expect(await post(session.url, PING)).toMatchObject({ status: 400, text });
    expect(await read(await fetch(session.url, { headers: MCP_HEADERS }))).toMatchObject({
      status: 400,
      text,
    });
    expect(await read(await fetch(session.url, { method: 'DELETE' }))).toMatchObject({ status: 400, text });
  });
});

describe('the end of a session', () => {
  test('ending a session ends its child process and no other', async () => {
    const own = await openSession(session.url);
    const pidOf = async (of: McpSession) =>
      Number((await of.request('tools/call', { name: 'pid' })).result.content[0].text);
    const [mine, others] = [await pidOf(own), await pidOf(session)];
    expect(mine).not.toBe(others);
    await own.end();
    await until(() => !isAlive(mine));
    expect(isAlive(others)).toBe(true);
  });

  test('ending a session fails its open calls', async () => {
    const own = await openSession(session.url);
    const call = own.request('tools/call', { name: 'hang' });
    // The answer to the ping comes after the call was passed on, because one pipe carries both.
    await own.request('ping');
    await own.end();
    const { error } = await call;
    expect(error.message).toBe('the session ended');
  });
});

describe('session limits', () => {
  test('sessions over the limit are rejected until one ends', async () => {
    await using small = await gateway(mcpConfig([chaos('a')], { config: { mcp: { maxSessions: 2 } } }));
    const url = `${small.url}/mcp`;
    const [first] = [await openSession(url), await openSession(url)];
    const refused = await post(url, INITIALIZE);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(refused.text).toContain('already has 2 MCP sessions (config.mcp.maxSessions)');
    expect((await (first as McpSession).request('ping')).status).toBe(200);
    await (first as McpSession).end();
    expect((await post(url, INITIALIZE)).status).toBe(200);
  });

  test('sessions that begin at the same time count towards the session limit', async () => {
    await using small = await gateway(mcpConfig([chaos('a')], { config: { mcp: { maxSessions: 2 } } }));
    const replies = await Promise.all(Array.from({ length: 6 }, () => post(`${small.url}/mcp`, INITIALIZE)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(2);
  });

  test('in-flight requests over the limit get an error, and the others are answered', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'answer');
    const own = await openSession(session.url);
    let refusals = 0;
    const call = async (id: number) => {
      const reply = await own.send(toolCall(id, 'after', { file, message: id }));
      if (reply.error !== undefined) refusals += 1;
      return reply;
    };
    const calls = Array.from({ length: 260 }, (_, id) => call(id));
    // Those that are not refused wait for their answers, on a slow machine too.
    await until(() => refusals >= 4);
    writeFileSync(file, '');
    const replies = await Promise.all(calls);
    const refused = replies.filter(({ error }) => error !== undefined);
    expect(refused).toHaveLength(4);
    for (const { error } of refused)
      expect(error.message).toBe('more than 256 requests of this session are in flight');
    expect((await own.request('ping')).result).toEqual({});
  });
});
