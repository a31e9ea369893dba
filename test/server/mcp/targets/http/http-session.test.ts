import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../../src/core/limits.ts';
import { mcpConfig } from '../../../../kit/config.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, type Json, type McpSession, openSession, post } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, type Script } from '../../../../kit/mcp-upstream.ts';
import { until } from '../../../../kit/until.ts';

const target = (up: McpUpstream, name = 'up') => ({ name, mcp: { host: up.url } });
const say = (id: unknown, message: string, name = 'say') => ({
  id,
  method: 'tools/call',
  params: { name, arguments: { message } },
});
const KEY = 'ab'.repeat(32);

describe('a session that the HTTP target has forgotten', () => {
  test('a session that the HTTP target has forgotten is initialized again, and the call runs', async () => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    up.sessions.clear();
    const { result } = await session.send(say(1, 'hello'));
    expect(result.content[0].text).toBe('up says hello');
    expect(up.of('initialize').map(({ message }) => message.params)).toEqual([
      INITIALIZE.params,
      INITIALIZE.params,
    ]);
    expect(up.of('tools/call').map(({ headers }) => headers['mcp-session-id'])).toEqual(['up-1', 'up-2']);
    await until(() => up.of('notifications/initialized').length === 2);
  });

  test('a call fails after one new session when the HTTP target keeps forgetting sessions', async () => {
    const script: Script = ({ message }, response) => {
      if (message?.method !== 'tools/call') return false;
      response.writeHead(404).end('unknown session');
      return true;
    };
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.send(say(1, 'hello'));
    expect(error.message).toContain('no longer knows the session');
    expect(up.of('tools/call')).toHaveLength(2);
  });

  test('a forgotten session is initialized only once for concurrent calls', async () => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    up.sessions.clear();
    const replies = await Promise.all([1, 2, 3, 4, 5].map((id) => session.send(say(id, `${id}`))));
    expect(replies.map(({ result }) => result?.content[0].text)).toEqual(
      [1, 2, 3, 4, 5].map((id) => `up says ${id}`),
    );
  });

  test('a list over several targets initializes a forgotten session again', async () => {
    await using one = await mcpUpstream({ name: 'one' });
    await using two = await mcpUpstream({ name: 'two' });
    await using gate = await gateway(mcpConfig([target(one, 'one'), target(two, 'two')]));
    const session = await openSession(`${gate.url}/mcp`);
    one.sessions.clear();
    const { result } = await session.request('tools/list');
    expect(result.tools.map(({ name }: Json) => name)).toEqual(['one_say', 'two_say']);
  });

  test('a forgotten session that is initialized again still reports list changes on the open client stream', async () => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    await using _own = await openEvents(session.url, { session: session.id });
    await until(() => up.streams.length === 1);
    up.sessions.clear();
    up.streams[0]?.destroy();
    await session.send(say(1, 'hello'));
    await until(() => up.streams.length === 2, 1_000);
  });
});

