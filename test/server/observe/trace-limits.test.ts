import { get } from 'node:http';
import { createConnection } from 'node:net';
import { expect, test, vi } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { Tracer } from '../../../src/server/observe/trace/tracer.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { chat, llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { INITIALIZE, openSession, post } from '../../kit/mcp.ts';
import { send } from '../../kit/send.ts';
import { openTrace, recorded, traceServer } from '../../kit/trace.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const routed = (policies: object, host = 'unused:1'): Promise<TestGateway> =>
  gateway(
    JSON.stringify({
      config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
      gateways: { default: { port: 0, routes: [{ policies, backends: [{ host }] }] } },
    }),
  );

const decoded = (events: readonly { message: object }[]): string =>
  events
    .map(({ message }) =>
      'body' in message
        ? Buffer.from(message.body as string, 'base64').toString('latin1')
        : JSON.stringify(message),
    )
    .join('\n');

test('a request without a watcher makes no watcher lookup and emits no trace events', async () => {
  await using gate = await routed({ directResponse: {}, authorization: { rules: ['true'] } });
  const emit = vi.spyOn(Tracer.prototype, 'emit');
  const claim = vi.spyOn(gate.running.traceSubscribers, 'claim');
  try {
    for (let index = 0; index < 20; index += 1) await send(gate.url);
    expect([claim.mock.calls.length, emit.mock.calls.length]).toEqual([0, 0]);
    await recorded(gate, () => send(gate.url));
    expect(claim.mock.calls.length).toBe(1);
    expect(emit.mock.calls.length).toBeGreaterThan(10);
  } finally {
    vi.restoreAllMocks();
  }
});

test('a trace shows no credentials that a backend echoes or that the configuration contains', async () => {
  await using upstream = await httpUpstream(({ rawHeaders, url }, response) =>
    response
      .writeHead(200, { 'x-echo': rawHeaders.join(' '), 'set-cookie': 'sid=canary-set' })
      .end(`${url} ${rawHeaders.join(' ')}`),
  );
  const location = { queryParameter: { name: 'door' } };
  const policies = {
    apiKey: { mode: 'permissive', keys: [{ key: 'canary-door' }], location },
    authorization: {
      rules: ['request.headers["x-pass"].startsWith("can") && request.headers["x-pass"] != ""'],
    },
    requestHeaderModifier: { set: { 'x-api-key': 'canary-configured' } },
  };
  await using gate = await routed(policies, upstream.address);
  const headers = {
    authorization: 'Bearer canary-bearer',
    cookie: 'a=canary-cookie; b=canary-other',
    'x-api-key': 'canary-key',
    'proxy-authorization': 'Basic canary-proxy',
    'x-pass': 'canary',
  };
  const events = await recorded(gate, () => send(`${gate.url}/a?door=canary-door&q=1`, { headers }));
  const text = decoded(events);
  expect(text).toContain('"q=1"'.slice(1, -1));
  // A header without a credential name is shown, which proves that the others would be, too.
  expect(text.replaceAll('"x-pass":"canary"', '').match(/canary-(?!configured)[a-z]+/g)).toBeNull();
  expect(text).not.toContain('canary-configured');
});

test('a trace never shows the key of a provider in any response', async () => {
  await using provider = await llmProvider(({ headers }, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ echoed: headers })),
  );
  await using gate = await llmGateway(provider, { params: { apiKey: 'canary-provider-key' } });
  const events = await recorded(gate, () => chat(gate));
  expect(decoded(events)).toContain('echoed');
  expect(decoded(events)).not.toContain('canary');
});

test('a trace escapes terminal control characters', async () => {
  await using upstream = await httpUpstream((_, response) => response.end('\u001b]0;owned\u0007\u009b31m'));
  await using gate = await routed({}, upstream.address);
  await using server = await traceServer(gate.running);
  await using trace = await openTrace(server);
  await send(`${gate.url}/a`, { headers: { 'x-nasty': '\u009b31m', origin: 'a\tb' } });
  await trace.all();
  const isHarmless = (code: number): boolean =>
    code === 10 || (code >= 32 && code < 127) || (code > 0x9f && (code < 0x2028 || code > 0x202e));
  expect([...trace.text].filter((character) => !isHarmless(character.charCodeAt(0)))).toEqual([]);
  expect(trace.text).toContain('\\u009b31m');
  expect(JSON.stringify(trace.events)).toContain('\u009b31m');
});

test('a trace shows the beginning of a large upload, which is still streamed', async () => {
  await using upstream = await httpUpstream((_, response, { body }) => response.end(String(body.length)));
  await using gate = await routed({}, upstream.address);
  const size = 5 * LIMITS.traceBodyBytes;
  let answer = '';
  const events = await recorded(gate, async () => {
    answer = (await send(gate.url, { method: 'POST', body: 'u'.repeat(size) })).text;
  });
  expect(answer).toBe(String(size));
  const bodies = events.flatMap(({ message }) => (message.type === 'bodySnapshot' ? [message] : []));
  expect(
    bodies.map(({ stage, body, truncated }) => [stage, Buffer.from(body, 'base64').length, truncated]),
  ).toEqual([
    ['final request', LIMITS.traceBodyBytes, true],
    ['response', String(size).length, undefined],
  ]);
});

test('trace states are bounded for any client input', async () => {
  await using gate = await routed({ directResponse: {} });
  const headers = Object.fromEntries(
    Array.from({ length: 60 }, (_, index) => [`x-h${index}`, 'v'.repeat(200)]),
  );
  const events = await recorded(gate, () => send(`${gate.url}/?${'q'.repeat(3_000)}`, { headers }));
  for (const event of events) expect(JSON.stringify(event).length).toBeLessThan(2 * LIMITS.traceStateLength);
});

