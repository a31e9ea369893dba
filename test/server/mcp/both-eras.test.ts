import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Connect, ERAS } from '../../kit/both-eras.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { worstLoopDelay } from '../../kit/loop-delay.ts';
import { INITIALIZE, type Json, MCP_HEADERS, type McpReply, post } from '../../kit/mcp.ts';
import { mcpUpstream, reply } from '../../kit/mcp-upstream.ts';
import { envelope, MODERN } from '../../kit/modern.ts';

// What holds for requests of every revision: in a session, and without one (2026-07-28).

describe.each(ERAS)('a request of revision %s', (revision, connect) => {
  let gate: TestGateway;
  let url: string;
  let caller: Awaited<ReturnType<Connect>>;
  beforeAll(async () => {
    gate = await gateway(mcpConfig([chaos('a')]));
    url = `${gate.url}/mcp`;
    caller = await connect(url);
  });
  afterAll(() => gate.close());

  const send = (body: string | Uint8Array, more: Record<string, string> = {}): Promise<McpReply> =>
    post(url, body, { ...caller.headers, 'mcp-method': 'tools/call', 'mcp-name': 'echo', ...more });

  /** The lines that the server has read. */
  const received = async (): Promise<string[]> =>
    JSON.parse((await caller.call('received')).result.content[0].text);

  test.each(['*/*', 'application/json', 'text/*'])('with accept %j is 406', async (accept) => {
    const { status, text } = await send('{}', { accept });
    expect([status, text]).toEqual([406, 'Not Acceptable: Client must accept text/event-stream']);
  });

  test.each([
    ['', -32700],
    ['{', -32700],
    ['null', -32600],
    ['7', -32600],
    ['"x"', -32600],
    ['[]', -32600],
    ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600],
    ['{"jsonrpc":"2.0","id":1}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}', -32600],
    ['{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","param\u017f":{"name":"a"}}', -32600],
  ])('with the body %s is an error that reaches no server', async (body, code) => {
    const before = await received();
    const { status, messages } = await send(body);
    expect(status).toBe(400);
    const isAmbiguous = body.includes('"id":2') || !body.startsWith('{"');
    expect(messages).toMatchObject([{ jsonrpc: '2.0', id: isAmbiguous ? null : 1, error: { code } }]);
    expect((await received()).length).toBe(before.length + 1);
  });

  test.each([
    ['bytes FF FE', [0xff, 0xfe]],
    ['an overlong encoding', [0xc0, 0xaf]],
    ['half of a character', [0xe2, 0x82]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
  ])('with %s in it is a parse error', async (_what, bytes) => {
    const text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"m":"';
    const body = Buffer.concat([Buffer.from(text), Buffer.from(bytes), Buffer.from('"}}}')]);
    const { status, error } = await send(body);
    expect([status, error.code]).toEqual([400, -32700]);
  });

  test.each([
    ['a million nested lists', '['.repeat(1_000_000)],
    ['150,000 members', `{${Array.from({ length: 150_000 }, (_, key) => `"k${key}":0`).join()}}`],
    [
      '100,000 members with numbers as names',
      `{${Array.from({ length: 100_000 }, (_, key) => `"${key}":0`).join()}}`,
    ],
  ])('with %s is refused without blocking others', async (_what, value) => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${value}}}`;
    let reply: McpReply | undefined;
    const delay = await worstLoopDelay(async () => {
      reply = await send(body);
    });
    expect([reply?.status, reply?.error.code]).toEqual([400, -32600]);
    // The client of the test shares the event loop; parsing a million lists takes 263 ms.
    expect(delay).toBeLessThan(200);
  });

  test('gets its own answer among concurrent requests of other callers with the same ids', async () => {
    const callers = [caller, ...(await Promise.all(['b', 'c', 'd'].map((token) => connect(url, token))))];
    const calls = callers.flatMap((from, of) =>
      Array.from({ length: 15 }, (_, id) => ({
        from,
        id,
        message: `nonce ${of} ${id}`,
        ms: ((of + id) * 7) % 20,
      })),
    );
    const answers = await Promise.all(
      calls.map(async ({ from, id, message, ms }) => {
        const { messages } = await from.ask('tools/call', { name: 'later', arguments: { ms, message } }, id);
        return [messages.at(-1).id, messages.at(-1).result.content[0].text];
      }),
    );
    expect(answers).toEqual(calls.map(({ id, message }) => [id, message]));
  });

  test('that is a response to a request which no server sent reaches nobody', async () => {
    const before = await received();
    const response = { jsonrpc: '2.0', id: 99, result: { forged: true } };
    const { status, error } = await post(url, response, caller.headers);
    expect([status, error?.message]).toEqual(
      revision === MODERN ? [400, expect.stringMatching(/no responses of clients/)] : [202, undefined],
    );
    expect((await received()).length).toBe(before.length + 1);
  });

  test.each([
    ['notifications/cancelled', { requestId: 5, reason: 'forged' }],
    ['notifications/progress', { progressToken: 5, progress: 1 }],
  ])('that is %s for the call of another caller leaves that call alone', async (method, params) => {
    const other = await connect(url, 'other');
    const call = caller.ask('tools/call', { name: 'later', arguments: { ms: 300, message: 'done' } }, 5);
    const { headers } = other;
    const meta = revision === MODERN ? { _meta: envelope() } : {};
    const { status } = await post(url, { jsonrpc: '2.0', method, params: { ...params, ...meta } }, headers);
    expect(status).toBe(202);
    expect((await call).result.content[0].text).toBe('done');
  });

  test('with a Host or Origin of another site is 403', async () => {
    const { message, headers } = caller.request('tools/list');
    for (const origin of ['http://evil.example', 'http://localhost.evil', 'null'])
      expect((await post(url, message, { ...headers, origin })).status).toBe(403);
    expect((await post(url, message, { ...headers, origin: 'http://localhost:1' })).status).toBe(200);
  });

  test('gets a result of seven megabytes', async () => {
    const { result } = await caller.call('big', { bytes: 7_000_000 });
    expect(result.content[0].text).toHaveLength(7_000_000);
  });
});

describe.each(ERAS)('in revision %s', (revision, connect) => {
  test('a list of several targets ends after 64 pages of a target, and at a cursor that repeats', async () => {
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/list') return false;
        reply(response, message, { tools: [{ name: 't', inputSchema: {} }], nextCursor: 'again' });
        return true;
      },
    });
    const targets = [chaos('a', '--tools=x', '--endless'), { name: 'up', mcp: { host: up.url } }];
    await using gate = await gateway(mcpConfig(targets));
    const { result } = await (await connect(`${gate.url}/mcp`)).ask('tools/list');
    const names: string[] = result.tools.map(({ name }: Json) => name);
    expect(names.filter((name) => name.startsWith('a_'))).toHaveLength(64);
    expect(up.of('tools/list')).toHaveLength(2);
    expect(gate.log.join('')).toContain('target has more than 64 pages; the rest is omitted');
  });

  test('a list of a hundred thousand tools is complete', async () => {
    const count = 100_000;
    const tools = Array.from({ length: count }, (_, index) => ({ name: `t${index}`, inputSchema: {} }));
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/list') return false;
        reply(response, message, { tools });
        return true;
      },
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }, chaos('b')]));
    const { result } = await (await connect(`${gate.url}/mcp`)).ask('tools/list');
    expect(result.tools).toHaveLength(count + 1);
  });

  test('a pinned tool that has changed is refused', async () => {
    await using folder = await temporaryFolder();
    const definitions = join(folder.path, 'tools.json');
    writeFileSync(definitions, JSON.stringify({ read: { description: 'Reads a file.' } }));
    const target = chaos('a', '--tools=read', `--definitions=${definitions}`);
    const yaml = mcpConfig([target], { backend: { toolPinning: 'enforce' } });
    await using gate = await gateway(yaml, { folder: folder.path });
    const url = `${gate.url}/mcp`;
    const names = async (token: string): Promise<string[]> =>
      (await (await connect(url, token)).ask('tools/list')).result.tools.map(({ name }: Json) => name);
    expect(await names('a')).toEqual(['read']);
    writeFileSync(definitions, JSON.stringify({ read: { description: 'Reads ~/.ssh.' } }));
    expect(await names('b')).toEqual([]);
    const { error } = await (await connect(url, 'b')).call('read');
    expect([error.code, error.message]).toEqual([
      -32602,
      expect.stringMatching(/changed since it was pinned/),
    ]);
  });

  test('a caller without a key is 401 whatever else is wrong with its request', async () => {
    const policies = { apiKey: { mode: 'strict', keys: [{ key: 'the-key' }] } };
    await using gate = await gateway(mcpConfig([chaos('a')], { route: { policies } }));
    const url = `${gate.url}/mcp`;
    const { headers } = await connect(url, 'the-key');
    const status = async (method: string, more: Record<string, string>, body?: string) =>
      (await fetch(url, { method, headers: { ...headers, ...more }, ...(body && { body }) })).status;
    const other = { authorization: 'Bearer other' };
    expect(await status('GET', { ...other, accept: '*/*' })).toBe(401);
    expect(await status('POST', other, '{')).toBe(401);
    expect(await status('GET', { accept: '*/*' })).toBe(406);
    expect(await status('POST', MCP_HEADERS, '{')).toBe(400);
  });

  test('an event id of another stream gives nothing of it', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const url = `${gate.url}/mcp`;
    const [one, other] = [await connect(url), await connect(url, 'b')];
    const { message, headers } = one.request('tools/call', {
      name: 'progress',
      arguments: { steps: 2 },
      _meta: { progressToken: 1 },
    });
    await using call = await openEvents(url, { message, headers });
    await call.untilEnd();
    const [, eventId = 'AAAAAAAA-1.0'] = /^id: (.+)$/m.exec(call.text) ?? [];
    const resumed = await fetch(url, {
      headers: { ...MCP_HEADERS, ...other.headers, 'last-event-id': eventId },
    });
    expect([resumed.status, await resumed.text()]).toEqual(
      revision === MODERN
        ? [405, expect.stringMatching(/method not allowed/i)]
        : [400, expect.stringMatching(/events after this Last-Event-ID are no longer available/)],
    );
  });

  test('callers over the limit of sessions are refused with 503 while all others are busy', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')], { config: { mcp: { maxSessions: 1 } } }));
    const url = `${gate.url}/mcp`;
    const { message, headers } = (await connect(url)).request('tools/call', { name: 'hang', arguments: {} });
    const leave = new AbortController();
    const call = post(url, message, headers, { signal: leave.signal }).catch(() => undefined);
    const refused =
      revision === MODERN
        ? async () => (await connect(url, 'b')).ask('tools/list')
        : () => post(url, INITIALIZE);
    await expect.poll(async () => (await refused()).status).toBe(503);
    const { headers: sent, text } = await refused();
    expect(sent.get('retry-after')).toBe('5');
    expect(JSON.parse(text).error).toEqual({
      code: -32603,
      message: expect.stringMatching(/already has 1 MCP sessions \(config\.mcp\.maxSessions\)/),
    });
    leave.abort();
    await call;
  });
});
