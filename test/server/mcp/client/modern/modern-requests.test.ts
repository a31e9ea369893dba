import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { gateway, type TestGateway } from '../../../../kit/gateway.ts';
import { type Json, post } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, reply } from '../../../../kit/mcp-upstream.ts';
import { envelope, MODERN, metaKey, modern, modernCall, modernUpstream } from '../../../../kit/modern.ts';

const VERSION = metaKey('protocolVersion');
const CAPABILITIES = metaKey('clientCapabilities');
const HEADERS = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'say' };
const params = { name: 'say', arguments: { message: 'hi' }, _meta: envelope() };
const CALL = { jsonrpc: '2.0', id: 'c', method: 'tools/call', params };
const b64 = (text: string): string => `=?base64?${Buffer.from(text).toString('base64')}?=`;

describe('one request of revision 2026-07-28', () => {
  let up: McpUpstream;
  let gate: TestGateway;
  let url: string;
  beforeAll(async () => {
    up = await modernUpstream('up');
    gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    url = `${gate.url}/mcp`;
  });
  afterAll(async () => {
    await gate.close();
    await up[Symbol.asyncDispose]();
  });

  test('a call is answered with JSON, without a session', async () => {
    const { status, headers, result } = await modernCall(url, 'say', { message: 'hi' }, { id: 'c' });
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('mcp-session-id')).toBeNull();
    expect(result).toEqual({ resultType: 'complete', content: [{ type: 'text', text: 'up says hi' }] });
  });

  test('a target gets _meta, unknown members and Mcp-Param headers as the client sent them, and its own headers', async () => {
    const capabilities = { elicitation: { form: {} }, extensions: { 'com.example/x': { deep: [1.0] } } };
    await modernCall(
      url,
      'say',
      { n: 12345678901234567890n.toString() },
      {
        capabilities,
        meta: { 'com.example/own': { a: 1 } },
        headers: { 'mcp-param-region': 'eu', authorization: 'Bearer t' },
      },
      { unknown: { kept: true } },
    );
    const { headers, message } = up.of('tools/call').at(-1) as Json;
    expect(message.params._meta).toEqual(envelope(capabilities, { 'com.example/own': { a: 1 } }));
    expect(message.params.unknown).toEqual({ kept: true });
    expect(headers).toMatchObject({
      'mcp-protocol-version': MODERN,
      'mcp-method': 'tools/call',
      'mcp-name': 'say',
      'mcp-param-region': 'eu',
      authorization: 'Bearer t',
    });
    expect(headers['mcp-session-id']).toBeUndefined();
  });

  test.each([
    ['no Mcp-Method', { 'mcp-protocol-version': MODERN, 'mcp-name': 'say' }, /mcp-method is missing/],
    ['no Mcp-Name', { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call' }, /mcp-name is missing/],
    [
      'no MCP-Protocol-Version',
      { 'mcp-method': 'tools/call', 'mcp-name': 'say' },
      /mcp-protocol-version is missing/,
    ],
    [
      'another Mcp-Method',
      { ...HEADERS, 'mcp-method': 'tools/list' },
      /mcp-method is "tools\/list", but method in the body/,
    ],
    ['an Mcp-Method in another case', { ...HEADERS, 'mcp-method': 'Tools/Call' }, /mcp-method/],
    [
      'another Mcp-Name',
      { ...HEADERS, 'mcp-name': 'other' },
      /mcp-name is "other", but params.name in the body is "say"/,
    ],
    ['another encoded Mcp-Name', { ...HEADERS, 'mcp-name': b64('other') }, /mcp-name/],
    ['a malformed encoded Mcp-Name', { ...HEADERS, 'mcp-name': '=?base64?%%?=' }, /mcp-name/],
    [
      'another MCP-Protocol-Version',
      { ...HEADERS, 'mcp-protocol-version': '2025-11-25' },
      /mcp-protocol-version is "2025-11-25"/,
    ],
  ])('a request with %s is rejected as a header mismatch', async (_what, headers, message) => {
    const { status, error, messages } = await post(url, CALL, headers as Record<string, string>);
    expect(status).toBe(400);
    expect(messages[0].id).toBe('c');
    expect(error.code).toBe(-32020);
    expect(error.message).toMatch(message);
  });

  test.each([
    ['no _meta', undefined, VERSION],
    ['no revision', { [CAPABILITIES]: {} }, VERSION],
    ['no capabilities', { [VERSION]: MODERN }, CAPABILITIES],
    ['capabilities that are a list', envelope([]), CAPABILITIES],
    ['a client without a name', envelope({}, { [metaKey('clientInfo')]: {} }), metaKey('clientInfo')],
    ['an unknown log level', envelope({}, { [metaKey('logLevel')]: 'loud' }), metaKey('logLevel')],
  ])('a request with %s is rejected with the key that is wrong', async (_what, meta, key) => {
    const message = { ...CALL, params: { ...params, _meta: meta } };
    const { status, error } = await post(url, message, HEADERS);
    expect(status).toBe(400);
    expect(error.code).toBe(-32602);
    expect(error.message).toContain(`params._meta["${key}"]`);
  });

  test('a later revision is rejected with the supported ones', async () => {
    const message = { ...CALL, params: { ...params, _meta: { ...envelope(), [VERSION]: '2031-01-01' } } };
    const { status, error } = await post(url, message, { ...HEADERS, 'mcp-protocol-version': '2031-01-01' });
    expect(status).toBe(400);
    expect(error).toMatchObject({ code: -32022, data: { requested: '2031-01-01' } });
    expect(error.data.supported[0]).toBe(MODERN);
  });

  test.each([
    'initialize',
    'ping',
    'logging/setLevel',
    'resources/subscribe',
    'resources/unsubscribe',
    'tasks/list',
  ])('the method %s, which the revision does not have, is 404 with an error', async (method) => {
    const { status, error } = await modern(url, method);
    expect(status).toBe(404);
    expect(error).toEqual({ code: -32601, message: `method not found: ${method}` });
  });

  test('a method that the target does not have is 404 with the error of the target', async () => {
    const { status, error } = await modern(url, 'com.example/other');
    expect(status).toBe(404);
    expect(error).toEqual({ code: -32601, message: 'no method com.example/other' });
  });

  test('a name that is not plain ASCII is compared decoded, and sent to the target encoded', async () => {
    const { status } = await modernCall(url, 'grüße', {}, { headers: { 'mcp-name': b64('grüße') } });
    expect(status).toBe(200);
    expect((up.of('tools/call').at(-1) as Json).headers['mcp-name']).toBe(b64('grüße'));
  });

  test('a session id and Last-Event-ID are ignored', async () => {
    const headers = { 'mcp-session-id': 'unknown', 'last-event-id': 'x.1' };
    expect((await modern(url, 'tools/list', {}, { headers })).status).toBe(200);
  });

  test.each([{ _meta: envelope() }, { requestId: 1 }])(
    'a notification is accepted without the headers and _meta of requests: %j',
    async (params) => {
      const message = { jsonrpc: '2.0', method: 'notifications/cancelled', params };
      expect((await post(url, message, { 'mcp-protocol-version': MODERN })).status).toBe(202);
      expect((await post(url, message, { 'mcp-protocol-version': '2099-01-01' })).status).toBe(400);
    },
  );

  test('server/discover names the revisions of the gateway and keeps the rest of the answer', async () => {
    const { result } = await modern(url, 'server/discover');
    expect(result.supportedVersions).toEqual([
      MODERN,
      '2025-11-25',
      '2025-06-18',
      '2025-03-26',
      '2024-11-05',
    ]);
    expect(result).toMatchObject({ ttlMs: 60_000, cacheScope: 'public', instructions: 'how to use up' });
    expect(result._meta[metaKey('serverInfo')]).toEqual({ name: 'up', version: '7' });
  });

  test('keys that differ from those of the revision in case only are rejected', async () => {
    const meta = { ...envelope(), [VERSION.toUpperCase()]: '2025-11-25' };
    const { status, error } = await post(url, { ...CALL, params: { ...params, _meta: meta } }, HEADERS);
    expect([status, error.code]).toEqual([400, -32600]);
  });
});

describe('refusals of a target', () => {
  test('a 401 with its challenge reaches the client', async () => {
    await using up = await modernUpstream('up', ({ message }, response) => {
      if (message.method !== 'tools/call') return false;
      response.writeHead(401, { 'www-authenticate': 'Bearer scope="x"' }).end('sign in');
      return true;
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const { status, headers, text } = await modernCall(`${gate.url}/mcp`, 'say');
    expect([status, headers.get('www-authenticate'), text]).toEqual([401, 'Bearer scope="x"', 'sign in']);
  });

  test('a missing capability is 400 with the data of the error', async () => {
    const error = {
      code: -32021,
      message: 'needs elicitation',
      data: { requiredCapabilities: { elicitation: {} } },
    };
    await using up = await modernUpstream('up', ({ message }, response) => {
      if (message.method !== 'tools/call') return false;
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }));
      return true;
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const reply = await modernCall(`${gate.url}/mcp`, 'say', {}, { id: 'own' });
    expect(reply.status).toBe(400);
    expect(reply.messages).toEqual([{ jsonrpc: '2.0', id: 'own', error }]);
  });

  test('a 400 of a target without an error of the protocol is an error of the protocol', async () => {
    // As the Go SDK answers unknown methods in a session.
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/call') return false;
        response.writeHead(400, { 'content-type': 'text/plain' }).end('not handled');
        return true;
      },
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const { status, error } = await modernCall(`${gate.url}/mcp`, 'say');
    expect([status, error]).toEqual([
      200,
      { code: -32603, message: 'the server answered HTTP 400: not handled' },
    ]);
  });

  test('closing the connection cancels the call at the target', async () => {
    const closed = Promise.withResolvers<void>();
    const called = Promise.withResolvers<void>();
    await using up = await modernUpstream('up', ({ message }, response) => {
      if (message.method !== 'tools/call') return false;
      called.resolve();
      response.on('close', () => closed.resolve());
      return true;
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const leave = new AbortController();
    const call = post(`${gate.url}/mcp`, CALL, HEADERS, { signal: leave.signal }).catch(() => 'left');
    await called.promise;
    leave.abort();
    expect(await call).toBe('left');
    await closed.promise;
  });

  test('a target that cannot be reached is an error with the reason', async () => {
    const up = await modernUpstream('up');
    await up[Symbol.asyncDispose]();
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const { status, error } = await modernCall(`${gate.url}/mcp`, 'say');
    expect(status).toBe(500);
    expect(error.message).toMatch(/target "up".*connection refused/);
  });
});

test('rules apply to each request, and results that depend on them are private to the caller', async () => {
  await using up = await modernUpstream('up');
  const route = {
    policies: {
      mcpAuthorization: { rules: ['mcp.tool.name == "none"', 'mcp.resource.name == "file:///a"'] },
    },
  };
  await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }], { route }));
  const url = `${gate.url}/mcp`;
  expect((await modernCall(url, 'say')).error).toEqual({ code: -32602, message: 'Unknown tool: say' });
  expect((await modern(url, 'tools/list')).result).toMatchObject({ tools: [], cacheScope: 'private' });
  const read = await modern(url, 'resources/read', { uri: 'file:///a' });
  expect(read.result).toMatchObject({ cacheScope: 'private', contents: [{ text: 'up file:///a' }] });
});

