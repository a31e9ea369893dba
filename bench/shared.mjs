// npm run bench shared
// What `config.shared` costs Redis and the gateway: the constants of docs/scale.md. Processor times, which other load on
// the machine changes less than rates.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { LIMITS } from '../src/core/limits.ts';
import { SharedSessions } from '../src/server/mcp/session/shared-sessions.ts';
import { StoreBuckets } from '../src/server/policies/limits/store-buckets.ts';
import { RedisStore } from '../src/server/transport/redis/redis-store.ts';

const COUNT = 30_000;
const CONCURRENCY = 64;

const server = [process.env.REDIS_SERVER, 'redis-server', 'valkey-server'].find(
  (name) => name !== undefined && spawnSync(name, ['--version']).status === 0,
);
if (server === undefined) {
  process.stderr.write('SKIPPED: needs redis-server or valkey-server\n');
  process.exit(70);
}
const port = await freePort();
const folder = mkdtempSync(join(tmpdir(), 'agctl-bench-redis-'));
const child = spawn(server, ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''], {
  stdio: 'ignore',
});
const redis = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50 });
redis.on('error', () => undefined);
await redis.ping();
const silent = () => undefined;
const store = new RedisStore({
  address: { host: '127.0.0.1', port, database: 0 },
  prefix: 'bench',
  timeout: 10_000,
  closed: new Set(),
  limits: LIMITS,
  log: { info: silent, warn: silent, error: silent, debug: silent },
  meter: { answered: silent },
  missed: silent,
});
await store.open();
process.stdout.write(
  `${(await redis.info('server')).match(/redis_version:.*/)[0]}, Node.js ${process.version}\n\n`,
);
process.stdout.write('| | µs of Redis | µs of the gateway | calls per operation |\n|---|---:|---:|---:|\n');

const limit = { maxTokens: 1e9, tokensPerFill: 1, fillInterval: 3_600_000, type: 'requests' };
const one = new StoreBuckets([limit], store, 'one');
const two = new StoreBuckets([limit, { ...limit, maxTokens: 2e9 }], store, 'two');
const empty = new StoreBuckets([{ ...limit, maxTokens: 1 }], store, 'empty');
const users = (i) => `user ${i % 1000}`;
await measure('request, one limit with a key', (i) => one.take([users(i)], false));
await measure('request, two limits', (i) => two.take([users(i), ''], false));
await measure('request, rejected', (i) => empty.take([users(i)], false));
await measure('LLM tokens of a call', (i) => one.deduct(0, users(i), 100));
await measure(`request, one limit without key, ${CONCURRENCY} at once`, () => one.take([''], false));
const sessions = new SharedSessions(store, Buffer.alloc(32, 1), 1_800_000, {
  ...LIMITS,
  sessionCheckInterval: 0,
});
const state = (i) => ({
  r: `session-${i % 1000}`.padEnd(22, '-'),
  b: 'mcp',
  v: '2025-06-18',
  s: [['target', 'c0ffee00-0000-4000-8000-000000000000']],
  i: JSON.stringify({
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  }),
});
const records = [];
await measure('MCP session begins', async (i) => {
  records[i % 1000] = await sessions.save(state(i));
});
await measure('MCP session is checked', (i) => sessions.isEnded(records[i % 1000], () => state(i)));

const [bucket] = await redis.keys('bench:v1:limit:*');
const [record] = await redis.keys('bench:v1:session:*');
const bytes = async (key) => redis.memory('USAGE', key, 'SAMPLES', 0);
process.stdout.write(`\nbytes of a bucket ${await bytes(bucket)}, of a session ${await bytes(record)}\n`);
const clients = await redis.client('LIST');
process.stdout.write(`bytes of a connection ${/name=agctl .*tot-mem=(\d+)/.exec(clients)?.[1]}\n`);
const times = [];
for (let i = 0; i < 3000; i += 1) {
  const since = performance.now();
  await one.take([users(i)], false);
  times.push(performance.now() - since);
}
times.sort((a, b) => a - b);
const at = (share) => times[Math.floor(times.length * share)].toFixed(2);
process.stdout.write(`ms of one call on loopback: median ${at(0.5)}, 99 % ${at(0.99)}\n`);

await store.close();
redis.disconnect();
child.kill();
rmSync(folder, { recursive: true, force: true });

/** Prints what an operation costs, the median of three rounds. */
async function measure(name, operation) {
  const rounds = [];
  for (let round = 0; round < 3; round += 1) {
    await redis.config('RESETSTAT');
    const before = [await cpuOf(), process.cpuUsage()];
    let i = 0;
    await Promise.all(
      Array.from({ length: CONCURRENCY }, async () => {
        while (i < COUNT) await operation(i++);
      }),
    );
    const own = process.cpuUsage(before[1]);
    const used = (await cpuOf()) - before[0];
    const stats = await redis.info('commandstats');
    const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(stats);
    rounds.push([used / COUNT, (own.user + own.system) / COUNT, calls / COUNT]);
  }
  const median = (column) => rounds.map((row) => row[column]).sort((a, b) => a - b)[1];
  const cells = [median(0).toFixed(1), median(1).toFixed(1), median(2).toFixed(2)];
  process.stdout.write(`| ${name} | ${cells.join(' | ')} |\n`);
}

/** Processor time of Redis in µs. */
async function cpuOf() {
  const text = await redis.info('cpu');
  const seconds = (field) => Number(new RegExp(`${field}:([\\d.]+)`).exec(text)[1]);
  return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6;
}

async function freePort() {
  const listener = createServer();
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port: free } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return free;
}
