import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { type Answer, type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

/** An agent behind `/public`, which is `/agents/weather` at its server. */
function front(agent: HttpUpstream): Promise<TestGateway> {
  const policies = { urlRewrite: { path: { prefix: '/agents/weather' } }, a2a: {} };
  const route = {
    matches: [{ path: { pathPrefix: '/public' } }],
    policies,
    backends: [{ host: agent.address }],
  };
  return gateway(routesConfig([route]));
}

const json =
  (value: unknown, headers: Record<string, string> = {}): Answer =>
  (_, response) =>
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));

async function card(value: unknown, path = '/public/.well-known/agent-card.json'): Promise<unknown> {
  await using agent = await httpUpstream(json(value));
  await using gate = await front(agent);
  const reply = await send(`${gate.url}${path}`, { headers: { host: 'agents.example' } });
  expect(reply.status).toBe(200);
  return JSON.parse(reply.text);
}

describe('a2a agent cards', () => {
  test.each([['/public/.well-known/agent.json'], ['/public/.well-known/agent-card.json?a=b']])(
    'a2a replaces the URL of the agent card at %s',
    async (path) => {
      expect(await card({ name: 'weather', url: 'http://10.0.0.1:9000/agents/weather' }, path)).toEqual({
        name: 'weather',
        url: 'http://agents.example/public',
      });
    },
  );

  test('a2a replaces the URL of each interface and keeps its path below the agent', async () => {
    const interfaces = (base: string, other: string): object[] => [
      { url: `${base}/rpc?x=1`, transport: 'JSONRPC' },
      { url: other },
      { transport: 'GRPC' },
    ];
    const inside = interfaces(
      'http://10.0.0.1:9000/agents/weather',
      'http://10.0.0.1:9000/agents/weather-v2',
    );
    expect(await card({ supportedInterfaces: inside, additionalInterfaces: inside })).toEqual({
      supportedInterfaces: interfaces(
        'http://agents.example/public',
        'http://agents.example/public/agents/weather-v2',
      ),
      additionalInterfaces: interfaces(
        'http://agents.example/public',
        'http://agents.example/public/agents/weather-v2',
      ),
    });
  });

  test('a2a reads a compressed card', async () => {
    await using agent = await httpUpstream((_, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end(gzipSync('{"url": "http://10.0.0.1/agents/weather"}')),
    );
    await using gate = await front(agent);
    const reply = await send(`${gate.url}/public/.well-known/agent.json`, { headers: { host: 'a.example' } });
    expect(reply.headers).not.toHaveProperty('content-encoding');
    expect(JSON.parse(reply.text)).toEqual({ url: 'http://a.example/public' });
  });

  test.each([['no JSON'], ['[1]'], ['"text"']])('a2a leaves %s as it is', async (text) => {
    await using agent = await httpUpstream((_, response) => response.end(text));
    await using gate = await front(agent);
    expect((await send(`${gate.url}/public/.well-known/agent.json`)).text).toBe(text);
  });
});

describe('a2a calls', () => {
  async function logged(
    value: unknown,
    body: string,
    type = 'application/json',
  ): Promise<Record<string, string>> {
    await using agent = await httpUpstream(json(value));
    await using gate = await front(agent);
    const reply = await send(`${gate.url}/public`, {
      method: 'POST',
      body,
      headers: { 'content-type': type },
    });
    expect(JSON.parse(reply.text)).toEqual(value);
    expect(agent.received[0]?.body).toBe(body);
    return await gate.accessLine(1);
  }
  const call = (method: unknown): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method });

  test('a2a logs method, outcome and state of a task', async () => {
    const task = { kind: 'task', status: { state: 'completed' } };
    for (const result of [task, { task }])
      expect(await logged({ jsonrpc: '2.0', id: 1, result }, call('message/send'))).toMatchObject({
        'a2a.method': 'message/send',
        'a2a.response.outcome': 'success',
        'a2a.task.state': 'completed',
      });
  });

  test('a2a logs the code of an error', async () => {
    expect(await logged({ jsonrpc: '2.0', id: 1, error: { code: -32001 } }, call('tasks/get'))).toMatchObject(
      {
        'a2a.response.outcome': 'error',
        'a2a.response.error_code': '-32001',
      },
    );
  });

  test.each([['{'], [call(1)], [call('a b')], [call('x'.repeat(100))], ['[]']])(
    'a2a logs an unknown method for the body %s',
    async (body) => {
      expect(await logged({ result: {} }, body)).toMatchObject({ 'a2a.method': 'unknown' });
    },
  );

  test('a2a does not hold up a stream of events', async () => {
    let finish = (): void => undefined;
    await using agent = await httpUpstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
      finish = () => response.end('data: 2\n\n');
    });
    await using gate = await front(agent);
    const answer = await fetch(`${gate.url}/public`, {
      method: 'POST',
      body: call('message/stream'),
      headers: { 'content-type': 'application/json' },
    });
    finish();
    expect(await answer.text()).toBe('data: 1\n\ndata: 2\n\n');
    expect(await gate.accessLine(1)).toMatchObject({ 'a2a.method': 'message/stream' });
  });
});
