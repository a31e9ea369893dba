import { ServerResponse } from 'node:http';
import { afterEach, expect, test, vi } from 'vitest';
import { byForm } from '../../../src/core/redact.ts';
import { HeaderList } from '../../../src/server/kernel/request/header-list.ts';
import { GOOD_TLS } from '../../kit/certificates.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { http2Client } from '../../kit/http2.ts';
import { parseMetrics, sampleValue } from '../../kit/open-metrics.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';

// Errors of the gateway's own code are made here: each method that is replaced throws for a word that a request brings.
const WORD = 'fault-4711';
const BROKEN = `broken by ${WORD}, password=canary`;

afterEach(() => void vi.restoreAllMocks());

const reportsIn = ({ log }: TestGateway): string[] => log.filter((line) => line.includes('internal error'));

const countIn = async ({ running }: TestGateway): Promise<number | undefined> =>
  sampleValue(parseMetrics(await running.metrics.render()), 'gw_internal_errors_total');

/** Makes a header list refuse a header whose name is the word. */
function breakHeaders(): void {
  const original = HeaderList.prototype.set;
  vi.spyOn(HeaderList.prototype, 'set').mockImplementation(function (this: HeaderList, name, value) {
    if (name === WORD) throw new TypeError(BROKEN);
    original.call(this, name, value);
  });
}

test('a policy that throws in its response phase fails its request with 500, counted, and logged once with its stack', async () => {
  breakHeaders();
  const policies = {
    responseHeaderModifier: { set: { [WORD]: 'x' } },
    cors: { allowOrigins: ['https://a.example'] },
  };
  await using gate = await answeringGateway(policies);
  const headers = { origin: 'https://a.example' };
  for (const _ of [1, 2, 3]) {
    const reply = await send(gate.url, { headers });
    // The phases of the other policies have run.
    expect([reply.status, reply.headers['access-control-allow-origin']]).toEqual([500, 'https://a.example']);
    expect(reply.text).toBe('internal error');
  }
  expect(await gate.accessLine(3)).toMatchObject({
    'http.status': '500',
    error: 'internal error',
    reason: 'Internal',
  });
  expect(await countIn(gate)).toBe(3);
  const reports = reportsIn(gate);
  expect(reports).toHaveLength(1);
  expect(reports[0]).toContain('TypeError: broken by');
  expect(reports[0]).toMatch(/at .*header/);
  expect(reports[0]).toContain('route=\\"default/route0\\"'.replaceAll('\\', ''));
  expect(reports[0]).not.toContain('canary');
});

test('a reply that Node.js refuses to write fails its request with 500', async () => {
  const original = ServerResponse.prototype.writeHead;
  vi.spyOn(ServerResponse.prototype, 'writeHead').mockImplementation(function (
    this: ServerResponse,
    ...given: unknown[]
  ) {
    if (JSON.stringify(given).includes(WORD)) throw new TypeError(BROKEN);
    return Reflect.apply(original, this, given);
  });
  await using gate = await answeringGateway({ responseHeaderModifier: { set: { 'x-a': WORD } } });
  expect((await send(gate.url)).status).toBe(500);
  expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '500', error: 'internal error' });
  expect(await countIn(gate)).toBe(1);
});

test('a reply over HTTP/2 that cannot be made fails its request with 500, and the connection stays open', async () => {
  breakHeaders();
  const policies = { directResponse: { body: 'ok' } };
  const broken = {
    matches: [{ path: { exact: '/broken' } }],
    policies: { ...policies, responseHeaderModifier: { set: { [WORD]: 'x' } } },
  };
  const config = { gateways: { default: { port: 0, tls: GOOD_TLS, routes: [broken, { policies }] } } };
  await using gate = await gateway(JSON.stringify(config));
  await using client = await http2Client(gate.port);
  const statuses = [];
  for (const path of ['/broken', '/']) statuses.push((await client.send({ ':path': path })).status);
  expect(statuses).toEqual([500, 200]);
});

test('a request whose log fields cannot be made has a line with the others, and is counted', async () => {
  const original = byForm.text;
  vi.spyOn(byForm, 'text').mockImplementation((text) => {
    if (text.includes(WORD)) throw new TypeError(BROKEN);
    return original.call(byForm, text);
  });
  await using gate = await answeringGateway({
    authorization: { rules: [{ deny: `request.path == "/x" && ${JSON.stringify(WORD)} != ""` }] },
  });
  expect((await send(`${gate.url}/x`)).status).toBe(403);
  const line = await gate.accessLine(1);
  expect(line).toMatchObject({ 'http.status': '403', 'http.method': 'GET', route: 'default/route0' });
  expect(line['error']).toBe('internal error: the other fields of this line could not be written');
  expect((await send(gate.url)).status).toBe(200);
  const metrics = parseMetrics(await gate.running.metrics.render());
  expect(sampleValue(metrics, 'gw_requests_total', { status: '403' })).toBe(1);
  expect(await countIn(gate)).toBe(1);
});

test('a listener of finished requests that throws leaves the line, the other listeners and the process as they are', async () => {
  await using gate = await answeringGateway({});
  const seen: unknown[] = [];
  gate.running.onRequestFinished(() => {
    throw new Error(BROKEN);
  });
  gate.running.onRequestFinished((fields) => void seen.push(fields));
  await send(gate.url);
  await send(gate.url);
  await gate.accessLine(2);
  expect([gate.accessLog.length, seen.length, await countIn(gate), reportsIn(gate).length]).toEqual([
    2, 2, 2, 1,
  ]);
});
