import { once } from 'node:events';
import { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { ownTls } from '../../src/admin/own-tls.ts';
import { sendToGateway } from '../../src/admin/playground.ts';
import { certificateOf, certificatePath, GOOD_TLS } from '../kit/certificates.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { send } from '../kit/send.ts';
import { httpUpstream } from '../kit/upstream.ts';

const YAML = `config: {adminAddr: off}
gateways:
  edge:
    port: 0
    routes:
      - policies: {directResponse: {body: hello, status: 418}}
llm:
  port: 0
  models: [{name: '*', provider: echo}]
`;

const ISSUING = { cert: certificatePath('issuing.crt'), key: certificatePath('issuing.key') };

const ask = (running: TestGateway, body: unknown, headers: Record<string, string> = {}) =>
  send(`${running.admin}/api/playground/send`, { method: 'POST', body: JSON.stringify(body), headers });

test("a playground request to a port of the gateway returns the gateway's response", async () => {
  await using running = await gateway(YAML, { admin: true });
  const answer = await ask(running, {
    port: running.port,
    method: 'GET',
    path: '/x?y=1',
    headers: { 'x-a': 'b' },
  });
  expect(answer.status).toBe(200);
  expect(answer.headers['content-type']).toBe('application/octet-stream');
  expect(answer.headers['x-gateway-status']).toBe('418');
  expect(answer.text).toBe('hello');
  const headers = Buffer.from(String(answer.headers['x-gateway-headers']), 'base64').toString();
  expect(JSON.parse(headers)).toMatchObject({ 'content-length': '5' });
  expect(await running.accessLine(1)).toMatchObject({ 'http.path': '/x?y=1' });
});

test('a playground stream arrives event by event', async () => {
  await using running = await gateway(YAML, { admin: true });
  const response = await fetch(`${running.admin}/api/playground/send`, {
    method: 'POST',
    body: JSON.stringify({
      port: running.ports[1],
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'm',
        stream: true,
        messages: [{ role: 'user', content: 'one two three' }],
      }),
    }),
  });
  expect(response.headers.get('x-gateway-status')).toBe('200');
  expect(await response.text()).toMatch(/^data: .*data: \[DONE\]\n\n$/s);
});

test.each([
  [
    'a port of somebody else',
    (_: TestGateway, other: number) => ({ port: other }),
    'only ports of this gateway',
  ],
  ['the admin port', ({ admin }: TestGateway) => ({ port: Number(new URL(admin).port) }), 'only ports'],
  ['a port as text', ({ port }: TestGateway) => ({ port: `${port}@127.0.0.1` }), 'only ports'],
  ['another host in the path', () => ({ path: 'http://127.0.0.1:1/' }), 'path'],
  ['a path that splits the request', () => ({ path: '/ HTTP/1.1\r\nx: y' }), 'path'],
  ['CONNECT', () => ({ method: 'CONNECT' }), 'method'],
  ['a header that splits the request', () => ({ headers: { a: 'b\r\nc: d' } }), 'value of a'],
  [
    'a header of the connection',
    () => ({ headers: { 'Transfer-Encoding': 'chunked' } }),
    'transfer-encoding',
  ],
  ['an upgrade', () => ({ headers: { upgrade: 'websocket' } }), 'upgrade'],
])('the playground rejects %s', async (_name, part, said) => {
  await using other = await httpUpstream();
  await using running = await gateway(YAML, { admin: true });
  const asked = { port: running.port, method: 'GET', path: '/', ...part(running, other.port) };
  const answer = await ask(running, asked);
  expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(said)]);
  expect(other.received.length).toBe(0);
});

test.each([
  ['origin', 'http://evil.example'],
  ['host', 'evil.example'],
  ['sec-fetch-site', 'cross-site'],
])('the playground rejects requests of a page of another origin: %s', async (name, value) => {
  await using running = await gateway(YAML, { admin: true });
  const answer = await ask(running, { port: running.port, path: '/' }, { [name]: value });
  expect(answer.status).toBe(403);
  expect(running.accessLog.length).toBe(0);
});

const secured = (tls: object, more: object = {}): string =>
  JSON.stringify({
    config: { adminAddr: 'off' },
    gateways: {
      edge: { port: 0, tls, routes: [{ policies: { directResponse: { body: 'hello' } }, ...more }] },
    },
  });

test.each([
  // Issued by an authority that this machine does not know, for `localhost` alone.
  ['a certificate of an own authority', GOOD_TLS, {}],
  ['an authority that issues certificates', { mode: 'dynamicCa', ...ISSUING }, {}],
  ['a name that the request asks for', { mode: 'dynamicCa', ...ISSUING }, { host: 'api.example:8443' }],
])('the playground reaches a listener that ends TLS with %s', async (_name, tls, headers) => {
  await using running = await gateway(secured(tls), { admin: true });
  const answer = await ask(running, { port: running.port, method: 'GET', path: '/', headers });
  expect([answer.headers['x-gateway-status'], answer.text]).toEqual(['200', 'hello']);
});

test('the overview and its routes have the scheme and host name that clients of a TLS listener need', async () => {
  await using running = await gateway(secured(GOOD_TLS, { hostnames: ['*.example', 'api.example'] }), {
    admin: true,
  });
  const overview = JSON.parse((await send(`${running.admin}/api/overview`)).text);
  expect(overview.gateways).toMatchObject([
    {
      url: `https://127.0.0.1:${running.port}`,
      routes: [{ origin: `https://api.example:${running.port}` }],
    },
  ]);
});

test('a listener that asks for certificates of clients is explained, and no request is sent', async () => {
  const tls = { ...GOOD_TLS, root: certificatePath('client-authority.crt') };
  await using running = await gateway(secured(tls), { admin: true });
  const answer = await ask(running, { port: running.port, method: 'GET', path: '/', headers: {} });
  expect([answer.status, answer.text]).toEqual([
    400,
    expect.stringContaining('asks its clients for a certificate'),
  ]);
  expect(running.accessLog).toEqual([]);
});

test('the playground trusts no other certificate than that of the gateway', async () => {
  let received = 0;
  const foreign = createServer(certificateOf('self-signed'), (_request, response) => {
    received += 1;
    response.end();
  });
  foreign.listen(0, '127.0.0.1');
  await once(foreign, 'listening');
  const { cert: certificate } = certificateOf('good');
  const entrance = {
    name: 'edge',
    hostname: undefined,
    tls: { certificate, options: {}, failed: () => undefined, reloads: [] },
  };
  const tls = ownTls([entrance], undefined);
  if (tls === undefined || 'problem' in tls) throw new Error('expected options of TLS');
  const { port } = foreign.address() as AddressInfo;
  const asked = { host: '127.0.0.1', port, tls, method: 'GET', path: '/', headers: {}, body: '' };
  const reader = new ServerResponse({ method: 'GET' } as never);
  const answer = await sendToGateway(asked, reader, () => () => undefined);
  foreign.close();
  expect(answer).toEqual({ problem: expect.stringContaining('certificate') });
  expect(received).toBe(0);
});
