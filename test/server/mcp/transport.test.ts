import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { INITIALIZE, MCP_HEADERS, type McpSession, openSession, post, read } from '../../kit/mcp.ts';

let gate: TestGateway;
let url: string;
let session: McpSession;
beforeAll(async () => {
  gate = await gateway(mcpConfig([chaos('a', '--tools=echo')]));
  url = `${gate.url}/mcp`;
  session = await openSession(url);
});
afterAll(() => gate.close());

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };

/** A POST with exactly these headers. */
async function postWith(headers: Record<string, string>, body: object = PING) {
  return read(await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }));
}

describe('initialize', () => {
  test.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
    'initialize with revision %s gives a session and an event stream',
    async (protocolVersion) => {
      const initialize = { ...INITIALIZE, id: 'first', params: { ...INITIALIZE.params, protocolVersion } };
      const { status, headers, text, result } = await post(url, initialize);
      expect(status).toBe(200);
      expect(headers.get('content-type')).toBe('text/event-stream');
      expect(headers.get('cache-control')).toBe('no-cache, no-transform');
      expect(headers.get('x-accel-buffering')).toBe('no');
      expect(headers.get('mcp-session-id')).toMatch(/^[\w-]{40,}$/);
      expect(text).toMatch(/^event: message\ndata: \{"jsonrpc":"2\.0","id":"first",.*\}\n\n$/);
      expect(result.protocolVersion).toBe(protocolVersion);
    },
  );

  test('initialize over a single target returns the result of that target', async () => {
    const { result } = session.initialize;
    expect(result.serverInfo).toEqual({ name: 'a', version: '1' });
    expect(result.instructions).toBe('how to use a');
    expect(result.capabilities).toEqual({ tools: { listChanged: true }, logging: {} });
  });

  test('initialize takes the lower revision of a server that does not know the requested one', async () => {
    await using other = await gateway(mcpConfig([chaos('old', '--revision=2024-11-05')]));
    const { initialize } = await openSession(`${other.url}/mcp`);
    expect(initialize.result.protocolVersion).toBe('2024-11-05');
  });

  test("initialize forwards the client's info and capabilities to the server", async () => {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: { roots: { listChanged: true }, sampling: {}, elicitation: {}, experimental: { x: {} } },
      clientInfo: { name: 'special', version: '9', title: 'A client' },
    };
    const own = await openSession(url, {}, { ...INITIALIZE, params });
    const { result } = await own.request('tools/call', { name: 'received' });
    const [first, second] = JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line));
    expect(first.params).toEqual(params);
    expect(second).toEqual({ jsonrpc: '2.0', method: 'notifications/initialized' });
  });

  test.each([{}, { protocolVersion: 7 }])(
    'initialize without a revision is invalid params: %j',
    async (params) => {
      const { status, headers, error } = await post(url, { ...INITIALIZE, params });
      expect(status).toBe(400);
      expect(headers.get('mcp-session-id')).toBeNull();
      expect(error.code).toBe(-32602);
      expect(error.message).toContain('protocolVersion');
    },
  );

  test('initialize gives every client its own session id', async () => {
    const sessions = await Promise.all(Array.from({ length: 5 }, () => openSession(url)));
    expect(new Set(sessions.map(({ id }) => id)).size).toBe(5);
    await Promise.all(sessions.map((each) => each.end()));
  });
});

describe('POST', () => {
  test('POST of a request is answered with one event', async () => {
    const { status, headers, text } = await session.send({
      id: 'x',
      method: 'tools/call',
      params: { name: 'echo' },
    });
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/event-stream');
    expect(headers.get('mcp-session-id')).toBeNull();
    expect(text).toBe(
      'event: message\ndata: {"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"echo"}]}}\n\n',
    );
  });

  test.each([
    ['a notification', { method: 'notifications/roots/list_changed' }],
    ['a response', { id: 99, result: {} }],
    ['an error response', { id: 99, error: { code: 1, message: 'no' } }],
  ])('POST of %s is 202 without a body', async (_what, message) => {
    const { status, headers, text } = await session.send(message);
    expect(status).toBe(202);
    expect(text).toBe('');
    expect(headers.get('content-length')).toBe('0');
    expect(headers.get('content-type')).toBeNull();
  });

  test.each([
    ['1', 1],
    ['"1"', '1'],
    ['"a\\u00e9\\n"', 'aé\n'],
    ['-7', -7],
    ['0', 0],
  ])('the request id %s is returned unchanged', async (text, id) => {
    const body = `{"jsonrpc":"2.0","id":${text},"method":"ping"}`;
    const answer = await post(url, body, { 'mcp-session-id': session.id });
    expect(answer.messages).toEqual([{ jsonrpc: '2.0', id, result: {} }]);
  });

  test('a request id over 2^53 is returned digit for digit', async () => {
    const body = '{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}';
    const { text } = await post(url, body, { 'mcp-session-id': session.id });
    expect(text).toContain('"id":12345678901234567890,');
  });

  test('concurrent requests of two sessions with equal ids get their own responses', async () => {
    const sessions = await Promise.all([openSession(url), openSession(url)]);
    const answers = await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const { result } = await (sessions[index % 2] as McpSession).send({
          id: index >> 1,
          method: 'tools/call',
          params: { name: 'later', arguments: { ms: (index * 7) % 20, message: `nonce ${index}` } },
        });
        return result.content[0].text;
      }),
    );
    expect(answers).toEqual(Array.from({ length: 60 }, (_, index) => `nonce ${index}`));
  });

  test('the Method not found error of a server is returned in an event stream', async () => {
    const { status, error } = await session.request('no/such', {});
    expect(status).toBe(200);
    expect(error).toEqual({ code: -32601, message: 'no method no/such' });
  });
});