describe('requests of revision 2026-07-28 to several targets', () => {
  test('a task has an id that names its target, and requests about it reach that target', async () => {
    const task = (): ReturnType<typeof modernUpstream> =>
      modernUpstream('up', ({ message }, response) => {
        if (!/^tasks|^tools.call/.test(message.method)) return false;
        reply(response, message, { resultType: 'task', taskId: 't 1', status: 'working' });
        return true;
      });
    await using one = await task();
    await using two = await task();
    const targets = [
      { name: 'one', mcp: { host: one.url } },
      { name: 'two', mcp: { host: two.url } },
    ];
    await using gate = await gateway(mcpConfig(targets));
    const { result } = await modernCall(`${gate.url}/mcp`, 'two_slow');
    expect(result).toEqual({ resultType: 'task', taskId: 'two+t 1', status: 'working' });
    const headers = { 'mcp-name': 'two+t 1' };
    await modern(`${gate.url}/mcp`, 'tasks/get', { taskId: 'two+t 1' }, { headers });
    const [get] = two.of('tasks/get') as Json[];
    expect([get.message.params.taskId, get.headers['mcp-name']]).toEqual(['t 1', 't 1']);
  });

  test('names are prefixed in lists, and Mcp-Name has the name of the target', async () => {
    await using one = await modernUpstream('one');
    await using two = await modernUpstream('two');
    const targets = [
      { name: 'one', mcp: { host: one.url } },
      { name: 'two', mcp: { host: two.url } },
      chaos('old', '--tools=echo', '--resources=file:///old'),
    ];
    await using gate = await gateway(mcpConfig(targets));
    const url = `${gate.url}/mcp`;
    const { result } = await modern(url, 'tools/list', {}, { capabilities: { roots: {} } });
    expect(result).toMatchObject({ resultType: 'complete', ttlMs: 0, cacheScope: 'private' });
    expect(result.tools.map(({ name }: Json) => name)).toEqual(['one_say', 'two_say', 'old_echo']);
    expect((one.of('tools/list')[0] as Json).message.params._meta).toEqual(envelope({ roots: {} }));

    const called = await modernCall(url, 'two_say', { message: 'hi' });
    expect(called.result.content[0].text).toBe('two says hi');
    expect((two.of('tools/call')[0] as Json).headers['mcp-name']).toBe('say');
    expect((two.of('tools/call')[0] as Json).message.params.name).toBe('say');

    const read = await modern(url, 'resources/read', { uri: 'one+file:///a' });
    expect(read.result.contents[0]).toEqual({ uri: 'one+file:///a', text: 'one file:///a' });
    expect((one.of('resources/read')[0] as Json).headers['mcp-name']).toBe('file:///a');

    const old = await modernCall(url, 'old_echo', { message: 'from the old one' });
    expect(old.result).toEqual({
      resultType: 'complete',
      content: [{ type: 'text', text: 'from the old one' }],
    });
    const discovered = (await modern(url, 'server/discover')).result;
    expect(discovered.capabilities).toMatchObject({ tools: { listChanged: true }, logging: {} });
    expect(discovered.instructions).toContain('[old]\nhow to use old');
  });
});
