import { once } from 'node:events';
import { request } from 'node:http';
import { Client as Client2, SSEClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { gateway } from '../../../kit/gateway.ts';
import { legacyClient } from '../../../kit/legacy-client.ts';
import { INITIALIZE, openSession, post } from '../../../kit/mcp.ts';
import { mcpUpstream, reply, type Script } from '../../../kit/mcp-upstream.ts';
import { sendRaw } from '../../../kit/raw-http.ts';
import { type SseServer, sseServer } from '../../../kit/sse-server.ts';
import { until } from '../../../kit/until.ts';

const INFO = { name: 'client', version: '1' };
const CAPABILITIES = { capabilities: { sampling: {}, elicitation: {} } };
const SAMPLE = { model: 'm', role: 'assistant' as const, content: { type: 'text' as const, text: 'me' } };
const ACCEPT = { action: 'accept' as const, content: { sure: true } };
const target = ({ url }: SseServer) => ({ name: 'old', sse: { host: url } });
const twoKeys = {
  route: { policies: { apiKey: { mode: 'strict', keys: [{ key: 'key-one' }, { key: 'key-two' }] } } },
};

/** What both generations of the official client can do. */
interface Connected {
  call(name: string, args?: object, options?: object): Promise<{ content: unknown }>;
  tools(): Promise<string[]>;
  close(): Promise<void>;
}

const clients: [string, (url: URL) => Promise<Connected>][] = [
  [
    'first',
    async (url) => {
      const client = new Client1(INFO, CAPABILITIES);
      client.setRequestHandler(CreateMessageRequestSchema, () => SAMPLE);
      client.setRequestHandler(ElicitRequestSchema, () => ACCEPT);
      await client.connect(new Transport1(url));
      return {
        call: (name, args = {}, options = {}) =>
          client.callTool(
            { name, arguments: args as Record<string, unknown> },
            undefined,
            options,
          ) as Promise<{ content: unknown }>,
        tools: async () => (await client.listTools()).tools.map(({ name }) => name),
        close: () => client.close(),
      };
    },
  ],
  [
    'second',
    async (url) => {
      const client = new Client2(INFO, CAPABILITIES);
      client.setRequestHandler('sampling/createMessage', () => SAMPLE);
      client.setRequestHandler('elicitation/create', () => ACCEPT);
      await client.connect(new Transport2(url));
      return {
        call: (name, args = {}, options = {}) =>
          client.callTool({ name, arguments: args as Record<string, unknown> }, options) as Promise<{
            content: unknown;
          }>,
        tools: async () => (await client.listTools()).tools.map(({ name }) => name),
        close: () => client.close(),
      };
    },
  ],
];

describe.each(clients)('the HTTP+SSE client of the %s SDK generation', (_, connect) => {
  test('initializes, lists, calls, gets progress, answers sampling and elicitation, and cancels', async () => {
    await using server = await sseServer();
    await using gate = await gateway(mcpConfig([target(server)]));
    const client = await connect(new URL(`${gate.url}/sse`));
    expect(await client.tools()).toContain('echo');
    expect((await client.call('echo', { message: 'hello' })).content).toEqual([
      { type: 'text', text: 'hello' },
    ]);
    const steps: number[] = [];
    await client.call(
      'steps',
      {},
      { onprogress: ({ progress }: { progress: number }) => steps.push(progress) },
    );
    expect(steps).toEqual([1, 2, 3]);
    expect(JSON.stringify((await client.call('ask')).content)).toContain('me');
    expect(JSON.stringify((await client.call('confirm')).content)).toContain('sure');
    const abort = new AbortController();
    const before = server.received.length;
    const outcome = expect(client.call('wait', {}, { signal: abort.signal })).rejects.toThrow();
    await until(() => server.received.length > before);
    abort.abort();
    await outcome;
    await until(() => server.cancelled === 1);
    await client.close();
    await until(() => server.streams === 0);
  });

  test('uses several targets, of which one is slow to answer', async () => {
    await using server = await sseServer();
    await using gate = await gateway(mcpConfig([target(server), chaos('new')]));
    const client = await connect(new URL(`${gate.url}/tools/sse`));
    expect(await client.tools()).toEqual(expect.arrayContaining(['old_echo', 'new_echo']));
    expect((await client.call('old_echo', { message: 'x' })).content).toEqual([{ type: 'text', text: 'x' }]);
    await client.close();
  });
});

describe('the HTTP+SSE transport for clients', () => {
  test('the first event is the URL for POSTs with path and query of the stream', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    await using client = await legacyClient(`${gate.url}/x/sse?key=a%20b&sessionId=mine`);
    expect(client.text).toMatch(/^event: endpoint\ndata: \/x\/sse\?key=a%20b&sessionId=[\w-]{60,}\n\n$/);
  });

  test('a path that begins with two slashes does not become another host', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const call = request({
      port: gate.port,
      path: '//evil.example/sse',
      headers: { accept: 'text/event-stream' },
    }).end();
    const [response] = await once(call, 'response');
    const [text] = await once(response.setEncoding('utf8'), 'data');
    call.destroy();
    expect(text).toContain('data: /evil.example/sse?sessionId=');
  });

  test('responses and errors arrive on the stream, and each POST is answered with 202', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    await using client = await legacyClient(`${gate.url}/sse`);
    expect((await client.initialize()).result.protocolVersion).toBe('2024-11-05');
    expect((await client.request('no/such/method')).error.code).toBe(-32601);
    expect(
      (await client.request('tools/call', { name: 'echo', arguments: { message: 'x' } })).result,
    ).toBeDefined();
  });

  test('only initialize and notifications are accepted before the session is initialized, and only one initialize', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    await using client = await legacyClient(`${gate.url}/sse`);
    const early = await client.post({ id: 7, method: 'tools/list' });
    expect([early.status, await early.text()]).toEqual([400, expect.stringContaining('not initialized yet')]);
    await client.initialize();
    expect((await client.request('initialize', INITIALIZE.params)).error.message).toContain(
      'already initialized',
    );
  });

  test('a session whose only target fails gets the reason, and its stream ends', async () => {
    await using gate = await gateway(mcpConfig([{ name: 'gone', mcp: { host: 'http://127.0.0.1:1/mcp' } }]));
    await using client = await legacyClient(`${gate.url}/sse`);
    const { error } = await client.request('initialize', INITIALIZE.params);
    expect(error.message).toContain('target "gone"');
    await until(() => client.ended);
  });

  test('a target that rejects a call with a status fails the call on the stream', async () => {
    const script: Script = ({ message }, response) => {
      if (message?.method !== 'tools/call') return false;
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end('sign in');
      return true;
    };
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    await using client = await legacyClient(`${gate.url}/sse`);
    await client.initialize();
    const { error } = await client.request('tools/call', { name: 'say' });
    expect(error.message).toContain('the server answered HTTP 401');
  });

  test('the end of the stream ends the session and its calls', async () => {
    await using server = await sseServer();
    await using gate = await gateway(mcpConfig([target(server)]));
    const client = await legacyClient(`${gate.url}/sse`);
    await client.initialize();
    await client.post({ id: 50, method: 'tools/call', params: { name: 'wait' } });
    await until(() => server.received.length === 4);
    const { endpoint } = client;
    client.close();
    await until(() => server.streams === 0);
    expect((await client.post({ id: 51, method: 'tools/list' }, endpoint)).status).toBe(404);
  });

  test('at shutdown, the stream ends after the response of a call in flight', async () => {
    let answer = (): void => undefined;
    const script: Script = ({ message }, response) => {
      if (message?.method !== 'tools/call') return false;
      answer = () => reply(response, message, { content: [{ type: 'text', text: 'late' }] });
      return true;
    };
    await using up = await mcpUpstream({ script });
    const gate = await gateway(
      mcpConfig([{ name: 'up', mcp: { host: up.url } }], {
        config: { connectionTerminationDeadline: '30s' },
      }),
    );
    await using idle = await legacyClient(`${gate.url}/sse`);
    await using client = await legacyClient(`${gate.url}/sse`);
    await client.initialize();
    const response = client.request('tools/call', { name: 'say' });
    await until(() => up.of('tools/call').length === 1);
    const closed = gate.close();
    await until(() => idle.ended);
    expect(client.ended).toBe(false);
    answer();
    expect((await response).result.content[0].text).toBe('late');
    await closed;
    await until(() => client.ended);
  });

  test('a client that sends no initialize loses its stream', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]), { limits: { sessionStartTimeout: 20 } });
    await using client = await legacyClient(`${gate.url}/sse`);
    await until(() => client.ended);
  });

  test('sessions of this transport count towards maxSessions, also before initialize', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')], { config: { mcp: { maxSessions: 2 } } }));
    await using first = await legacyClient(`${gate.url}/sse`);
    await using second = await legacyClient(`${gate.url}/sse`);
    expect([first.status, second.status]).toEqual([200, 200]);
    expect((await legacyClient(`${gate.url}/sse`)).status).toBe(503);
    expect((await post(`${gate.url}/mcp`, INITIALIZE)).status).toBe(503);
    first.close();
    await until(async () => (await post(`${gate.url}/mcp`, INITIALIZE)).status === 200);
  });

  test('Streamable HTTP works on a path that ends in /sse', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/sse`);
    expect((await session.request('tools/list')).result.tools).toBeDefined();
    expect((await session.end()).status).toBe(204);
  });
});

describe('session ids of the HTTP+SSE transport', () => {
  test.each([
    ['missing', () => '', 400],
    ['empty', () => '?sessionId=', 404],
    ['guessed', () => '?sessionId=00000000-0000-4000-8000-000000000000', 404],
    ['repeated', (id: string) => `?sessionId=${id}&sessionId=${id}`, 400],
    ['given twice with different values', (id: string) => `?sessionId=${id}&sessionId=x`, 400],
    ['changed', (id: string) => `?sessionId=${id.slice(0, -2)}${id.endsWith('AA') ? 'BB' : 'AA'}`, 404],
    ['longer', (id: string) => `?sessionId=${id}A`, 404],
    ['in another case', (id: string) => `?SessionId=${id}`, 400],
  ])('a POST whose session id is %s is refused, and nothing is delivered', async (_, queryOf, status) => {
    await using server = await sseServer();
    await using gate = await gateway(mcpConfig([target(server)]));
    await using client = await legacyClient(`${gate.url}/sse`);
    await client.initialize();
    // The stream, `initialize` and `initialized`.
    await until(() => server.received.length === 3);
    const before = server.received.length;
    const seen = client.messages.length;
    const id = new URL(client.endpoint).searchParams.get('sessionId') ?? '';
    const call = { id: 60, method: 'tools/call', params: { name: 'echo', arguments: { message: 'x' } } };
    expect((await client.post(call, `${gate.url}/sse${queryOf(id)}`)).status).toBe(status);
    expect((await client.request('ping')).result).toEqual({});
    // The ping alone.
    expect(server.received.length - before).toBe(1);
    expect(client.messages.length - seen).toBe(1);
  });

  test('a session id of Streamable HTTP is not one of this transport', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    await using client = await legacyClient(`${gate.url}/sse`);
    const to = `${gate.url}/sse?sessionId=${session.id}`;
    expect((await client.post({ id: 1, method: 'ping' }, to)).status).toBe(404);
  });

  test('a session belongs to the caller that opened its stream', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')], twoKeys));
    await using client = await legacyClient(`${gate.url}/sse`, { authorization: 'Bearer key-one' });
    await client.initialize();
    const ping = { id: 70, method: 'ping' };
    const other = await client.post(ping, client.endpoint, { authorization: 'Bearer key-two' });
    expect(other.status).toBe(404);
    expect((await client.post(ping, client.endpoint, { authorization: '' })).status).toBe(401);
    expect((await client.request('ping')).result).toEqual({});
  });

  test('Host and Origin are checked on stream and POST', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    await using client = await legacyClient(`${gate.url}/sse`);
    const { pathname, search } = new URL(client.endpoint);
    const statusOf = async (head: string): Promise<number | undefined> =>
      (
        await sendRaw(gate.port, `${head}\r\nAccept: text/event-stream\r\nContent-Length: 0\r\n\r\n`, {
          responses: 1,
        })
      ).statuses[0];
    expect(await statusOf('GET /sse HTTP/1.1\r\nHost: evil.example')).toBe(403);
    expect(
      await statusOf(`POST ${pathname}${search} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example`),
    ).toBe(403);
  });

  test('another process with the same session key cannot take over the session', async () => {
    const key = 'a'.repeat(64);
    await using server = await sseServer();
    const config = mcpConfig([{ name: 'a', mcp: { host: server.url } }], { config: { session: { key } } });
    await using first = await gateway(config);
    await using second = await gateway(config);
    await using client = await legacyClient(`${first.url}/sse`);
    const to = `${second.url}/sse${new URL(client.endpoint).search}`;
    expect((await client.post({ id: 1, method: 'ping' }, to)).status).toBe(404);
    expect(second.log.join('')).not.toContain('session of another process resumed');
  });

  test('log and access log show the beginning of the session id only', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const client = await legacyClient(`${gate.url}/sse`);
    await client.initialize();
    const id = new URL(client.endpoint).searchParams.get('sessionId') ?? '';
    client.close();
    await until(() => gate.accessLog.length === 3);
    const all = [...gate.accessLog, ...gate.log].join('');
    expect(all).toContain(id.slice(0, 12));
    expect(all).not.toContain(id.slice(0, 24));
  });
});
