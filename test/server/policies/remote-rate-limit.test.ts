import { createServer, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { rateLimitService } from '../../../src/server/policies/envoy/rate-limit-service.ts';
import { AUTHORITY } from '../../kit/certificates.ts';
import { gateway } from '../../kit/gateway.ts';
import { type GrpcAnswer, grpcService, type TestGrpcService } from '../../kit/grpc-service.ts';
import { answering, CHAT, completion, llmProvider } from '../../kit/llm-provider.ts';
import { freePort } from '../../kit/ports.ts';
import { answeringGateway, proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const OK = { overall_code: 1 };
const OVER_LIMIT = { overall_code: 2 };

const service = (answer: GrpcAnswer = () => OK, options = {}): Promise<TestGrpcService> =>
  grpcService(rateLimitService, 'ShouldRateLimit', answer, options);

const DESCRIPTOR = { entries: [{ key: 'path', value: 'request.path' }] };

const limit = (host: string, more: object = {}): object => ({
  remoteRateLimit: { host, domain: 'shop', descriptors: [DESCRIPTOR], ...more },
});

describe('answers of a rate limit service that nobody expects', () => {
  const status = (seconds: number | string, remaining = 1): object => ({
    current_limit: { requests_per_unit: 10 },
    limit_remaining: remaining,
    duration_until_reset: { seconds },
  });
  const headers = (count: number): object[] =>
    Array.from({ length: count }, (_, at) => ({ key: `x-${at}`, value: 'v' }));

  test.each<[string, object, number, string | undefined]>([
    ['the longest duration', { ...OK, statuses: [status('9223372036854775807')] }, 200, '31622400'],
    ['a negative duration', { ...OK, statuses: [status('-5')] }, 200, '0'],
    ['no duration', { ...OK, statuses: [{ current_limit: {}, limit_remaining: 4294967295 }] }, 200, '0'],
    ['a status without a limit', { ...OK, statuses: [{ limit_remaining: 3 }] }, 200, undefined],
    ['5,000 statuses', { ...OK, statuses: [...Array(5_000).fill(status(9, 9)), status(7, 1)] }, 200, '7'],
    ['3,000 response headers', { ...OK, response_headers_to_add: headers(3_000) }, 500, undefined],
    ['3,000 request headers', { ...OK, request_headers_to_add: headers(3_000) }, 500, undefined],
    ['headers without names', { ...OK, response_headers_to_add: [{}, { key: '' }] }, 200, undefined],
    ['no result', {}, 500, undefined],
    ['result 3', { overall_code: 3 }, 500, undefined],
    ['result -1', { overall_code: -1 }, 500, undefined],
    ['bytes that are no text', { ...OVER_LIMIT, raw_body: Buffer.from([0xff, 0xfe, 0]) }, 429, undefined],
  ])('remoteRateLimit decides about %s, and about the next request', async (_, answer, code, reset) => {
    let isFirst = true;
    await using limiter = await service(() => {
      if (!isFirst) return OK;
      isFirst = false;
      return answer;
    });
    await using gate = await answeringGateway(limit(limiter.address));
    const reply = await send(gate.url);
    expect([reply.status, reply.headers['x-ratelimit-reset']]).toEqual([code, reset]);
    expect((await send(gate.url)).status).toBe(200);
    expect(gate.log.filter((line) => line.includes('internal error'))).toEqual([]);
  });
});

describe('remoteRateLimit', () => {
  test('remoteRateLimit sends domain and descriptors with computed values', async () => {
    await using limiter = await service();
    const descriptors = [
      {
        entries: [
          { key: 'path', value: 'request.path' },
          { key: 'fixed', value: '"a"' },
          { key: 'authenticated', value: 'has(jwt.sub)' },
          { key: 'number', value: '1 + 1' },
        ],
      },
      { entries: [{ key: 'user', value: 'request.headers["x-user"]' }], cost: '3' },
      { entries: [{ key: 'missing', value: 'request.headers["x-missing"]' }] },
      { entries: [{ key: 'bad-cost', value: '"a"' }], cost: '"text"' },
      {
        entries: [{ key: 'override', value: '"a"' }],
        limitOverride: '{"unit": "minute", "requestsPerUnit": 42}',
      },
      { entries: [{ key: 'bad-override', value: '"a"' }], limitOverride: '{"unit": "week"}' },
    ];
    await using gate = await answeringGateway(limit(limiter.address, { descriptors }));
    expect(await send(`${gate.url}/a`, { headers: { 'x-user': 'ann' } })).toMatchObject({ text: 'reached' });
    expect(limiter.received[0]).toMatchObject({
      domain: 'shop',
      descriptors: [
        {
          entries: [
            { key: 'path', value: '/a' },
            { key: 'fixed', value: 'a' },
            { key: 'authenticated', value: 'false' },
            { key: 'number', value: '2' },
          ],
          hits_addend: null,
          limit: null,
        },
        { entries: [{ key: 'user', value: 'ann' }], hits_addend: { value: '3' } },
        { entries: [{ key: 'override', value: 'a' }], limit: { requests_per_unit: 42, unit: 2 } },
      ],
    });
    expect(limiter.received[0].descriptors).toHaveLength(3);
  });

  test('remoteRateLimit rejects requests over the limit with 429 and what the service says', async () => {
    await using limiter = await service(() => ({
      ...OVER_LIMIT,
      statuses: [
        {
          current_limit: { requests_per_unit: 100 },
          limit_remaining: 50,
          duration_until_reset: { seconds: 9 },
        },
        {
          current_limit: { requests_per_unit: 10 },
          limit_remaining: 0,
          duration_until_reset: { seconds: 7 },
        },
      ],
      response_headers_to_add: [
        { key: 'x-plan', value: 'free' },
        { key: 'content-length', value: '999' },
        { key: 'x-bad', value: 'a\r\nx-evil: 1' },
      ],
      raw_body: Buffer.from('slow down'),
    }));
    await using gate = await answeringGateway(limit(limiter.address));
    const reply = await send(gate.url);
    expect(reply).toMatchObject({ status: 429, text: 'slow down' });
    expect(reply.headers).toMatchObject({
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '7',
      'x-plan': 'free',
      'content-length': '9',
    });
    expect(reply.headers).not.toHaveProperty('x-evil');
    expect(await gate.accessLine(1)).toMatchObject({ reason: 'RateLimit', 'http.status': '429' });
  });

  test('remoteRateLimit adds headers of the service to allowed requests and responses', async () => {
    await using backend = await httpUpstream();
    await using limiter = await service(() => ({
      ...OK,
      statuses: [{ current_limit: { requests_per_unit: 10 }, limit_remaining: 9 }],
      request_headers_to_add: [
        { key: 'x-tier', value: 'gold' },
        { key: 'host', value: 'evil' },
      ],
      response_headers_to_add: [{ key: 'x-plan', raw_value: Buffer.from('pro') }],
    }));
    await using gate = await proxyGateway(backend.address, limit(limiter.address));
    const reply = await send(gate.url, { headers: { 'x-tier': 'forged', host: 'client.test' } });
    expect(reply.headers).toMatchObject({ 'x-ratelimit-remaining': '9', 'x-plan': 'pro' });
    expect(backend.received[0]?.headers).toMatchObject({ 'x-tier': 'gold', host: 'client.test' });
  });

  test('remoteRateLimit with conditions asks about the requests of one of them only', async () => {
    await using limiter = await service(() => OVER_LIMIT);
    const entry = { host: limiter.address, domain: 'writes', descriptors: [DESCRIPTOR] };
    const conditional = [{ condition: 'request.method == "POST"', ...entry }];
    await using gate = await answeringGateway({ remoteRateLimit: { conditional } });
    expect(await send(gate.url)).toMatchObject({ status: 200 });
    expect(await send(gate.url, { method: 'POST' })).toMatchObject({ status: 429 });
    expect(limiter.received.map(({ domain }) => String(domain))).toEqual(['writes']);
  });

  test('remoteRateLimit does not ask the service when no descriptor can be computed', async () => {
    await using limiter = await service(() => OVER_LIMIT);
    const descriptors = [{ entries: [{ key: 'a', value: 'request.headers["x-no"]' }] }];
    await using gate = await answeringGateway(limit(limiter.address, { descriptors }));
    expect(await send(gate.url)).toMatchObject({ status: 200 });
    expect(limiter.received).toHaveLength(0);
  });

  test('remoteRateLimit asks about tokens before a model call and reports them after it', async () => {
    await using limiter = await service();
    await using provider = await llmProvider(answering(completion('Hello.')));
    const params = { baseUrl: `http://${provider.address}/v1`, apiKey: 'k' };
    const llm = { models: [{ name: 'acme-mini', provider: 'openAI', params }] };
    const descriptors = [
      { ...DESCRIPTOR, type: 'tokens' },
      { entries: [{ key: 'out', value: '"a"' }], type: 'tokens', cost: 'llm.outputTokens * 10' },
    ];
    await using gate = await gateway(
      routesConfig([{ policies: limit(limiter.address, { descriptors }), backends: [{ llm }] }]),
    );
    const reply = await send(`${gate.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(CHAT),
    });
    expect(reply.status).toBe(200);
    await until(() => limiter.received.length === 2);
    const costs = limiter.received.map(({ descriptors: sent }) =>
      (sent as { hits_addend: { value: string } }[]).map(({ hits_addend: { value } }) => value),
    );
    expect(costs).toEqual([
      ['0', '0'],
      ['19', '70'],
    ]);
    // Listing models costs nothing.
    await send(`${gate.url}/v1/models`);
    expect(limiter.received).toHaveLength(2);
  });

  test('remoteRateLimit reports no tokens back if the estimate of a call was too high', async () => {
    await using limiter = await service();
    await using provider = await llmProvider();
    const params = { baseUrl: `http://${provider.address}/v1`, apiKey: 'k', tokenize: true };
    const llm = { models: [{ name: 'acme-mini', provider: 'openAI', params }] };
    const policies = limit(limiter.address, { descriptors: [{ ...DESCRIPTOR, type: 'tokens' }] });
    await using gate = await gateway(routesConfig([{ policies, backends: [{ llm }] }]));
    const body = JSON.stringify({ ...CHAT, messages: [{ role: 'user', content: 'one two '.repeat(500) }] });
    for (let calls = 1; calls <= 2; calls += 1) {
      await send(`${gate.url}/v1/chat/completions`, { method: 'POST', body });
      await gate.accessLine(calls);
    }
    const costs = limiter.received.flatMap(({ descriptors: sent }) =>
      (sent as { hits_addend: { value: string } }[]).map(({ hits_addend: { value } }) => Number(value)),
    );
    expect(costs).toEqual([0, expect.any(Number), 0, expect.any(Number)]);
    for (const estimate of [costs[1], costs[3]]) {
      expect(estimate).toBeGreaterThan(500);
      expect(estimate).toBeLessThan(5_000);
    }
  });

  test('remoteRateLimit of tokens rejects a model call in the format of its API', async () => {
    await using limiter = await service(() => OVER_LIMIT);
    await using provider = await llmProvider();
    const params = { baseUrl: `http://${provider.address}/v1`, apiKey: 'k' };
    const llm = { models: [{ name: 'acme-mini', provider: 'openAI', params }] };
    const descriptors = [{ ...DESCRIPTOR, type: 'tokens' }];
    await using gate = await gateway(
      routesConfig([{ policies: limit(limiter.address, { descriptors }), backends: [{ llm }] }]),
    );
    const reply = await send(`${gate.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(CHAT),
    });
    expect(reply.status).toBe(429);
    expect(JSON.parse(reply.text)).toMatchObject({
      error: { message: 'rate limit exceeded: a limit of LLM tokens that a rate limit service counts' },
    });
    expect(provider.received).toHaveLength(0);
  });

  test('remoteRateLimit calls the service with TLS and a credential', async () => {
    await using limiter = await service(() => OK, { certificate: 'good' });
    const policies = {
      backendTLS: { root: AUTHORITY, hostname: 'localhost' },
      backendAuth: { key: 'k1' },
      tcp: { connectTimeout: '3s', keepalives: {} },
    };
    await using gate = await answeringGateway(limit(limiter.address, { policies }));
    expect(await send(gate.url)).toMatchObject({ status: 200 });
    expect(limiter.credentials).toEqual(['Bearer k1']);
    await using wrong = await answeringGateway(limit(limiter.address, { policies: { backendTLS: {} } }));
    expect(await send(wrong.url)).toMatchObject({ status: 500 });
  });
});

describe('remoteRateLimit and a service that fails', () => {
  const faults: Record<string, () => Promise<{ address: string } & AsyncDisposable>> = {
    'refuses connections': async () => ({
      address: `127.0.0.1:${await freePort()}`,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }),
    'answers with an error': () => service(() => new Error('broken')),
    hangs: () => service(() => undefined),
    'answers without a result': () => service(() => ({})),
    'is not a gRPC server': async () => {
      const sockets = new Set<Socket>();
      const server = createServer((socket) => {
        sockets.add(socket.on('error', () => undefined));
        socket.write('garbage\r\n\r\n');
      });
      await new Promise<void>((resolve) => {
        server.listen(0, '127.0.0.1', resolve);
      });
      return {
        address: `127.0.0.1:${(server.address() as { port: number }).port}`,
        [Symbol.asyncDispose]: () => {
          for (const socket of sockets) socket.destroy();
          return new Promise((resolve) => server.close(() => resolve()));
        },
      };
    },
  };

  test.each(Object.keys(faults))(
    'remoteRateLimit answers 500 when the service %s, or allows with failOpen',
    async (fault) => {
      await using broken = await (faults[fault] as (typeof faults)[string])();
      const policies = { http: { requestTimeout: '300ms' } };
      await using closed = await answeringGateway(limit(broken.address, { policies }));
      expect(await send(closed.url)).toMatchObject({
        status: 500,
        text: 'the rate limit service is not available',
      });
      expect((await closed.accessLine(1))['error.detail']).toContain(broken.address);
      await using open = await answeringGateway(limit(broken.address, { policies, failureMode: 'failOpen' }));
      expect(await send(open.url)).toMatchObject({ status: 200 });
    },
  );

  test('remoteRateLimit with failOpen keeps the limits of a service that works', async () => {
    await using limiter = await service(() => OVER_LIMIT);
    await using open = await answeringGateway(limit(limiter.address, { failureMode: 'failOpen' }));
    expect(await send(open.url)).toMatchObject({ status: 429 });
  });

  test('remoteRateLimit cancels the call when the client disconnects', async () => {
    await using limiter = await service(() => undefined);
    await using gate = await answeringGateway(
      limit(limiter.address, { policies: { http: { requestTimeout: '1h' } } }),
    );
    const client = new AbortController();
    const answer = fetch(gate.url, { signal: client.signal }).catch(() => undefined);
    await until(() => limiter.received.length === 1);
    client.abort();
    await answer;
    await until(() => limiter.cancelled === 1);
  });

  test.each([
    [{ descriptors: [] }],
    [{ descriptors: [{ entries: [] }] }],
    [{ descriptors: [{ entries: [{ key: 'a', value: 'nosuch' }] }] }],
    [{ failureMode: 'open' }],
    [{ host: 'no address' }],
    [{ policies: { tcp: { keepalives: { time: '1s' } } } }],
  ])('remoteRateLimit rejects the configuration %j', async (more) => {
    await expect(answeringGateway(limit('127.0.0.1:9', more))).rejects.toThrow();
  });
});