test('the trace of a request whose client disconnects ends and says so', async () => {
  await using upstream = await httpUpstream(() => undefined);
  await using gate = await routed({}, upstream.address);
  const events = await recorded(gate, async () => {
    const call = get(gate.url).on('error', () => undefined);
    await until(() => upstream.received.length === 1);
    call.destroy();
  });
  expect(events.at(-1)?.message).toMatchObject({ type: 'requestFinished', status: null });
});

test('a trace reader that does not read loses events, is informed of the loss and costs no memory', async () => {
  await using gate = await routed({ directResponse: {} });
  await using server = await traceServer(gate.running);
  const socket = createConnection(server.port, '127.0.0.1');
  socket.pause();
  socket.write('GET /debug/trace?count=999999 HTTP/1.1\r\nhost: x\r\n\r\n');
  await until(() => gate.running.traceSubscribers.active);
  const heavy = `${gate.url}/${'y'.repeat(7_000)}`;
  // The socket buffers add to what the stream may hold.
  for (let index = 0; index < 200; index += 1) await send(heavy);
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  socket.resume();
  await until(async () => {
    await send(gate.url);
    return text.includes('missing here: the reader was too slow');
  });
  const [, dropped] = /"dropped":(\d+)/.exec(text) ?? [];
  expect(Number(dropped)).toBeGreaterThan(0);
  expect(text.length).toBeLessThan(2 * LIMITS.traceQueueBytes + 8_000_000);
  socket.destroy();
  await until(() => !gate.running.traceSubscribers.active);
});

test('a trace of many requests watches a bounded number at once, and the next one when one has ended', async () => {
  const open: (() => void)[] = [];
  await using upstream = await httpUpstream((_, response) => open.push(() => response.end()));
  await using gate = await routed({}, upstream.address);
  await using server = await traceServer(gate.running);
  await using trace = await openTrace(server, '?count=999');
  const calls = Array.from({ length: LIMITS.traceFollowed + 2 }, () => send(gate.url));
  await until(() => open.length === calls.length);
  expect(trace.of('requestStarted')).toHaveLength(LIMITS.traceFollowed);
  for (const end of open.splice(0)) end();
  await Promise.all(calls);
  const next = send(gate.url);
  await until(() => open.length === 1);
  open[0]?.();
  await next;
  await until(() => trace.of('requestFinished').length === LIMITS.traceFollowed + 1);
});

test('a trace with follow=true leaves requests out rather than slow all of them down, and says how many', async () => {
  await using gate = await routed({ directResponse: {} });
  await using server = await traceServer(gate.running);
  await using trace = await openTrace(server, '?follow=true');
  const burst = LIMITS.traceFollowedPerSecond + 10;
  let sent = 0;
  await until(async () => {
    await Promise.all(Array.from({ length: burst }, () => send(gate.url)));
    sent += burst;
    return trace.text.includes('not traced');
  });
  const skipped = trace
    .of('message')
    .map(({ message }) => Number(/^(\d+) earlier requests? w\w+ not traced/.exec(message)?.[1]));
  const started = trace.of('requestStarted').length;
  expect(started).toBeLessThan(sent);
  expect(started).toBeGreaterThan(LIMITS.traceFollowedPerSecond);
  expect(skipped[0]).toBeGreaterThan(0);
});

test('a trace names an MCP server over HTTP by its address, and an unavailable one by its error', async () => {
  await using server = await httpUpstream((_, response) => response.writeHead(503).end('down'));
  const targets = [{ name: 'far', mcp: { host: `http://${server.address}/mcp` } }];
  await using gate = await gateway(mcpConfig(targets));
  const events = await recorded(gate, () => post(`${gate.url}/mcp`, INITIALIZE));
  const calls = events.filter(({ scope }) => scope?.[0] === 'mcp');
  expect(calls.map(({ message }) => message)).toMatchObject([
    { type: 'backendCallStart', target: server.address },
    { type: 'backendCallResult', status: null, error: expect.stringContaining('503') },
  ]);
});

test('a trace redacts a credential that is the result of an expression', async () => {
  const location = { expression: 'request.pathAndQuery.split("/")[2]' };
  const policies = {
    apiKey: { mode: 'strict', keys: [{ key: 'canary-path' }], location },
    directResponse: {},
  };
  await using gate = await routed(policies);
  const events = await recorded(gate, () => send(`${gate.url}/door/canary-path`));
  const later = events.slice(events.findIndex(({ message }) => message.type === 'policy'));
  expect(later.map(({ message }) => message.type)).toContain('requestFinished');
  expect(events.filter(({ message }) => message.type === 'cel')).toEqual([]);
  expect(JSON.stringify(later)).not.toContain('canary');
});

test('a trace redacts a configured secret that a child process echoes', async () => {
  const target = chaos('one', '--tools=echo');
  const env = { API_TOKEN: 'canary-environment' };
  const upstreamEcho = { name: 'one', stdio: { ...target.stdio, env } };
  await using gate = await gateway(mcpConfig([upstreamEcho]));
  const session = await openSession(`${gate.url}/mcp`);
  const call = { name: 'echo', arguments: { text: 'it is canary-environment' } };
  const events = await recorded(gate, () => session.request('tools/call', call));
  const bodies = JSON.stringify(events).replaceAll(/"body":"([^"]*)"/g, (_, body: string) =>
    Buffer.from(body, 'base64').toString('latin1'),
  );
  expect(bodies).toContain('it is <redacted>');
  expect(bodies).not.toContain('canary');
});
