import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { freePort } from '../../kit/ports.ts';
import { serve } from '../../kit/process.ts';
import { REDIS_SERVER, redisServer } from '../../kit/redis.ts';
import { sharedConfig } from '../../kit/replicas.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

/** A Sentinel that declares the primary dead after half a second, and decides alone. */
async function sentinel(folder: string, primary: number): Promise<{ port: number } & AsyncDisposable> {
  const port = await freePort();
  const file = join(folder, 'sentinel.conf');
  const settings = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor mymaster 127.0.0.1 ${primary} 1`,
    'sentinel down-after-milliseconds mymaster 500',
    'sentinel failover-timeout mymaster 3000',
    'requirepass of-sentinel',
    'sentinel sentinel-pass of-sentinel',
  ];
  writeFileSync(file, settings.join('\n'));
  const child = spawn(REDIS_SERVER as string, [file, '--sentinel'], { stdio: 'ignore' });
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

test('after a failover by Sentinel, two gateways count together at the new primary, with what was taken before', async () => {
  await using folder = await temporaryFolder();
  await using primary = await redisServer();
  await using secondary = await redisServer('--replicaof', '127.0.0.1', String(primary.port));
  await using watching = await sentinel(folder.path, primary.port);
  await using backend = await httpUpstream();
  const client = new Redis(watching.port, '127.0.0.1', { password: 'of-sentinel' });
  client.on('error', () => undefined);
  const primaryPort = async (): Promise<number> =>
    Number(((await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'mymaster')) as [string, string])[1]);
  const knownReplicas = async (): Promise<string> =>
    String(await client.call('SENTINEL', 'REPLICAS', 'mymaster').catch(() => ''));
  await until(async () => (await knownReplicas()).includes(String(secondary.port)), 20_000);
  const shared = {
    redis: 'redis://mymaster',
    sentinel: { servers: [`127.0.0.1:1`, `127.0.0.1:${watching.port}`], password: 'of-sentinel' },
    failureMode: { rateLimits: 'failClosed' },
  };
  const config = JSON.stringify({
    config: sharedConfig(primary, { shared }),
    gateways: {
      default: {
        port: 0,
        routes: [
          {
            policies: { localRateLimit: [{ maxTokens: 10, fillInterval: '1h' }] },
            backends: [{ host: backend.address }],
          },
        ],
      },
    },
  });
  await using one = await serve(config);
  await using two = await serve(config);
  const status = async (index: number): Promise<number> =>
    (await send(index % 2 === 0 ? one.url : two.url)).status;
  await until(async () => (await status(0)) === 200 && (await status(1)) === 200);
  // Replication is asynchronous: what the new primary has not received is lost.
  const [key] = (await primary.client.keys('*:limit:*')) as [string];
  await until(async () => (await secondary.client.get(key)) === (await primary.client.get(key)));
  await primary.kill();
  await until(async () => (await primaryPort()) === secondary.port, 30_000);
  await until(async () => (await status(0)) !== 503 && (await status(1)) !== 503, 20_000);
  const statuses = await Promise.all(Array.from({ length: 20 }, (_, index) => status(index)));
  expect(statuses).not.toContain(503);
  expect(backend.received).toHaveLength(10);
  client.disconnect();
}, 120_000);