describe('rejections before the body is read', () => {
  const NOT_ACCEPTABLE = 'Not Acceptable: Client must accept text/event-stream';

  test.each(['', '*/*', 'application/json', 'text/*', 'text/html, application/json'])(
    'POST with accept %j is 406',
    async (accept) => {
      const answer = await postWith({ 'content-type': 'application/json', accept });
      expect(answer.status).toBe(406);
      expect(answer.text).toBe(NOT_ACCEPTABLE);
      expect(answer.headers.get('content-type')).toMatch(/^text\/plain/);
    },
  );

  test.each(['text/event-stream', 'Text/Event-Stream; q=0.5', 'application/json, text/event-stream'])(
    'POST with accept %j passes',
    async (accept) => {
      const headers = { 'content-type': 'application/json', accept, 'mcp-session-id': session.id };
      expect((await postWith(headers)).status).toBe(200);
    },
  );

  test('GET without accept text/event-stream is 406, also without a session', async () => {
    const answer = await read(await fetch(url, { headers: { accept: 'application/json' } }));
    expect(answer.status).toBe(406);
    expect(answer.text).toBe(NOT_ACCEPTABLE);
  });

  test.each([
    'text/plain',
    'application/jsonx',
    'application/json\ta',
    'application/json garbage',
    'application/xml',
  ])('POST with content type %j is 415', async (type) => {
    const answer = await postWith({ ...MCP_HEADERS, 'content-type': type, 'mcp-session-id': session.id });
    expect(answer.status).toBe(415);
    expect(answer.text).toBe('mcp: client must send application/json');
  });

  test('POST without a content type is 415', async () => {
    const bytes = new Uint8Array(Buffer.from(JSON.stringify(PING)));
    const answer = await read(
      await fetch(url, { method: 'POST', headers: { accept: MCP_HEADERS.accept }, body: bytes }),
    );
    expect(answer.status).toBe(415);
  });

  test.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json ;x=1'])(
    'POST with content type %j passes',
    async (type) => {
      const headers = { ...MCP_HEADERS, 'content-type': type, 'mcp-session-id': session.id };
      expect((await postWith(headers)).status).toBe(200);
    },
  );

  test.each(['PUT', 'PATCH', 'OPTIONS', 'HEAD'])(
    'the method %s is 405 with the allowed methods',
    async (method) => {
      const answer = await fetch(url, { method });
      expect(answer.status).toBe(405);
      expect(answer.headers.get('allow')).toBe('GET, POST, DELETE');
      const text = method === 'HEAD' ? '' : 'mcp: method not allowed; must be GET, POST, or DELETE';
      expect(await answer.text()).toBe(text);
    },
  );
});

describe('GET', () => {
  test('GET opens a stream and sends its head immediately', async () => {
    await using stream = await openEvents(url, { session: session.id });
    expect(stream.status).toBe(200);
    expect(stream.headers.get('content-type')).toBe('text/event-stream');
    expect(stream.messages).toEqual([]);
  });

  test('a second GET stream replaces the first, which ends', async () => {
    const own = await openSession(url);
    await using first = await openEvents(url, { session: own.id });
    await using second = await openEvents(url, { session: own.id });
    await first.untilEnd();
    await own.request('tools/call', {
      name: 'notify',
      arguments: { method: 'notifications/tools/list_changed' },
    });
    expect(await second.next(() => true)).toMatchObject({ method: 'notifications/tools/list_changed' });
    expect(first.messages).toEqual([]);
  });

  test('the GET stream ends with its session', async () => {
    const own = await openSession(url);
    await using stream = await openEvents(url, { session: own.id });
    await own.end();
    await stream.untilEnd();
  });

  // nginx, with its defaults, collects the events of such streams: a client of the older transport never got its first one.
  test.each([
    ['of a session', '/mcp', true],
    ['of the transport HTTP+SSE', '/mcp/sse', false],
  ])('the GET stream %s tells proxies not to hold events back', async (_, path, isOfSession) => {
    const own = isOfSession ? await openSession(url) : undefined;
    const headers = { accept: 'text/event-stream', ...(own && { 'mcp-session-id': own.id }) };
    const leave = new AbortController();
    const stream = await fetch(new URL(path, url), { headers, signal: leave.signal });
    expect(stream.headers.get('x-accel-buffering')).toBe('no');
    expect(stream.headers.get('cache-control')).toBe('no-cache, no-transform');
    leave.abort();
  });
});
