import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { gateway, parseAccessLine } from '../../kit/gateway.ts';
import { MCP_HEADERS, openSession, post, toolCall } from '../../kit/mcp.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { until } from '../../kit/until.ts';

const TARGETS = [
  chaos('a', '--tools=echo', '--prompts=ask', '--resources=file:///x'),
  chaos('b', '--tools=other'),
];

// Values that differ between runs are replaced by placeholders.
const settled = (line: string): string =>
  line
    .replace(/\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z/, 'TIME')
    .replace(/127\.0\.0\.1:\d+/, 'CLIENT')
    .replace(/localhost:\d+|127\.0\.0\.1:\d+/, 'HOST')
    .replace(/duration=\d+ms|"duration":"\d+ms"/, (text) => text.replace(/\d+/, 'N'))
    .replace(/(mcp\.session\.id"?[=:]"?)[\w-]{12}/, '$1SESSION');

const call = (name: string, id: unknown = 1) => ({ jsonrpc: '2.0', ...toolCall(id, name) });

describe('access log lines', () => {
  test('access log text lines have the specified fields in order', async () => {
    await using gate = await gateway(mcpConfig(TARGETS, { route: { name: 'tools' } }));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/call', { name: 'a_echo', arguments: {} });
    await session.request('prompts/get', { name: 'a_ask' });
    await session.request('resources/read', { uri: 'a+file:///x' });
    await session.request('tools/list');
    await session.request('tools/call', { name: 'nowhere', arguments: {} });
    await session.end();
    await fetch(`${gate.url}/mcp?q=1`, { method: 'PUT' });
    await until(() => gate.accessLog.length === 9);
    const common =
      'TIME\tinfo\trequest gateway=default/default listener=default route=default/tools src.addr=CLIENT';
    const post = `${common} http.method=POST http.host=HOST http.path=/mcp http.version=HTTP/1.1`;
    expect(gate.accessLog.map(settled)).toEqual([
      `${post} http.status=200 protocol=mcp mcp.method.name=initialize mcp.session.id=SESSION duration=Nms\n`,
      `${post} http.status=202 protocol=mcp mcp.method.name=notifications/initialized mcp.session.id=SESSION duration=Nms\n`,
      `${post} http.status=200 protocol=mcp mcp.method.name=tools/call mcp.target=a mcp.resource.type=tool gen_ai.tool.name=echo mcp.session.id=SESSION duration=Nms\n`,
      `${post} http.status=200 protocol=mcp mcp.method.name=prompts/get mcp.target=a mcp.resource.type=prompt gen_ai.prompt.name=ask mcp.session.id=SESSION duration=Nms\n`,
      `${post} http.status=200 protocol=mcp mcp.method.name=resources/read mcp.target=a mcp.resource.type=resource mcp.resource.uri=file:///x mcp.session.id=SESSION duration=Nms\n`,
      `${post} http.status=200 protocol=mcp mcp.method.name=tools/list mcp.resource.type=tool mcp.session.id=SESSION duration=Nms\n`,
      `${post} http.status=200 protocol=mcp mcp.method.name=tools/call mcp.resource.type=tool gen_ai.tool.name=nowhere mcp.session.id=SESSION mcp.error.code=-32602 mcp.error.message="Unknown tool: nowhere" duration=Nms\n`,
      `${common} http.method=DELETE http.host=HOST http.path=/mcp http.version=HTTP/1.1 http.status=204 protocol=mcp mcp.session.id=SESSION duration=Nms\n`,
      `${common} http.method=PUT http.host=HOST http.path=/mcp?q=1 http.version=HTTP/1.1 http.status=405 protocol=mcp error="mcp: method not allowed; must be GET, POST, or DELETE" reason=MCP duration=Nms\n`,
    ]);
  });

  test('access log JSON lines have the same fields in the same order', async () => {
    const config = { logging: { format: 'json' } };
    await using gate = await gateway(mcpConfig([chaos('a')], { config, route: { name: 'tools' } }));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/call', { name: 'echo', arguments: {} });
    await fetch(`${gate.url}/mcp`, { method: 'PUT' });
    await until(() => gate.accessLog.length === 4);
    const common =
      '{"level":"info","time":"TIME","scope":"request","gateway":"default/default","listener":"default",' +
      '"route":"default/tools","src.addr":"CLIENT"';
    expect(gate.accessLog.slice(2).map(settled)).toEqual([
      `${common},"http.method":"POST","http.host":"HOST","http.path":"/mcp","http.version":"HTTP/1.1","http.status":200,"protocol":"mcp","mcp.method.name":"tools/call","mcp.target":"a","mcp.resource.type":"tool","gen_ai.tool.name":"echo","mcp.session.id":"SESSION","duration":"Nms"}\n`,
      `${common},"http.method":"PUT","http.host":"HOST","http.path":"/mcp","http.version":"HTTP/1.1","http.status":405,"protocol":"mcp","error":"mcp: method not allowed; must be GET, POST, or DELETE","reason":"MCP","duration":"Nms"}\n`,
    ]);
  });

  test('access log lines are written for requests without a route and record the HTTP version', async () => {
    await using gate = await gateway(
      mcpConfig(TARGETS, { route: { matches: [{ path: { exact: '/mcp' } }] } }),
    );
    await sendRaw(gate.port, rawRequest('GET /else HTTP/1.0'), { responses: 1 });
    const line = await gate.accessLine(1);
    expect(line).toMatchObject({
      'http.version': 'HTTP/1.0',
      'http.status': '404',
      error: 'route not found',
      reason: 'NotFound',
    });
    expect(line).not.toHaveProperty('route');
  });

  test('access log lines of a stream are written when the stream ends', async () => {
    await using gate = await gateway(mcpConfig(TARGETS));
    const session = await openSession(`${gate.url}/mcp`);
    await using stream = await openEvents(session.url, { session: session.id });
    await session.request('ping');
    // Lines of initialize, initialized and ping, but none of the stream, which is still open.
    await until(() => gate.accessLog.length === 3);
    stream.close();
    expect(await gate.accessLine(4)).toMatchObject({ 'http.method': 'GET', 'http.status': '200' });
  });

  test('access log lines are written when the client disconnects before a response', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    const leave = new AbortController();
    const answer = fetch(session.url, {
      method: 'POST',
      headers: { ...MCP_HEADERS, 'mcp-session-id': session.id },
      body: JSON.stringify(call('hang')),
      signal: leave.signal,
    });
    await until(() => gate.log.some((line) => line.includes('target started')));
    await session.request('ping');
    leave.abort();
    await expect(answer).rejects.toThrow();
    await until(() => gate.accessLog.length === 4);
    const lines = gate.accessLog.map(parseAccessLine);
    expect(lines.find((line) => line['gen_ai.tool.name'] === 'hang')).toMatchObject({ 'http.status': '499' });
  });
});

