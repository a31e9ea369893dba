import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { answering, CHAT, completion, llmProvider, USAGE } from '../../kit/llm-provider.ts';
import { freePort } from '../../kit/ports.ts';
import { type RedisServer, redisServer } from '../../kit/redis.ts';
import { answeringGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

/** Limits per year, so that no test runs into the next window. */
const LIMITS = `
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 3 }
  - key: user
    value: admin
    rate_limit: { unlimited: true }
  - key: model
    rate_limit: { unit: year, requests_per_unit: ${USAGE.total_tokens + 1} }
`;

let redis: RedisServer;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: ChildProcess;
let host: string;
let output = '';

beforeAll(async () => {
  redis = await redisServer();
  folder = await temporaryFolder();
  mkdirSync(join(folder.path, 'ratelimit/config'), { recursive: true });
  writeFileSync(join(folder.path, 'ratelimit/config/shop.yaml'), LIMITS);
  const [port, http, debug] = [await freePort(), await freePort(), await freePort()];
  host = `127.0.0.1:${port}`;
  service = spawn(process.env['RATELIMIT'] ?? '', {
    env: {
      HOST: '127.0.0.1',
      PORT: String(http),
      DEBUG_HOST: '127.0.0.1',
      DEBUG_PORT: String(debug),
      GRPC_HOST: '127.0.0.1',
      GRPC_PORT: String(port),
      USE_STATSD: 'false',
      LOG_LEVEL: 'info',
      REDIS_SOCKET_TYPE: 'tcp',
      REDIS_URL: `127.0.0.1:${redis.port}`,
      RUNTIME_ROOT: folder.path,
      RUNTIME_SUBDIRECTORY: 'ratelimit',
      RUNTIME_WATCH_ROOT: 'false',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [service.stdout, service.stderr])
    stream?.on('data', (chunk) => {
      output += String(chunk);
    });
  await until(async () => {
    if (service.exitCode !== null) throw new Error(output);
    const answer = await fetch(`http://127.0.0.1:${http}/healthcheck`).catch(() => undefined);
    return answer?.ok === true;
  });
}, 60_000);
afterAll(async () => {
  if (service.exitCode === null) {
    service.kill();
    await once(service, 'exit');
  }
  await redis[Symbol.asyncDispose]();
  await folder.remove();
});

const limit = (entries: object[], more: object = {}): object => ({
  remoteRateLimit: { host, domain: 'shop', descriptors: [{ entries, ...more }] },
});

test('a request over the limit of the service is rejected with 429, for each user by itself', async () => {
  const policies = limit([{ key: 'user', value: 'request.headers["x-user"]' }]);
  await using gate = await answeringGateway(policies);
  const status = async (user: string): Promise<number> =>
    (await send(`${gate.url}/`, { headers: { 'x-user': user } })).status;
  const statuses = [];
  for (let n = 0; n < 4; n += 1) statuses.push(await status('ann'));
  expect(statuses, output).toEqual([200, 200, 200, 429]);
  expect(await status('bob')).toBe(200);
  for (let n = 0; n < 6; n += 1) expect(await status('admin')).toBe(200);
  // Without the header, the descriptor has no value, and nobody is asked.
  expect((await send(`${gate.url}/`)).status).toBe(200);
  expect(await redis.client.keys('*ann*')).toHaveLength(1);
});

test('a request may cost more than one, and limits of the request replace those of the service', async () => {
  const user = [{ key: 'user', value: '"carol"' }];
  await using costly = await answeringGateway(limit(user, { cost: '2' }));
  expect([(await send(costly.url)).status, (await send(costly.url)).status]).toEqual([200, 429]);
  const entries = [{ key: 'free', value: '"a"' }];
  const limitOverride = '{"unit": "hour", "requestsPerUnit": 1}';
  await using override = await answeringGateway(limit(entries, { limitOverride }));
  expect([(await send(override.url)).status, (await send(override.url)).status]).toEqual([200, 429]);
});

test('tokens of model calls are counted by the service', async () => {
  await using provider = await llmProvider(answering(completion('Hello.')));
  const params = { baseUrl: `http://${provider.address}/v1`, apiKey: 'k' };
  const llm = { models: [{ name: 'acme-mini', provider: 'openAI', params }] };
  const policies = limit([{ key: 'model', value: '"acme"' }], { type: 'tokens' });
  await using gate = await gateway(routesConfig([{ policies, backends: [{ llm }] }]));
  const call = async (): Promise<number> =>
    (await send(`${gate.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(CHAT) })).status;
  expect(await call()).toBe(200);
  // The tokens are reported after the call.
  await until(async () => (await redis.client.keys('*acme*')).length === 1);
  expect(await call()).toBe(200);
  await until(async () => {
    const [key = ''] = await redis.client.keys('*acme*');
    return Number(await redis.client.get(key)) >= 2 * USAGE.total_tokens;
  });
  expect(await call()).toBe(429);
});

test('while Redis is down, the service fails, and requests are let through or refused as configured', async () => {
  await redis.kill();
  const user = [{ key: 'user', value: '"dave"' }];
  await using closed = await answeringGateway(limit(user));
  expect((await send(closed.url)).status).toBe(500);
  const open = {
    remoteRateLimit: {
      ...(limit(user) as { remoteRateLimit: object }).remoteRateLimit,
      failureMode: 'failOpen',
    },
  };
  await using lenient = await answeringGateway(open);
  expect((await send(lenient.url)).status).toBe(200);
});
