import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { answering, completion, llmProvider } from '../../kit/llm-provider.ts';
import { INITIALIZE, post } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { freePort } from '../../kit/ports.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { type Answer, type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

/** Answers with these statuses, one after another, and then with 200. */
function failing(...statuses: number[]): Promise<HttpUpstream> {
  return httpUpstream((_, response) => response.writeHead(statuses.shift() ?? 200).end('done'));
}

/** Reads the request and closes the connection without an answer, the first `times`. */
function resetting(times: number): Answer {
  let count = 0;
  return (_, response) => {
    count += 1;
    if (count <= times) response.destroy();
    else response.end('done');
  };
}

describe('retry', () => {
  test('retry repeats a call after a listed status, with its body and the number of the repetition', async () => {
    await using backend = await failing(503, 500);
    await using gate = await proxyGateway(backend.address, { retry: { attempts: 2, codes: [500, 503] } });
    const reply = await send(`${gate.url}/a?b`, { method: 'POST', body: 'body', headers: { 'x-a': '1' } });
    expect(reply).toMatchObject({ status: 200, text: 'done' });
    expect(
      backend.received.map(({ body, target, headers }) => [
        body,
        target,
        headers['x-a'],
        headers['x-retry-attempt'],
      ]),
    ).toEqual([
      ['body', '/a?b', '1', undefined],
      ['body', '/a?b', '1', '1'],
      ['body', '/a?b', '1', '2'],
    ]);
    expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '200', 'retry.attempt': '2' });
  });

  test('retry returns the last response when all attempts are used', async () => {
    await using backend = await failing(503, 503, 503);
    await using gate = await proxyGateway(backend.address, { retry: { attempts: 1, codes: [503] } });
    expect(await send(gate.url)).toMatchObject({ status: 503, text: 'done' });
    expect(backend.received).toHaveLength(2);
  });

  test('retry does not repeat a status that is not listed', async () => {
    await using backend = await failing(500);
    await using gate = await proxyGateway(backend.address, { retry: { attempts: 3, codes: [503] } });
    expect(await send(gate.url)).toMatchObject({ status: 500 });
    expect(backend.received).toHaveLength(1);
  });

  test('retry repeats a call if its condition on the response is true', async () => {
    let count = 0;
    await using backend = await httpUpstream((_, response) => {
      count += 1;
      response.writeHead(200, { 'x-failed': String(count < 2) }).end();
    });
    await using gate = await proxyGateway(backend.address, {
      retry: { codes: [], condition: 'response.headers["x-failed"] == "true"' },
    });
    expect(await send(gate.url)).toMatchObject({ status: 200 });
    expect(count).toBe(2);
  });

  test.each([['request.method == "GET"'], ['request.headers["no"] == "1"'], ['false']])(
    'retry does nothing unless the precondition %s is true',
    async (precondition) => {
      await using backend = await failing(503);
      await using gate = await proxyGateway(backend.address, { retry: { codes: [503], precondition } });
      expect(await send(gate.url, { method: 'POST', body: 'x' })).toMatchObject({ status: 503 });
    },
  );

  test('retry prefers another backend', async () => {
    await using bad = await httpUpstream((_, response) => response.writeHead(503).end());
    await using good = await httpUpstream();
    const backends = [
      { host: bad.address, weight: 1_000_000 },
      { host: good.address, weight: 1 },
    ];
    await using gate = await gateway(routesConfig([{ policies: { retry: { codes: [503] } }, backends }]));
    for (let i = 0; i < 5; i += 1) expect(await send(gate.url)).toMatchObject({ status: 200 });
    expect(good.received.length).toBeGreaterThan(0);
  });

  test('retry repeats a call that could not connect, whatever its method', async () => {
    await using good = await httpUpstream();
    const backends = [
      { host: `127.0.0.1:${await freePort()}`, weight: 1_000_000 },
      { host: good.address, weight: 1 },
    ];
    await using gate = await gateway(routesConfig([{ policies: { retry: { codes: [] } }, backends }]));
    expect(await send(gate.url, { method: 'POST', body: 'x' })).toMatchObject({ status: 200 });
    expect(good.received[0]?.body).toBe('x');
  });

  test('retry sends another backend nothing that was meant for the first one', async () => {
    await using bad = await httpUpstream((_, response) => response.writeHead(503).end());
    await using good = await httpUpstream();
    const own = {
      requestHeaderModifier: { set: { 'x-first': '1' }, remove: ['x-client'] },
      backendAuth: {
        credentials: [
          { key: 'secret-1', location: { header: { name: 'x-key' } } },
          { key: 'secret-2', location: { queryParameter: { name: 'key' } } },
        ],
      },
    };
    const backends = [
      { host: bad.address, weight: 1_000_000, policies: own },
      { host: good.address, weight: 1 },
    ];
    await using gate = await gateway(routesConfig([{ policies: { retry: { codes: [503] } }, backends }]));
    const headers = { 'x-client': 'a' };
    expect(await send(`${gate.url}/p?a=1`, { headers })).toMatchObject({ status: 200 });
    expect(bad.received[0]).toMatchObject({
      target: '/p?a=1&key=secret-2',
      headers: { 'x-key': 'secret-1' },
    });
    expect(good.received[0]).toMatchObject({ target: '/p?a=1', headers });
    for (const name of ['x-first', 'x-key']) expect(good.received[0]?.headers).not.toHaveProperty(name);
  });

  test('retry repeats a call whose connection broke only if its method is idempotent', async () => {
    await using posts = await httpUpstream(resetting(1));
    await using post = await proxyGateway(posts.address, { retry: { attempts: 3, codes: [502] } });
    expect(await send(post.url, { method: 'POST', body: 'x' })).toMatchObject({ status: 502 });
    expect(posts.received).toHaveLength(1);
    await using puts = await httpUpstream(resetting(1));
    await using put = await proxyGateway(puts.address, { retry: { attempts: 3, codes: [] } });
    expect(await send(put.url, { method: 'PUT', body: 'x' })).toMatchObject({ status: 200 });
    expect(puts.received).toHaveLength(2);
  });

  test('retry does not keep bodies over 64 KiB, which are sent once', async () => {
    await using backend = await failing(503, 503);
    await using gate = await proxyGateway(backend.address, { retry: { codes: [503] } });
    const body = 'x'.repeat(64 * 1024);
    expect(await send(gate.url, { method: 'POST', body: `${body}y` })).toMatchObject({ status: 503 });
    expect(backend.received).toHaveLength(1);
    expect(await send(gate.url, { method: 'POST', body })).toMatchObject({ status: 200 });
    expect(backend.received.at(-1)?.body).toBe(body);
  });

  test('retry streams a body of unknown length to the backend and does not repeat it', async () => {
    let first: Buffer | undefined;
    await using backend = await httpUpstream(
      (incoming, response) => {
        incoming.once('data', (chunk: Buffer) => {
          first = chunk;
          response.writeHead(503).end();
        });
      },
      { streaming: true },
    );
    await using gate = await proxyGateway(backend.address, { retry: { codes: [503] } });
    const status = await new Promise((resolve, reject) => {
      const call = request(gate.url, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } });
      call.on('response', (response) => {
        resolve(response.statusCode);
        call.destroy();
      });
      call.on('error', reject);
      call.write('first');
    });
    expect(status).toBe(503);
    expect(String(first)).toBe('first');
    expect(backend.received).toHaveLength(1);
  });

  test('retry ends with the request timeout, also while it waits', async () => {
    await using backend = await httpUpstream((_, response) => response.writeHead(503).end());
    await using gate = await proxyGateway(backend.address, {
      timeout: { requestTimeout: '150ms' },
      retry: { attempts: 100, backoff: '1h', codes: [503] },
    });
    expect(await send(gate.url)).toMatchObject({ status: 504 });
    expect(backend.received).toHaveLength(1);
  });

  test('backendRequestTimeout limits each attempt', async () => {
    await using silent = await httpUpstream(() => undefined);
    await using good = await httpUpstream();
    const backends = [
      { host: silent.address, weight: 1_000_000 },
      { host: good.address, weight: 1 },
    ];
    const policies = { timeout: { backendRequestTimeout: '100ms' }, retry: { codes: [] } };
    await using gate = await gateway(routesConfig([{ policies, backends }]));
    expect(await send(gate.url)).toMatchObject({ status: 200 });
  });

  test('retry stops when the client disconnects', async () => {
    await using backend = await httpUpstream((_, response) => response.writeHead(503).end());
    await using gate = await proxyGateway(backend.address, {
      retry: { attempts: 5, backoff: '1h', codes: [503] },
    });
    const client = new AbortController();
    const answer = fetch(gate.url, { signal: client.signal }).catch(() => undefined);
    await until(() => backend.received.length === 1);
    client.abort();
    await answer;
    expect(await gate.accessLine(1)).toMatchObject({ reason: 'ClientClosed' });
  });

  test('retry repeats at most a fifth of the open requests at once, or three', async () => {
    const held: (() => void)[] = [];
    await using backend = await httpUpstream(({ headers }, response) => {
      if (headers['x-retry-attempt'] === undefined) response.writeHead(503).end();
      else held.push(() => response.end());
    });
    await using gate = await proxyGateway(backend.address, { retry: { codes: [503] } });
    const replies = Array.from({ length: 10 }, () => send(gate.url));
    const statuses: number[] = [];
    for (const reply of replies) void reply.then(({ status }) => statuses.push(status));
    await until(() => statuses.length === 7 && held.length === 3);
    for (const answer of held) answer();
    await Promise.all(replies);
    expect(statuses.filter((status) => status === 503)).toHaveLength(7);
  });
});

