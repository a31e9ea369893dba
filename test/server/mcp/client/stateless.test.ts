import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { openEvents } from '../../../kit/event-stream.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { gateway } from '../../../kit/gateway.ts';
import { isAlive } from '../../../kit/is-alive.ts';
import { INITIALIZE, type Json, MCP_HEADERS, type McpReply, post } from '../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, reply, type Script } from '../../../kit/mcp-upstream.ts';
import { until } from '../../../kit/until.ts';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);

const backend = { statefulMode: 'stateless' };
const remote = (up: McpUpstream, name = 'up') => ({ name, mcp: { host: up.url } });
const stateless = (targets: readonly object[]) => gateway(mcpConfig(targets, { backend }));

const ask = (url: string, method: string, params?: object, headers = {}): Promise<McpReply> =>
  post(`${url}/mcp`, { jsonrpc: '2.0', id: 1, method, ...(params && { params }) }, headers);
const call = (url: string, name: string, args: object = {}, headers = {}): Promise<McpReply> =>
  ask(url, 'tools/call', { name, arguments: args }, headers);

describe('statefulMode: stateless', () => {
  test('a client gets no session id, and no capabilities that need a session', async () => {
    const capabilities = {
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      logging: {},
      completions: {},
      tasks: { list: {} },
    };
    await using up = await mcpUpstream({ capabilities });
    await using gate = await stateless([remote(up)]);
    const { headers, result } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(headers.get('mcp-session-id')).toBeNull();
    expect(result).toMatchObject({ protocolVersion: '2025-06-18', serverInfo: { name: 'up' } });
    expect(result.capabilities).toEqual({ tools: {}, resources: {}, completions: {} });
    const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
    expect((await post(`${gate.url}/mcp`, initialized)).status).toBe(202);
    await until(() => up.sessions.size === 0);
  });

  test('each request runs in a session of its own at the target, which ends with it', async () => {
    await using up = await mcpUpstream();
    await using gate = await stateless([remote(up)]);
    const headers = { 'mcp-protocol-version': '2025-06-18', authorization: 'Bearer mine' };
    expect((await ask(gate.url, 'tools/list', undefined, headers)).result.tools[0].name).toBe('say');
    const { result } = await call(gate.url, 'say', { message: 'hello' }, headers);
    expect(result.content[0].text).toBe('up says hello');
    await until(() => up.sessions.size === 0);
    expect(up.received.map(({ verb, message }) => message?.method ?? verb)).toEqual([
      'initialize',
      'notifications/initialized',
      'tools/list',
      'DELETE',
      'initialize',
      'notifications/initialized',
      'tools/call',
      'DELETE',
    ]);
    expect(up.of('initialize').map(({ message }) => message.params)).toMatchObject(
      [1, 2].map(() => ({ protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'agctl' } })),
    );
    expect(up.of('tools/call')[0]?.headers).toMatchObject({
      'mcp-session-id': 'up-2',
      authorization: 'Bearer mine',
    });
  });

  test('concurrent requests with the same id get their own answers', async () => {
    await using one = await mcpUpstream({ name: 'one' });
    await using two = await mcpUpstream({ name: 'two' });
    await using gate = await stateless([remote(one, 'one'), remote(two, 'two')]);
    const texts = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const { result } = await call(gate.url, index % 2 === 0 ? 'one_say' : 'two_say', {
          message: `${index}`,
        });
        return result.content[0].text;
      }),
    );
    expect(texts).toEqual(texts.map((_, index) => `${index % 2 === 0 ? 'one' : 'two'} says ${index}`));
    // A call needs a session at one target only.
    expect([one.of('initialize').length, two.of('initialize').length]).toEqual([10, 10]);
    const { result } = await ask(gate.url, 'tools/list');
    expect(result.tools.map(({ name }: Json) => name)).toEqual(['one_say', 'two_say']);
    await until(() => one.sessions.size + two.sessions.size === 0);
  });

  test.each(['GET', 'DELETE'])('%s is answered with 405', async (method) => {
    await using up = await mcpUpstream();
    await using gate = await stateless([remote(up)]);
    const response = await fetch(`${gate.url}/mcp`, { method, headers: MCP_HEADERS });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test.each(['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe', 'tasks/list'])(
    '%s is answered with an error, because its effect would be lost',
    async (method) => {
      await using up = await mcpUpstream();
      await using gate = await stateless([remote(up)]);
      const { error } = await ask(gate.url, method, { level: 'debug', uri: 'file:///1' });
      expect(error).toEqual({
        code: -32601,
        message: `${method} needs a session, and the gateway has none (statefulMode: stateless)`,
      });
      expect(up.received).toEqual([]);
    },
  );

  test('a request of the server within a call is answered with an error, a ping is answered, and messages of the call reach the client', async () => {
    const event = (message: object): string => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;
    let finish: (() => void) | undefined;
    const script: Script = ({ message }, response) => {
      if (message?.method !== 'tools/call') return false;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(event({ id: 'question', method: 'elicitation/create', params: {} }));
      response.write(event({ id: 'alive', method: 'ping' }));
      response.write(event({ method: 'notifications/message', params: { level: 'info', data: 'x' } }));
      finish = () => response.end(event({ id: message.id, result: { content: [] } }));
      return true;
    };
    await using up = await mcpUpstream({ script });
    await using gate = await stateless([remote(up)]);
    const answered = call(gate.url, 'say');
    const answerTo = (id: string) => up.received.find(({ message }) => message?.id === id)?.message;
    await until(() => answerTo('question') !== undefined && answerTo('alive') !== undefined);
    const message = 'the client does not support elicitation/create';
    expect(answerTo('question').error).toEqual({ code: -32601, message });
    expect(answerTo('alive').result).toEqual({});
    finish?.();
    const { messages } = await answered;
    expect(messages.map(({ method }) => method)).toEqual(['notifications/message', undefined]);
    await until(() => up.sessions.size === 0);
  });

  test('a client that disconnects ends its call and its session at the target', async () => {
    const script: Script = ({ message }, response) => {
      if (message?.method !== 'tools/call') return false;
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      response.once('close', () => {
        isCut = true;
      });
      return true;
    };
    let isCut = false;
    await using up = await mcpUpstream({ script });
    await using gate = await stateless([remote(up)]);
    const message = { id: 1, method: 'tools/call', params: { name: 'say' } };
    const stream = openEvents(`${gate.url}/mcp`, { message });
    await until(() => up.of('tools/call').length === 1);
    (await stream).close();
    await until(() => isCut && up.sessions.size === 0);
  });

  test('the status and the challenge of a target that requires a token reach the client', async () => {
    const script: Script = ({ headers }, response) => {
      if (headers['authorization'] !== undefined) return false;
      response.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="x"' }).end('sign in');
      return true;
    };
    await using up = await mcpUpstream({ script });
    await using gate = await stateless([remote(up)]);
    const refused = await call(gate.url, 'say');
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([
      401,
      'Bearer resource_metadata="x"',
    ]);
    expect((await call(gate.url, 'say', {}, { authorization: 'Bearer x' })).status).toBe(200);
  });

  test('more requests than config.mcp.maxSessions at the same time are rejected, and the sessions of others are free again', async () => {
    let finish: (() => void) | undefined;
    const script: Script = ({ message }, response) => {
      if (message?.method !== 'tools/call' || finish !== undefined) return false;
      finish = () => reply(response, message, { content: [] });
      return true;
    };
    await using up = await mcpUpstream({ script });
    const yaml = mcpConfig([remote(up)], { backend, config: { mcp: { maxSessions: 1 } } });
    await using gate = await gateway(yaml);
    const first = call(gate.url, 'say');
    await until(() => finish !== undefined);
    expect((await call(gate.url, 'say')).status).toBe(503);
    finish?.();
    expect((await first).status).toBe(200);
    await until(async () => (await call(gate.url, 'say')).status === 200);
  });
});

describe('statefulMode: stateless with stdio targets', () => {
  test('one process of a stdio target serves all requests', async () => {
    const mark = join(folder, 'started');
    await using gate = await stateless([chaos('a', `--mark=${mark}`)]);
    const pids = new Set<string>();
    for (let index = 0; index < 5; index += 1) {
      const { result } = await call(gate.url, 'pid');
      pids.add(result.content[0].text);
    }
    const echoes = await Promise.all(
      Array.from({ length: 20 }, (_, index) => call(gate.url, 'echo', { message: `${index}` })),
    );
    expect(echoes.map(({ result }) => result.content[0].text)).toEqual(echoes.map((_, index) => `${index}`));
    expect(readFileSync(mark, 'utf8').trim().split('\n')).toEqual([...pids]);
    await gate.close();
    expect(isAlive(Number([...pids][0]))).toBe(false);
  });

  test('processes that are started in advance cannot be configured', async () => {
    const { name, stdio } = chaos('a');
    await expect(stateless([{ name, stdio: { ...stdio, warm: 1 } }])).rejects.toThrow(
      'targets.0.stdio.warm: `warm` cannot be used with a process that all sessions share',
    );
  });
});
