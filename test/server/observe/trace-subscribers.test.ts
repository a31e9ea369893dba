import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { gateway } from '../../kit/gateway.ts';
import { send } from '../../kit/send.ts';
import { openTrace, traceServer } from '../../kit/trace.ts';
import { until } from '../../kit/until.ts';

const DIRECT = `
gateways:
  default:
    port: 0
    routes:
      - name: hello
        policies: { directResponse: { body: hello } }
`;

const finished = (status: number): object =>
  expect.objectContaining({ type: 'requestFinished', status, error: null });

describe('trace streams', () => {
  test('a trace stream starts immediately, sends the next request in frames that have only data, and ends', async () => {
    await using gate = await gateway(DIRECT);
    await using server = await traceServer(gate.running);
    await using trace = await openTrace(server);
    expect(trace.response.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
    await send(`${gate.url}/x`);
    const events = await trace.all();
    expect(events[0]?.message).toEqual({ type: 'requestStarted' });
    expect(events.map(({ message }) => message)).toContainEqual(finished(200));
    expect(trace.text).toMatch(/^: ready\n\n(?:data: \{[^\n]*\}\n\n)+$/);
    for (const [never, why] of [
      ['request.body.contains("x")', '`request.body` is not known when a request is chosen'],
      ['request.bogus == "x"', 'request.headers, request.host)'],
      ['source.spiffeId == "x"', '(use source.address, source.port)'],
      ['request.path', 'never a boolean'],
    ] as const)
      expect(
        (await send(`${server.url}/debug/trace?expression=${encodeURIComponent(never)}`)).text,
      ).toContain(why);
    expect(gate.running.traceSubscribers.active).toBe(false);
  });

  test('a trace stream ends after the access log line was written', async () => {
    await using gate = await gateway(DIRECT);
    const lines: number[] = [];
    gate.running.traceSubscribers.subscribe({
      sink: () => undefined,
      ended: () => lines.push(gate.accessLog.length),
    });
    await send(gate.url);
    await until(() => lines.length > 0);
    expect(lines).toEqual([1]);
  });

  test('a trace stream sends a heartbeat every second', async () => {
    await using gate = await gateway(DIRECT);
    await using server = await traceServer(gate.running);
    await using trace = await openTrace(server);
    await until(() => trace.text.includes('\n\n: keepalive\n\n'), 3_000);
    expect(trace.ended).toBe(false);
  });

  test('a trace stream rejects an invalid expression with the reason', async () => {
    await using gate = await gateway(DIRECT);
    await using server = await traceServer(gate.running);
    const reply = await send(`${server.url}/debug/trace?expression=request.path+%3D%3D`);
    expect(reply.status).toBe(400);
    expect(reply.text).toMatch(/^invalid expression: .+\n$/);
    const unknown = await send(`${server.url}/debug/trace?expression=jwt.sub+%3D%3D+%22a%22`);
    expect(unknown.text).toContain('the variable `jwt` is not available here');
    expect(gate.running.traceSubscribers.active).toBe(false);
  });

  test('a trace stream waits for a request that matches its expression; a failing expression is false', async () => {
    await using gate = await gateway(DIRECT);
    await using server = await traceServer(gate.running);
    const wanted = encodeURIComponent(
      'request.path == "/b" && request.method == "POST" && request.headers["x-a"] == "1"',
    );
    await using trace = await openTrace(server, `?expression=${wanted}`);
    await send(`${gate.url}/a`);
    await send(`${gate.url}/b`, { method: 'POST' });
    await send(`${gate.url}/b?q=1`, { method: 'POST', headers: { 'X-A': '1' } });
    await trace.all();
    expect(gate.accessLog).toHaveLength(3);
    expect(trace.of('requestStarted')).toHaveLength(1);
  });

  test('several trace watchers get different requests in the order of their registration', async () => {
    await using gate = await gateway(DIRECT);
    await using server = await traceServer(gate.running);
    await using only = await openTrace(server, `?expression=${encodeURIComponent('request.path == "/z"')}`);
    await using first = await openTrace(server);
    await using second = await openTrace(server);
    await send(`${gate.url}/1`);
    await first.all();
    expect(second.events).toEqual([]);
    await send(`${gate.url}/2`);
    await second.all();
    expect(only.events).toEqual([]);
    await send(`${gate.url}/z`);
    await only.all();
    for (const trace of [first, second, only]) expect(trace.of('requestStarted')).toHaveLength(1);
  });

  test('the trace watcher of a disconnected client is removed, and the request goes to the next watcher', async () => {
    await using gate = await gateway(DIRECT);
    await using server = await traceServer(gate.running);
    await using gone = await openTrace(server);
    await using next = await openTrace(server);
    expect(gate.running.traceSubscribers.count).toBe(2);
    gone.leave();
    await until(() => gate.running.traceSubscribers.count === 1);
    await send(gate.url);
    await next.all();
    expect(next.messages).toContainEqual(finished(200));
  });

  test('a trace stream with follow=true reports many requests, each with its id', async () => {
    await using gate = await gateway(DIRECT);
    await using server = await traceServer(gate.running);
    await using trace = await openTrace(server, '?follow=true');
    for (const path of ['a', 'b', 'c']) await send(`${gate.url}/${path}`);
    await until(() => trace.of('requestFinished').length === 3);
    expect(trace.ended).toBe(false);
    const ids = trace.events.map(({ requestId }) => requestId);
    expect(new Set(ids).size).toBe(3);
    trace.leave();
    await until(() => !gate.running.traceSubscribers.active);
  });
});

describe('trace streams with a request count', () => {
  test('a trace stream with a count reports each request with its id and end, ends after the last, and takes no others', async () => {
    await using gate = await gateway(DIRECT);
    await using server = await traceServer(gate.running);
    await using trace = await openTrace(server, '?count=3');
    await using next = await openTrace(server);
    await Promise.all(['a', 'b', 'c'].map((path) => send(`${gate.url}/${path}`)));
    await send(`${gate.url}/d`);
    const events = await trace.all();
    const ids = [...new Set(events.map(({ requestId }) => requestId))];
    expect(ids).toHaveLength(3);
    expect(trace.of('requestFinished')).toHaveLength(3);
    for (const id of ids)
      expect(trace.text.split(`\n\n: end ${id}\n\n`)[1]).not.toContain(`"requestId":"${id}"`);
    expect(JSON.stringify(await next.all())).toContain('"path":"/d"');
    expect(gate.running.traceSubscribers.active).toBe(false);
  });

  test('the count of a trace stream must be a number', async () => {
    await using gate = await gateway(DIRECT);
    await using server = await traceServer(gate.running);
    const reply = await send(`${server.url}/debug/trace?count=0`);
    expect(reply).toMatchObject({ status: 400, text: 'invalid count: a number from 1 to 999999\n' });
  });
});

describe('the limit of trace watchers', () => {
  test('a thousand trace watchers are accepted, and one more is rejected with an error', async () => {
    await using gate = await gateway(DIRECT);
    await using server = await traceServer(gate.running);
    const ended: number[] = [];
    for (let index = 0; index < LIMITS.traceWatchers; index += 1)
      gate.running.traceSubscribers.subscribe({ sink: () => undefined, ended: () => ended.push(index) });
    const refused = await send(`${server.url}/debug/trace`);
    expect(refused).toMatchObject({ status: 503, text: '1000 traces are open already: close one of them\n' });
    for (let index = 0; index < 3; index += 1) await send(gate.url);
    await until(() => ended.length === 3);
    expect(ended).toEqual([0, 1, 2]);
    await using another = await openTrace(server);
    expect(another.ended).toBe(false);
  });
});