describe('access log escaping', () => {
  const HOSTILE = 'a\r\n2026-01-01T00:00:00Z\tinfo\trequest forged=1\u001b[2J\u009b31m\u2028\u202eevil\u0000';

  test.each(['text', 'json'])(
    'access log in %s format keeps a hostile tool name within its line',
    async (format) => {
      await using gate = await gateway(mcpConfig([chaos('a')], { config: { logging: { format } } }));
      const session = await openSession(`${gate.url}/mcp`);
      await session.request('tools/call', { name: HOSTILE, arguments: {} });
      await until(() => gate.accessLog.length === 3);
      const line = gate.accessLog[2] as string;
      expect(line.slice(0, -1)).not.toMatch(/(?!\t)\p{Cc}|[\u2028\u2029\u202a-\u202e]/u);
      expect(line.endsWith('\n')).toBe(true);
      expect(line).toContain('evil');
    },
  );

  test('access log keeps hostile bytes of the host, path and error within their line', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const bytes = Buffer.from('GET /mcp?\x80\x9b31m HTTP/1.1\r\nHost: evil\x9b31m\x85\r\n\r\n', 'latin1');
    await sendRaw(gate.port, bytes);
    const good = Buffer.from('GET /mcp HTTP/1.1\r\nHost: evil\x9b31m\x85\r\n\r\n', 'latin1');
    await sendRaw(gate.port, good, { responses: 1 });
    await until(() => gate.accessLog.length > 0);
    for (const line of gate.accessLog) expect(line.slice(0, -1)).not.toMatch(/(?!\t)\p{Cc}/u);
    expect(gate.accessLog[0]).toContain(' http.host=evil\\u{9b}31m');
    expect(gate.accessLog[0]).toContain(' reason=InvalidRequest');
  });

  test('access log JSON lines stay valid JSON with a hostile tool name', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')], { config: { logging: { format: 'json' } } }));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/call', { name: HOSTILE, arguments: {} });
    await until(() => gate.accessLog.length === 3);
    expect(JSON.parse(gate.accessLog[2] as string)['gen_ai.tool.name']).toContain('evil');
  });

  test('access log values are truncated at 1 KiB', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    await post(`${gate.url}/mcp`, call('x'.repeat(100_000)), { 'mcp-session-id': 'x'.repeat(5_000) });
    await fetch(`${gate.url}/mcp?${'y'.repeat(5_000)}`, { method: 'PUT' });
    await until(() => gate.accessLog.length === 2);
    for (const line of gate.accessLog) expect(line.length).toBeLessThan(2_000);
    expect(gate.accessLog[1]).toContain(`${'y'.repeat(1_019)}… http.version`);
  });

  test('access log tool names cannot forge other fields', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/call', { name: 'x http.status=500 reason=forged', arguments: {} });
    expect(await gate.accessLine(3)).toMatchObject({ 'http.status': '200' });
  });

  test('access log shows only a part of the session id', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('ping');
    await until(() => gate.accessLog.length === 3);
    expect([...gate.accessLog, ...gate.log].join('')).not.toContain(session.id);
    expect((await gate.accessLine(3))['mcp.session.id']).toBe(session.id.slice(0, 12));
  });
});
