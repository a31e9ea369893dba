import { spawn } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, openSession, post, toolCall } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, type Script } from '../../../../kit/mcp-upstream.ts';
import { freePort } from '../../../../kit/ports.ts';
import { sseServer } from '../../../../kit/sse-server.ts';
import { until } from '../../../../kit/until.ts';
import { httpUpstream } from '../../../../kit/upstream.ts';

const target = (url: string, name = 'old') => ({ name, sse: { host: url } });

/** A gateway before this event stream, which gets these bytes and stays open. */
const streaming = (text: string | Buffer) =>
  httpUpstream((request, response) => {
    if (request.method !== 'GET') return response.writeHead(202).end();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    return response.write(text);
  });

describe('a target with the HTTP+SSE transport', () => {
  test('sse target: initialize, list, call; the server gets the headers of the client, and the stream ends with the session', async () => {
    await using server = await sseServer();
    await using gate = await gateway(mcpConfig([target(server.url)]));
    const session = await openSession(`${gate.url}/mcp`, { authorization: 'Bearer client', 'x-own': 'yes' });
    expect(session.initialize.result.serverInfo.name).toBe('legacy');
    expect((await session.request('tools/list')).result.tools).toHaveLength(5);
    const { result } = await session.send(toolCall(9, 'echo', { message: 'hello' }));
    expect(result.content).toEqual([{ type: 'text', text: 'hello' }]);
    expect(server.received.map(({ what }) => what.replace(/sessionId=.*/, ''))).toEqual([
      'GET /sse',
      ...Array.from({ length: 4 }, () => 'POST /messages?'),
    ]);
    for (const { headers } of server.received)
      expect(headers).toMatchObject({ authorization: 'Bearer client', 'x-own': 'yes' });
    await session.end();
    await until(() => server.streams === 0);
  });

  test('sse target: progress, a sampling request and a cancellation reach the right side', async () => {
    await using server = await sseServer();
    await using gate = await gateway(mcpConfig([target(server.url)]));
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { sampling: {} } });
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      model: 'm',
      role: 'assistant',
      content: { type: 'text', text: 'me' },
    }));
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gate.url}/mcp`)));
    const steps: number[] = [];
    await client.callTool({ name: 'steps' }, undefined, {
      onprogress: ({ progress }) => steps.push(progress),
    });
    expect(steps).toEqual([1, 2, 3]);
    const { content } = await client.callTool({ name: 'ask' });
    expect(JSON.stringify(content)).toContain('me');
    const abort = new AbortController();
    const waiting = client.callTool({ name: 'wait' }, undefined, { signal: abort.signal });
    const outcome = expect(waiting).rejects.toThrow();
    const before = server.received.length;
    await until(() => server.received.length > before);
    abort.abort();
    await outcome;
    await until(() => server.cancelled === 1);
    await client.close();
  });

  test('sse target: after the stream broke, the call fails, and the next one gets a new session', async () => {
    await using server = await sseServer();
    await using gate = await gateway(mcpConfig([target(server.url)]), { limits: { retryDelayMin: 0 } });
    const session = await openSession(`${gate.url}/mcp`);
    const waiting = session.send(toolCall(1, 'wait'));
    await until(() => server.received.length === 4);
    server.drop();
    expect((await waiting).error.message).toContain('target "old"');
    const { result } = await session.send(toolCall(2, 'echo', { message: 'again' }));
    expect(result.content[0].text).toBe('again');
    expect(server.received.filter(({ what }) => what === 'GET /sse')).toHaveLength(2);
  });

  test('sse target: among several, its tools are prefixed', async () => {
    await using server = await sseServer();
    await using gate = await gateway(mcpConfig([target(server.url), chaos('new')]));
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.send(toolCall(1, 'old_echo', { message: 'hello' }));
    expect(result.content[0].text).toBe('hello');
  });

  test('sse target: a host without a path means /sse, and host, port and path may be separate', async () => {
    await using server = await sseServer();
    const { origin, port } = new URL(server.url);
    const separate = { name: 'b', sse: { host: '127.0.0.1', port: Number(port), path: '/sse?x=1' } };
    await using gate = await gateway(mcpConfig([target(origin, 'a'), separate]));
    await openSession(`${gate.url}/mcp`);
    const opened = server.received.filter(({ what }) => what.startsWith('GET')).map(({ what }) => what);
    expect(opened.toSorted()).toEqual(['GET /sse', 'GET /sse?x=1']);
  });

  test.each([
    ['another origin', 'event: endpoint\ndata: http://127.0.0.1:9/steal\n\n'],
    ['another scheme', 'event: endpoint\ndata: javascript:alert(1)\n\n'],
    ['another host without a scheme', 'event: endpoint\ndata: //evil.example/x\n\n'],
    ['no URL', 'event: endpoint\ndata: http://[\n\n'],
  ])('sse target: an endpoint with %s is refused, and nothing is sent to it', async (_, text) => {
    await using server = await streaming(text);
    await using gate = await gateway(mcpConfig([target(`http://${server.address}/sse`)]));
    const reply = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(reply.status).toBe(500);
    expect(reply.text).toContain('has no URL of the same origin');
    expect(server.received.map(({ method }) => method)).toEqual(['GET']);
  });

  test('sse target: a message over 8 MiB closes the stream', async () => {
    const text = Buffer.concat([
      Buffer.from('event: endpoint\ndata: /m\n\ndata: '),
      Buffer.alloc(9 * 1024 * 1024, 120),
    ]);
    await using server = await streaming(text);
    await using gate = await gateway(mcpConfig([target(`http://${server.address}/sse`)]));
    expect((await post(`${gate.url}/mcp`, INITIALIZE)).text).toContain('over 8388608 bytes');
  });

  test('sse target: a status of the stream, such as 401 with its challenge, becomes the status of initialize', async () => {
    await using server = await httpUpstream((_, response) =>
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="old"' }).end('sign in'),
    );
    await using gate = await gateway(mcpConfig([target(`http://${server.address}/sse`)]));
    const reply = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(reply.status).toBe(401);
    expect(reply.headers.get('www-authenticate')).toBe('Bearer realm="old"');
  });

  test('sse target: a server that answers no event stream is named with what to do', async () => {
    await using server = await httpUpstream();
    await using gate = await gateway(mcpConfig([target(`http://${server.address}/`)]));
    expect((await post(`${gate.url}/mcp`, INITIALIZE)).text).toContain(
      'use `mcp` for a server with Streamable HTTP',
    );
  });

  test('sse target: a server that never names its endpoint fails with that reason in the log', async () => {
    await using server = await streaming(': hello\n\n');
    await using gate = await gateway(mcpConfig([target(`http://${server.address}/sse`)]), {
      limits: { sessionStartTimeout: 50 },
    });
    expect((await post(`${gate.url}/mcp`, INITIALIZE)).status).toBe(500);
    expect((await gate.accessLine(1))['error.detail']).toContain('has not sent the event `endpoint`');
  });

  test('sse target: a server that no longer knows the session gets a new one, and the call is sent again', async () => {
    let streams = 0;
    const script = (path: string, id: unknown): string =>
      `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: RESULTS[path] })}\n\n`;
    const open = new Map<string, NodeJS.WritableStream>();
    await using server = await httpUpstream((request, response, { body }) => {
      if (request.method === 'GET') {
        streams += 1;
        open.set(`/m${streams}`, response);
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        return response.write(`event: endpoint\ndata: /m${streams}\n\n`);
      }
      const { id, method } = JSON.parse(body);
      if (request.url === '/m1' && method === 'tools/list') return response.writeHead(404).end();
      response.writeHead(202).end();
      if (id !== undefined) open.get(request.url ?? '')?.write(script(method, id));
      return undefined;
    });
    await using gate = await gateway(mcpConfig([target(`http://${server.address}/sse`)]));
    const session = await openSession(`${gate.url}/mcp`);
    expect((await session.request('tools/list')).result.tools).toEqual([]);
    expect(streams).toBe(2);
  });

  test('sse target: server-everything in its SSE mode lists its tools and echoes', async () => {
    const port = await freePort();
    const file = createRequire(import.meta.url).resolve(
      '@modelcontextprotocol/server-everything/dist/index.js',
    );
    const child = spawn(process.execPath, [file, 'sse'], {
      env: { ...process.env, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    try {
      let log = '';
      child.stderr.on('data', (chunk) => {
        log += chunk;
      });
      await until(() => log.includes('Server is running'));
      await using gate = await gateway(mcpConfig([target(`http://127.0.0.1:${port}/sse`)]));
      const session = await openSession(`${gate.url}/mcp`);
      const { result } = await session.request('tools/list');
      expect(result.tools.map(({ name }: { name: string }) => name)).toContain('echo');
      const echoed = await session.send(toolCall(5, 'echo', { message: 'hello' }));
      expect(echoed.result.content[0].text).toBe('Echo: hello');
      await session.end();
    } finally {
      child.kill();
    }
  });
});

const RESULTS: Record<string, object> = {
  initialize: {
    protocolVersion: '2024-11-05',
    capabilities: { tools: {} },
    serverInfo: { name: 'x', version: '1' },
  },
  'tools/list': { tools: [] },
};

/** What a server with the HTTP+SSE transport does differently from the official SDK. */
interface Differences {
  /** Data of the event `endpoint`, by the port. */
  readonly endpoint?: (port: number) => string;
  /** The whole event, instead. */
  readonly first?: string;
  /** Writes a response to the stream, or as the answer to its POST. */
  readonly answer?: (json: string, stream: ServerResponse, response: ServerResponse) => void;
}

const onStream = (json: string, stream: ServerResponse, response: ServerResponse): void => {
  response.writeHead(202).end('Accepted');
  stream.write(`event: message\ndata: ${json}\n\n`);
};

/** A server of the older transport at `/api/sse`. */
function legacyServer({ endpoint = () => '/messages?s=1', first, answer = onStream }: Differences) {
  let stream: ServerResponse | undefined;
  const script: Script = ({ verb, message }, response) => {
    if (verb === 'GET') {
      stream = response.writeHead(200, { 'content-type': 'Text/Event-Stream; charset=utf-8' });
      stream.write(first ?? `event: endpoint\ndata: ${endpoint(up.port)}\n\n`);
    } else if (message.id === undefined) response.writeHead(202).end();
    else {
      const capabilities = { tools: {} };
      const result =
        message.method === 'initialize'
          ? { protocolVersion: '2024-11-05', capabilities, serverInfo: { name: 'old', version: '1' } }
          : { content: [{ type: 'text', text: 'called' }] };
      const json = JSON.stringify({ jsonrpc: '2.0', id: message.id, result });
      answer(json, stream as ServerResponse, response);
    }
    return true;
  };
  let up: McpUpstream;
  return mcpUpstream({ script }).then((started) => {
    up = started;
    return started;
  });
}

describe('servers with the HTTP+SSE transport that are not of the official SDK', () => {
  const body =
    (type: string): Differences['answer'] =>
    (json, _, response) =>
      void response
        .writeHead(200, { 'content-type': type })
        .end(type.startsWith('text/event') ? `data: ${json}\n\n` : json);
  const named =
    (event: string): Differences['answer'] =>
    (json, stream, response) => {
      response.writeHead(200).end();
      stream.write(`event: ping\ndata: now\n\n${event}data: ${json}\n\n`);
    };
  test.each<[string, Differences, string?]>([
    ['a relative path', { endpoint: () => 'messages?s=1' }, '/api/messages?s=1'],
    ['only a query', { endpoint: () => '?s=1' }, '/api/sse?s=1'],
    ['an absolute URL', { endpoint: (port) => `http://127.0.0.1:${port}/messages?s=1` }],
    ['a URL without a scheme', { endpoint: (port) => `//127.0.0.1:${port}/messages?s=1` }],
    // mcphost#26.
    ['an encoded URL', { endpoint: (port) => `http%3A//127.0.0.1%3A${port}/messages%3Fs=1` }],
    ['an encoded path', { endpoint: () => '%2Fmessages%3Fs%3D1' }],
    ['a path with escapes of its own', { endpoint: () => '/a%2Fb?s=%20' }, '/a%2Fb?s=%20'],
    ['a JSON string', { endpoint: () => '"/messages?s=1"' }],
    ['a string that is no JSON', { endpoint: () => '"/messages?s=1' }],
    ['an object with uri', { endpoint: () => '{"uri":"/messages?s=1"}' }],
    ['an object with endpoint', { endpoint: () => '{"endpoint":"/messages?s=1","uri":null}' }],
    [
      'an object with an absolute url',
      { endpoint: (port) => `{"url":"http://127.0.0.1:${port}/messages?s=1"}` },
    ],
    ['spaces around it', { endpoint: () => '  /messages?s=1 ' }],
    [
      'the event twice',
      { first: 'event: endpoint\ndata: /messages?s=1\n\nevent: endpoint\ndata: /other\n\n' },
    ],
    ['CRLF and a comment before', { first: ': hi\r\n\r\nevent: Endpoint\r\ndata: /messages?s=1\r\n\r\n' }],
    ['a ping before', { first: 'event: ping\ndata: {}\n\nevent: endpoint\ndata: /messages?s=1\n\n' }],
    ['answers to POSTs in JSON', { answer: body('application/json; charset=utf-8') }],
    ['answers to POSTs in JSON that is called text', { answer: body('text/plain') }],
    ['answers to POSTs in events', { answer: body('text/event-stream') }],
    [
      'answers on the stream and to POSTs',
      {
        answer: (json, stream, response) => {
          response.writeHead(200, { 'content-type': 'application/json' }).end(json);
          stream.write(`data: ${json}\n\n`);
        },
      },
    ],
    ['events without a name', { answer: named('') }],
    ['events of another name', { answer: named('event: response\n') }],
    [
      'JSON that is no message in answers to POSTs',
      {
        answer: (json, stream, response) => {
          response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"accepted"}');
          stream.write(`data: ${json}\n\n`);
        },
      },
    ],
  ])('sse target: calls work with %s', async (_, differences, path = '/messages?s=1') => {
    await using up = await legacyServer(differences);
    await using gate = await gateway(mcpConfig([target(`http://127.0.0.1:${up.port}/api/sse`)]));
    const session = await openSession(`${gate.url}/mcp`);
    expect((await session.send(toolCall(1, 'say'))).result.content[0].text).toBe('called');
    expect(up.received.find(({ verb }) => verb === 'POST')?.path).toBe(path);
    expect(gate.log.join('')).not.toContain('is not a JSON-RPC message');
  });

  test.each<[string, Differences]>([
    // python-sdk#447, python-sdk#965.
    ['another name of this machine', { endpoint: (port) => `http://localhost:${port}/messages` }],
    ['an encoded URL elsewhere', { endpoint: () => 'http%3A%2F%2F127.0.0.1%3A9/steal' }],
    ['an object with a URL elsewhere', { endpoint: () => '{"uri":"http://127.0.0.1:9/steal"}' }],
    ['a string with a URL elsewhere', { endpoint: () => '"//127.0.0.1:9/steal"' }],
    ['an encoded path that begins with two slashes', { endpoint: () => '%2F%2F127.0.0.1:9/steal' }],
  ])('sse target: an endpoint with %s is refused', async (_, differences) => {
    await using up = await legacyServer(differences);
    await using gate = await gateway(mcpConfig([target(`http://127.0.0.1:${up.port}/api/sse`)]));
    expect((await post(`${gate.url}/mcp`, INITIALIZE)).text).toContain('has no URL of the same origin');
    expect(up.received.map(({ verb }) => verb)).toEqual(['GET']);
  });

  test.each([
    ['null', 'null'],
    ['a number', '5'],
    ['an empty object', '{}'],
    ['a list', '[]'],
    ['a huge object', `{"a":"${'x'.repeat(100_000)}"}`],
  ])('sse target: an endpoint that is %s does not stop the gateway', async (_, endpoint) => {
    await using up = await legacyServer({ endpoint: () => endpoint });
    await using gate = await gateway(mcpConfig([target(`http://127.0.0.1:${up.port}/api/sse`)]));
    await post(`${gate.url}/mcp`, INITIALIZE);
    expect((await fetch(`${gate.url}/mcp`)).status).toBeLessThan(500);
  });

  // fastmcp#831, spring-ai#2785.
  test.each([
    ['404', 404, 'Could not find session'],
    ['400', 400, 'Session ID missing in message endpoint'],
    ['410', 410, '{"error":"session expired"}'],
  ])(
    'sse target: a session that the server no longer knows, as it says with %s, is opened again',
    async (_, status, text) => {
      let isKnown = true;
      await using up = await legacyServer({
        endpoint: () => {
          isKnown = true;
          return '/messages';
        },
        answer: (json, stream, response) => {
          if (isKnown) onStream(json, stream, response);
          else response.writeHead(status).end(text);
        },
      });
      await using gate = await gateway(mcpConfig([target(`http://127.0.0.1:${up.port}/api/sse`)]));
      const session = await openSession(`${gate.url}/mcp`);
      isKnown = false;
      expect((await session.send(toolCall(1, 'say'))).result?.content[0].text).toBe('called');
    },
  );
});

