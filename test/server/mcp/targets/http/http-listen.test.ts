import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { openSession } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, type Received, type Script } from '../../../../kit/mcp-upstream.ts';
import { until } from '../../../../kit/until.ts';

// A failing server is retried every few seconds; a few milliseconds behave the same.
const LIMITS = { retryDelayMin: 5, retryDelayMax: 20 };

const target = (up: McpUpstream) => ({ name: 'up', mcp: { host: up.url } });
const gets = (up: McpUpstream): Received[] => up.received.filter(({ verb }) => verb === 'GET');
const changed = (id: string): string =>
  `id: ${id}\ndata: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"${id}"}}\n\n`;

/** A gateway before one target, and a client of it with an open GET stream. */
async function listening(up: McpUpstream, limits = LIMITS) {
  const gate = await gateway(mcpConfig([target(up)]), { limits });
  const session = await openSession(`${gate.url}/mcp`);
  const own = await openEvents(session.url, { session: session.id });
  return {
    session,
    own,
    [Symbol.asyncDispose]: async () => {
      own.close();
      await gate.close();
    },
  };
}

describe('the GET stream of an HTTP target', () => {
  test('the GET stream of an HTTP target is reopened after any number of server errors and broken connections', async () => {
    let isDown = true;
    let turn = 0;
    const script: Script = ({ verb }, response) => {
      if (verb !== 'GET' || !isDown) return false;
      turn += 1;
      if (turn % 2 === 0) response.destroy();
      else response.writeHead(turn % 3 === 0 ? 500 : 503).end('starting');
      return true;
    };
    await using up = await mcpUpstream({ script });
    await using client = await listening(up);
    await until(() => gets(up).length > 12);
    isDown = false;
    await until(() => up.streams.length === 1);
    up.streams[0]?.write(changed('back'));
    await client.own.next(({ params }) => params.uri === 'back');
  });

  test("the reopened GET stream of an HTTP target sends Last-Event-ID and waits for the server's retry time", async () => {
    await using up = await mcpUpstream();
    await using client = await listening(up);
    await until(() => up.streams.length === 1);
    up.streams[0]?.write(`retry: 200\n${changed('e1')}`);
    await client.own.next(({ params }) => params.uri === 'e1');
    const ended = performance.now();
    up.streams[0]?.end();
    await until(() => up.streams.length === 2);
    expect(performance.now() - ended).toBeGreaterThanOrEqual(195);
    expect(gets(up).map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'e1']);
  });

  test('the GET stream of an HTTP target is reopened without Last-Event-ID when the server no longer has the missed events', async () => {
    const script: Script = ({ headers }, response) => {
      if (headers['last-event-id'] === undefined) return false;
      response.writeHead(400).end('unknown event');
      return true;
    };
    await using up = await mcpUpstream({ script });
    await using client = await listening(up);
    await until(() => up.streams.length === 1);
    up.streams[0]?.write(changed('e1'));
    await client.own.next(({ params }) => params.uri === 'e1');
    up.streams[0]?.end();
    await until(() => up.streams.length === 2);
    expect(up.of('initialize')).toHaveLength(1);
  });

  test.each([405, 404])(
    'the GET stream of an HTTP target is requested only once when the server answers %i',
    async (status) => {
      const script: Script = ({ verb }, response) => {
        if (verb !== 'GET') return false;
        response.writeHead(status).end();
        return true;
      };
      await using up = await mcpUpstream({ script });
      await using client = await listening(up);
      await until(() => gets(up).length === 1);
      for (let turn = 0; turn < 20; turn += 1) await client.session.request('tools/list');
      expect(gets(up)).toHaveLength(1);
      expect(up.of('initialize')).toHaveLength(1);
    },
  );

  // malloyyo#133, prompts.chat#1117, webtrees-API#27, awslabs/mcp#3352: pages, and JSON-RPC errors, for every GET.
  test.each([
    ['a page', 'text/html', '<html>hello</html>'],
    [
      'a JSON-RPC error',
      'application/json',
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}',
    ],
    ['text that looks like events', 'text/plain', changed('x')],
    ['bytes without a type', '', changed('x')],
  ])(
    'the GET stream of an HTTP target is requested only once when the server answers with %s',
    async (_, type, body) => {
      const script: Script = ({ verb }, response) => {
        if (verb !== 'GET') return false;
        response.writeHead(200, type === '' ? {} : { 'content-type': type }).end(body);
        return true;
      };
      await using up = await mcpUpstream({ script });
      await using client = await listening(up);
      await until(() => gets(up).length === 1);
      for (let turn = 0; turn < 20; turn += 1) await client.session.request('tools/list');
      expect(gets(up)).toHaveLength(1);
      expect(client.own.messages).toEqual([]);
    },
  );

  // SuperAgent#634, coinstats-mcp#29: hosts of functions end each stream after a greeting.
  test.each([
    ['at once', ''],
    [
      'after a greeting',
      'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hi"}}\n\n',
    ],
    ['after an event with an id', changed('hello')],
  ])('a server that ends its GET stream %s is asked less and less often', async (_, text) => {
    const at: number[] = [];
    const script: Script = ({ verb }, response) => {
      if (verb !== 'GET') return false;
      at.push(performance.now());
      response.writeHead(200, { 'content-type': 'Text/Event-Stream; charset=UTF-8' }).end(text);
      return true;
    };
    await using up = await mcpUpstream({ script });
    await using _client = await listening(up, { retryDelayMin: 5, retryDelayMax: 1_000 });
    await until(() => at.length === 8);
    // 5 ms, doubled six times.
    expect((at[7] as number) - (at[6] as number)).toBeGreaterThanOrEqual(5 * 2 ** 6);
  });

  test("a rejected GET stream of an HTTP target is requested again with the token of the client's next stream", async () => {
    const script: Script = ({ verb, headers }, response) => {
      if (verb !== 'GET' || headers.authorization === 'Bearer new') return false;
      response.writeHead(401).end();
      return true;
    };
    await using up = await mcpUpstream({ script });
    await using client = await listening(up);
    await until(() => gets(up).length === 1);
    const { url, id } = client.session;
    await using _second = await openEvents(url, { session: id, headers: { authorization: 'Bearer new' } });
    await until(() => up.streams.length === 1);
  });

  test('the GET stream of an HTTP target is reopened without a client call after the target restarts and forgets the session', async () => {
    await using up = await mcpUpstream({ capabilities: { tools: {}, resources: {} } });
    await using client = await listening(up);
    await until(() => up.streams.length === 1);
    up.sessions.clear();
    up.streams[0]?.destroy();
    await until(() => up.streams.length === 2);
    expect(up.of('initialize')).toHaveLength(2);
    expect(gets(up).at(-1)?.headers['mcp-session-id']).toBe('up-2');
    await client.own.next(({ method }) => method === 'notifications/tools/list_changed');
    await client.own.next(({ method }) => method === 'notifications/resources/list_changed');
  });

  test('an HTTP target that forgets every session immediately does not cause an endless series of new sessions', async () => {
    const begun: number[] = [];
    const opened = new Set<unknown>();
    const script: Script = ({ verb, message, headers }, response) => {
      if (message?.method === 'initialize') begun.push(performance.now());
      if (verb !== 'GET') return false;
      const session = headers['mcp-session-id'];
      const isFirst = !opened.has(session);
      opened.add(session);
      response.writeHead(isFirst ? 200 : 404, { 'content-type': 'text/event-stream' }).end();
      return true;
    };
    await using up = await mcpUpstream({ script });
    await using _client = await listening(up, { ...LIMITS, retryDelayMax: 300 });
    await until(() => begun.length >= 4);
    // The first new session comes at once: it may be a restart. A busy machine sees a session late, and the next one then early.
    const [, second = 0, , fourth = 0] = begun;
    expect(fourth - second).toBeGreaterThanOrEqual(400);
  });

  test('the GET stream of an HTTP target is reopened even if the restarted target fails at first', async () => {
    let failures = 3;
    const script: Script = ({ message }, response) => {
      if (message?.method !== 'initialize' || up.of('initialize').length === 1 || failures === 0)
        return false;
      failures -= 1;
      response.writeHead(503).end();
      return true;
    };
    const up: McpUpstream = await mcpUpstream({ script });
    await using _up = up;
    await using _client = await listening(up);
    await until(() => up.streams.length === 1);
    up.sessions.clear();
    up.streams[0]?.destroy();
    await until(() => up.streams.length === 2);
    expect(up.of('initialize')).toHaveLength(5);
  });
});
