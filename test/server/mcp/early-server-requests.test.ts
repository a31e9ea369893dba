import { existsSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { INITIALIZE, type Json, type McpReply, openSession, toolCall } from '../../kit/mcp.ts';
import { modern } from '../../kit/modern.ts';
import { until } from '../../kit/until.ts';

// Servers that ask their client before or right after it has initialized: toolhive#5009 and fastmcp (ping), the official filesystem
// and everything servers (roots/list).

/** A server that sends requests when it gets a message with this method, and handles that message once all are answered. */
interface Asking {
  readonly when: string;
  readonly requests: readonly object[];
}

interface AskingServer extends AsyncDisposable {
  readonly target: { readonly name: string };
}

/** Handles messages in order. `send` writes to the client of the message. */
const SERVER = `
function serve({ when, requests }) {
  const answers = [];
  let waiting = [];
  const result = ({ method, params, id }) => method === 'initialize'
    ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
    : method === 'tools/list' ? { tools: [{ name: 'answers', inputSchema: { type: 'object' } }] }
    : method === 'tools/call' ? { content: [{ type: 'text', text: JSON.stringify(answers) }] } : undefined;
  const answer = (message, send) => {
    if (message.id === undefined) return;
    const value = result(message);
    const error = { code: -32601, message: 'no method' };
    send({ jsonrpc: '2.0', id: message.id, ...(value ? { result: value } : { error }) });
  };
  return (message, send) => {
    if (message.method === undefined) {
      answers.push(message);
      if (answers.length === requests.length) for (const go of waiting.splice(0)) go();
    } else if (message.method === when && answers.length < requests.length) {
      waiting.push(() => answer(message, send));
      for (const request of requests) send({ jsonrpc: '2.0', ...request });
    } else answer(message, send);
  };
}`;

const STDIO = `${SERVER}
const handle = serve(JSON.parse(process.argv[1]));
const send = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => handle(JSON.parse(line), send));`;

const overStdio = (asking: Asking): Promise<AskingServer> =>
  Promise.resolve({
    target: Object.assign(
      { name: 'a' },
      { stdio: { cmd: process.execPath, args: ['-e', STDIO, JSON.stringify(asking)] } },
    ),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });

async function overHttp(asking: Asking): Promise<AskingServer> {
  const handle = new Function(`${SERVER}\nreturn serve(...arguments);`)(asking);
  const answer = (message: Json, response: ServerResponse): void => {
    if (message.id === undefined || message.method === undefined) {
      response.writeHead(202).end();
      handle(message, () => undefined);
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    handle(message, (sent: Json) => {
      response.write(`data: ${JSON.stringify(sent)}\n\n`);
      if (sent.id === message.id && sent.method === undefined) response.end();
    });
  };
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    answer(JSON.parse(body), response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  return {
    target: Object.assign({ name: 'a' }, { mcp: { host } }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const TRANSPORTS: readonly [string, (asking: Asking) => Promise<AskingServer>][] = [
  ['stdio', overStdio],
  ['HTTP', overHttp],
];

/** Sends a request as a client with these capabilities. */
type Ask = (method: string, params?: object) => Promise<McpReply>;
const ERAS: readonly [string, (url: string, capabilities: object) => Promise<Ask>][] = [
  [
    '2025-11-25',
    async (url, capabilities) => {
      const params = { ...INITIALIZE.params, protocolVersion: '2025-11-25', capabilities };
      const session = await openSession(url, {}, { ...INITIALIZE, params });
      return (method, own) => session.request(method, own);
    },
  ],
  [
    '2026-07-28',
    (url, capabilities) =>
      Promise.resolve((method: string, params?: object) => modern(url, method, params, { capabilities })),
  ],
];

const asked = (id: unknown, method: string, params?: object) => ({ id, method, ...(params && { params }) });
const unsupported = (id: unknown, method: string) => ({
  jsonrpc: '2.0',
  id,
  error: { code: -32601, message: `the client does not support ${method}` },
});

/** What the server got as answers to its requests. */
const answersOf = async (ask: Ask): Promise<Json[]> => {
  const { result } = await ask('tools/call', { name: 'answers', arguments: {} });
  return JSON.parse(result.content[0].text);
};

describe.each(ERAS)('a server of a client with revision %s', (_revision, connect) => {
  describe.each(TRANSPORTS)('over %s', (_transport, start) => {
    test.each(['initialize', 'tools/list'])(
      'that waits for answers to its own requests before it answers %s gets them at once',
      async (when) => {
        const methods = [
          'roots/list',
          'sampling/createMessage',
          'elicitation/create',
          'tasks/list',
          'x/unknown',
        ];
        await using server = await start({
          when,
          requests: [asked('p', 'ping'), ...methods.map((method, index) => asked(index, method, {}))],
        });
        await using gate = await gateway(mcpConfig([server.target]));
        const began = performance.now();
        const ask = await connect(`${gate.url}/mcp`, {});
        expect((await ask('tools/list')).result.tools).toHaveLength(1);
        // Without answers from the gateway: 30 s.
        expect(performance.now() - began).toBeLessThan(8_000);
        expect(await answersOf(ask)).toEqual([
          { jsonrpc: '2.0', id: 'p', result: {} },
          ...methods.map((method, index) => unsupported(index, method)),
        ]);
      },
    );

    test('is refused elicitation modes and sampling with tools that the client has not announced', async () => {
      const requests = [
        asked(1, 'elicitation/create', {
          mode: 'url',
          message: 'm',
          url: 'https://a.test',
          elicitationId: 'e',
        }),
        asked(2, 'elicitation/create', { mode: 'other', message: 'm' }),
        asked(4, 'sampling/createMessage', { messages: [], maxTokens: 1, tools: [] }),
        asked(5, 'sampling/createMessage', { messages: [], maxTokens: 1, toolChoice: { mode: 'auto' } }),
      ];
      await using server = await start({
        when: 'tools/list',
        requests: requests.filter(({ id }) => id !== 3),
      });
      await using gate = await gateway(mcpConfig([server.target]));
      const ask = await connect(`${gate.url}/mcp`, { elicitation: { form: {} }, sampling: {} });
      expect((await ask('tools/list')).result.tools).toHaveLength(1);
      expect((await answersOf(ask)).map(({ id, error }) => [id, error])).toEqual([
        [1, { code: -32602, message: 'the client does not support elicitation/create in mode "url"' }],
        [2, { code: -32602, message: 'the client does not support elicitation/create in mode "other"' }],
        [4, { code: -32602, message: 'the client does not support tools in sampling/createMessage' }],
        [5, { code: -32602, message: 'the client does not support tools in sampling/createMessage' }],
      ]);
    });
  });
});

test.each([null, 5, 'roots', [], false, { roots: null }, { roots: false }])(
  'a client whose capabilities are %j is not asked for roots',
  async (capabilities) => {
    await using server = await overStdio({ when: 'tools/list', requests: [asked(1, 'roots/list')] });
    await using gate = await gateway(mcpConfig([server.target]));
    const params = { ...INITIALIZE.params, capabilities };
    const session = await openSession(`${gate.url}/mcp`, {}, { ...INITIALIZE, params });
    expect((await session.request('tools/list')).result.tools).toHaveLength(1);
    expect(await answersOf((method, own) => session.request(method, own))).toEqual([
      unsupported(1, 'roots/list'),
    ]);
  },
);

describe('a client with roots', () => {
  test('gets its first response soon if it cannot answer an early request of the server while it waits', async () => {
    await using folder = await temporaryFolder();
    const target = chaos('a', '--asks-first=3', `--mark=${join(folder.path, 'mark')}`);
    await using gate = await gateway(mcpConfig([target]));
    const session = await openSession(`${gate.url}/mcp`);
    const began = performance.now();
    expect((await session.request('tools/list')).result.tools).toHaveLength(1);
    expect(performance.now() - began).toBeLessThan(8_000);
  });

  test('gets requests of the server that it supports, also those outside the protocol', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const capabilities = { elicitation: { url: {} }, sampling: { tools: {} }, experimental: { x: {} } };
    const params = { ...INITIALIZE.params, capabilities };
    const session = await openSession(`${gate.url}/mcp`, {}, { ...INITIALIZE, params });
    for (const [method, given] of [
      ['elicitation/create', { mode: 'url' }],
      ['sampling/createMessage', { tools: [] }],
      ['x/unknown', {}],
    ] as const) {
      await using stream = await openEvents(session.url, {
        session: session.id,
        message: toolCall(method, 'ask', { method, params: given }),
      });
      const request = await stream.next((message) => message.method === method);
      await session.send({ id: request.id, result: { said: method } });
      const { result } = await stream.next(({ id }) => id === method);
      expect(result.content[0].text).toBe(`{"said":"${method}"}`);
    }
    const { result } = await session.send(toolCall(1, 'ask', { method: 'roots/list' }));
    expect(JSON.parse(result.content[0].text).error.code).toBe(-32601);
  });
});

test('a process that was started in advance gets answers to its pings before a session uses it', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'answer');
  const ping = `process.stdout.write('{"jsonrpc":"2.0","id":"first","method":"ping"}\\n');
    process.stdin.once('data', (line) => require('node:fs').writeFileSync(process.argv[2], line));`;
  const args = ['-e', `${ping}${STDIO}`, JSON.stringify({ when: 'never', requests: [] }), file];
  await using gate = await gateway(
    mcpConfig([{ name: 'a', stdio: { cmd: process.execPath, args, warm: 1 } }]),
  );
  // A file exists before its text is written.
  await until(() => existsSync(file) && readFileSync(file, 'utf8') !== '');
  expect(readFileSync(file, 'utf8')).toBe('{"jsonrpc":"2.0","id":"first","result":{}}\n');
  const session = await openSession(`${gate.url}/mcp`);
  expect((await session.request('tools/list')).result.tools).toHaveLength(1);
});

test('a request of a process that was started in advance is answered by the session that uses it', async () => {
  const early = `process.stdout.write('{"jsonrpc":"2.0","id":"first","method":"roots/list"}\\n');`;
  const args = ['-e', `${early}${STDIO}`, JSON.stringify({ when: 'tools/list', requests: [{}] })];
  await using gate = await gateway(
    mcpConfig([{ name: 'a', stdio: { cmd: process.execPath, args, warm: 1 } }]),
  );
  const params = { ...INITIALIZE.params, capabilities: {} };
  const session = await openSession(`${gate.url}/mcp`, {}, { ...INITIALIZE, params });
  await until(
    async () =>
      (await answersOf((method, own) => session.request(method, own))).at(0)?.error?.code === -32601,
  );
});