test('sse target: bytes of one event that are not UTF-8 end no other call on the stream', async () => {
  let stream: ServerResponse | undefined;
  const held: string[] = [];
  const write = (data: string | Buffer): unknown =>
    stream?.write(Buffer.concat([Buffer.from('data: '), Buffer.from(data), Buffer.from('\n\n')]));
  await using server = await httpUpstream((request, response, { body }) => {
    if (request.method === 'GET') {
      stream = response.writeHead(200, { 'content-type': 'text/event-stream' });
      return stream.write('event: endpoint\ndata: /message\n\n');
    }
    response.writeHead(202).end();
    const { id, method, params } = JSON.parse(body);
    const answer = (result: object): string => JSON.stringify({ jsonrpc: '2.0', id, result });
    if (method === 'initialize')
      return write(
        answer({
          protocolVersion: '2024-11-05',
          capabilities: { tools: {} },
          serverInfo: { name: 'a', version: '1' },
        }),
      );
    if (method !== 'tools/call') return undefined;
    if (params.name === 'good') return held.push(answer({ content: [] }));
    const [start = '', end = ''] = answer({ content: [{ type: 'text', text: '@' }] }).split('@');
    write(Buffer.concat([Buffer.from(start), Buffer.from([0xff, 0xfe]), Buffer.from(end)]));
    return held.map(write);
  });
  await using gate = await gateway(mcpConfig([target(`http://${server.address}/sse`)]));
  const session = await openSession(`${gate.url}/mcp`);
  const good = session.request('tools/call', { name: 'good' });
  await until(() => held.length === 1);
  const bad = await session.request('tools/call', { name: 'bad' });
  expect(bad.result.content[0].text).toBe('\ufffd\ufffd');
  expect((await good).result).toEqual({ content: [] });
});