describe('session resumption in another process with the same session key', () => {
  const config = { session: { key: KEY } };

  test('another process with the same session key resumes the session where the first one left it', async () => {
    await using up = await mcpUpstream();
    const first = await gateway(mcpConfig([target(up)], { config }));
    await using second = await gateway(mcpConfig([target(up)], { config }));
    const session = await openSession(`${first.url}/mcp`);
    const moved = { 'mcp-session-id': session.id };
    const { result } = await post(`${second.url}/mcp`, { jsonrpc: '2.0', ...say(1, 'moved') }, moved);
    expect(result.content[0].text).toBe('up says moved');
    expect(up.of('initialize')).toHaveLength(1);
    expect(up.of('tools/call')[0]?.headers).toMatchObject({
      'mcp-session-id': 'up-1',
      'mcp-protocol-version': '2025-06-18',
    });
    await using own = await openEvents(`${second.url}/mcp`, { session: session.id });
    expect(own.status).toBe(200);
    await first.close();
  });

  test("a resumed session whose target has forgotten it is initialized again with the client's own parameters", async () => {
    await using up = await mcpUpstream();
    const yaml = mcpConfig([target(up)], { config });
    await using first = await gateway(yaml);
    await using second = await gateway(yaml);
    const params = { ...INITIALIZE.params, capabilities: { roots: { listChanged: true }, sampling: {} } };
    const session = await openSession(`${first.url}/mcp`, {}, { ...INITIALIZE, params });
    up.sessions.clear();
    const moved = { 'mcp-session-id': session.id };
    const { result } = await post(`${second.url}/mcp`, { jsonrpc: '2.0', ...say(1, 'moved') }, moved);
    expect(result.content[0].text).toBe('up says moved');
    expect(up.of('initialize').map(({ message }) => message.params)).toEqual([params, params]);
    await until(() => up.of('notifications/initialized').length === 2);
  });

  test('a resumed session whose target has forgotten it ends with 404 if the parameters of the client are too long for the session id', async () => {
    await using up = await mcpUpstream();
    const yaml = mcpConfig([target(up)], { config });
    await using first = await gateway(yaml);
    await using second = await gateway(yaml);
    const params = { ...INITIALIZE.params, _meta: { note: 'x'.repeat(LIMITS.sealedInitializeLength) } };
    const session = await openSession(`${first.url}/mcp`, {}, { ...INITIALIZE, params });
    up.sessions.clear();
    const moved = { 'mcp-session-id': session.id };
    const { status } = await post(`${second.url}/mcp`, { jsonrpc: '2.0', ...say(1, 'hello') }, moved);
    expect(status).toBe(404);
    // The second gateway does not know the capabilities of the client, so it must not initialize in its name.
    expect(up.of('initialize')).toHaveLength(1);
  });

  const targetsOf = (session: McpSession, names: string[]) =>
    Promise.all(names.map((name, id) => session.send(say(id, 'x', `${name}_say`))));

  test('another process with the same session key resumes the sessions of all of several targets', async () => {
    await using one = await mcpUpstream({ name: 'one' });
    await using two = await mcpUpstream({ name: 'two' });
    const yaml = mcpConfig([target(one, 'one'), target(two, 'two')], { config });
    await using first = await gateway(yaml);
    await using second = await gateway(yaml);
    const session = await openSession(`${first.url}/mcp`);
    const moved: McpSession = {
      ...session,
      send: (message) =>
        post(`${second.url}/mcp`, { jsonrpc: '2.0', ...message }, { 'mcp-session-id': session.id }),
    };
    const replies = await targetsOf(moved, ['one', 'two']);
    expect(replies.map(({ result }) => result.content[0].text)).toEqual(['one says x', 'two says x']);
    expect([...one.of('initialize'), ...two.of('initialize')]).toHaveLength(2);
  });

  test('a resumed session knows which targets have which lists', async () => {
    await using one = await mcpUpstream({ name: 'one' });
    await using two = await mcpUpstream({ name: 'two' });
    const yaml = mcpConfig([target(one, 'one'), target(two, 'two')], { config });
    await using first = await gateway(yaml);
    await using second = await gateway(yaml);
    const session = await openSession(`${first.url}/mcp`);
    const list = { jsonrpc: '2.0', id: 1, method: 'prompts/list' };
    expect((await session.request('prompts/list')).result).toEqual({ prompts: [] });
    const { result } = await post(`${second.url}/mcp`, list, { 'mcp-session-id': session.id });
    expect(result).toEqual({ prompts: [] });
  });

  test.each([
    [
      'another key',
      (up: McpUpstream) => mcpConfig([target(up)], { config: { session: { key: 'cd'.repeat(32) } } }),
    ],
    ['no key', (up: McpUpstream) => mcpConfig([target(up)])],
    ['other targets', (up: McpUpstream) => mcpConfig([target(up, 'renamed')], { config })],
  ])('a session is not resumed by a process with %s', async (_what, other) => {
    await using up = await mcpUpstream();
    await using first = await gateway(mcpConfig([target(up)], { config }));
    await using second = await gateway(other(up));
    const session = await openSession(`${first.url}/mcp`);
    const { status } = await post(
      `${second.url}/mcp`,
      { jsonrpc: '2.0', ...say(1, 'x') },
      { 'mcp-session-id': session.id },
    );
    expect(status).toBe(404);
    expect(up.of('tools/call')).toEqual([]);
  });

  test('a session is not resumed on another route with the same targets', async () => {
    await using up = await mcpUpstream();
    const routes = ['/one', '/two'].map((path) => ({
      matches: [{ path: { exact: path } }],
      backends: [{ mcp: { targets: [target(up)] } }],
    }));
    await using gate = await gateway(JSON.stringify({ config, gateways: { default: { port: 0, routes } } }));
    const session = await openSession(`${gate.url}/one`);
    const moved = { 'mcp-session-id': session.id };
    const { status } = await post(`${gate.url}/two`, { jsonrpc: '2.0', ...say(1, 'x') }, moved);
    expect(status).toBe(404);
    expect(up.of('tools/call')).toEqual([]);
  });

  test('a session id does not show its contents to anyone without the session key', async () => {
    await using up = await mcpUpstream({ name: 'telltale' });
    await using gate = await gateway(mcpConfig([target(up, 'telltale')], { config }));
    const { id } = await openSession(`${gate.url}/mcp`);
    expect(Buffer.from(id, 'base64url').toString('latin1')).not.toContain('telltale');
  });
});

test('a Streamable HTTP server of the official SDK works through the gateway', async () => {
  const fixture = fileURLToPath(new URL('../../../../kit/everything-server.ts', import.meta.url));
  const server = spawn(process.execPath, [fixture, '--http', '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [host] = (await once(server.stdout.setEncoding('utf8'), 'data')) as [string];
    await using gate = await gateway(mcpConfig([{ name: 'everything', mcp: { host: host.trim() } }]));
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    const { messages } = await session.send({
      id: 1,
      method: 'tools/call',
      params: { name: 'test_tool_with_progress', _meta: { progressToken: 'p' } },
    });
    expect(messages.map(({ params, result }) => params?.progress ?? result.content[0].text)).toEqual([
      0,
      50,
      100,
      'done',
    ]);
    await session.request('tools/call', { name: 'test_trigger_tool_change' });
    await own.next(({ method }) => method === 'notifications/tools/list_changed');
    expect((await session.end()).status).toBe(204);
  } finally {
    server.kill();
  }
});
