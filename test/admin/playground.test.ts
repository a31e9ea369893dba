import { expect, test } from 'vitest';
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