describe('retry of model calls and MCP servers', () => {
  test('retry repeats a model call after an error of the provider', async () => {
    let calls = 0;
    const answer = answering(completion('Hello.'));
    await using provider = await llmProvider((incoming, response, received) => {
      calls += 1;
      return calls === 1 ? response.writeHead(503).end('{}') : answer(incoming, response, received);
    });
    const params = { baseUrl: `http://${provider.address}/v1`, apiKey: 'k' };
    const llm = { models: [{ name: 'm', provider: 'openAI', params }] };
    await using gate = await gateway(
      routesConfig([{ policies: { retry: { codes: [503] } }, backends: [{ llm }] }]),
    );
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
    const reply = await send(`${gate.url}/v1/chat/completions`, { method: 'POST', body });
    expect(reply.status).toBe(200);
    expect(calls).toBe(2);
  });

  test('retry says that codes have no effect on MCP servers', async () => {
    await using gate = await gateway(
      routesConfig([
        {
          policies: { retry: { codes: [503] } },
          backends: [{ mcp: { targets: [{ name: 'a', mcp: { host: 'http://127.0.0.1:9/mcp' } }] } }],
        },
      ]),
    );
    expect(gate.live.served.diagnostics.map(({ message }) => message)).toEqual(
      expect.arrayContaining([expect.stringContaining('`retry.codes` has no effect')]),
    );
  });

  test('retry never repeats a message that was sent to an MCP server', async () => {
    await using server = await mcpUpstream();
    const backends = [{ mcp: { targets: [{ name: 'a', mcp: { host: server.url } }] } }];
    const retry = { attempts: 2, codes: [200] };
    await using gate = await gateway(routesConfig([{ policies: { retry }, backends }]));
    expect((await post(gate.url, INITIALIZE)).status).toBe(200);
    expect(await gate.accessLine(1)).not.toHaveProperty('retry.attempt');
  });

  test.each([
    [{ codes: [99] }],
    [{ codes: [503], attempts: 0 }],
    [{ codes: [503], attempts: 256 }],
    [{ attempts: 2 }],
    [{ codes: [503], backoff: '1 week' }],
    [{ codes: [503], condition: '"text"' }],
  ])('retry rejects the configuration %j', async (retry) => {
    await expect(proxyGateway('127.0.0.1:9', { retry })).rejects.toThrow();
  });
});
