import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { compileRuntime } from '../../../src/server/runtime/runtime.ts';
import { AUTHORITY, certificatePath } from '../../kit/certificates.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { freePort } from '../../kit/ports.ts';
import { REDIS_SERVER, redisServer } from '../../kit/redis.ts';
import { answeringGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { freshly, workerGateway } from '../../kit/workers.ts';

const log = createLog(
  { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
  'error',
  'text',
);

/** The problems of `config.shared`, each as `code path: message`. */
async function problemsOf(shared: object, more: object = {}): Promise<string[]> {
  const text = routesConfig([{ policies: { directResponse: {} } }], { config: { shared, ...more } });
  const { config, source, diagnostics } = loadConfigText(text, 'test.yaml', {});
  const all = [...diagnostics];
  if (config !== undefined) {
    const { runtime, diagnostics: compiled } = compileRuntime({
      config,
      source,
      log,
      folder: tmpdir(),
      env: {},
    });
    await runtime.close();
    all.push(...compiled);
  }
  return all
    .filter(({ severity }) => severity === 'error')
    .map(({ code, path, message, label }) => `${code} ${path.join('.')}: ${message} ${label ?? ''}`);
}

describe('config.shared', () => {
  test.each([
    'localhost:6379',
    'http://localhost',
    'redis://',
    'redis://host/db',
    'redis://host:6379/0?x=1',
    'redis://host:99999',
    'redis://:%ff@host',
  ])('the URL %s is refused with the form of a URL', async (redis) => {
    const [problem, ...others] = await problemsOf({ redis });
    expect(others).toEqual([]);
    expect(problem).toMatch(/^AGW01\d\d config\.shared\.redis: .*redis:\/\/host:port/);
  });

  test.each([
    [{ tls: {} }, 'config.shared.tls: `tls` has no effect: the URL begins with `redis:`'],
    [{ sentinel: { servers: ['a:b'] } }, 'config.shared.sentinel.servers.0: '],
    [{ sentinel: { servers: [] } }, 'config.shared.sentinel.servers: '],
    [
      { redis: 'redis://mymaster:6379', sentinel: { servers: ['a'] } },
      'config.shared.sentinel: the URL has a port, which has no effect',
    ],
    [{ prefix: 'a:b' }, 'config.shared.prefix: '],
    [{ timeout: '0s' }, 'expected a duration from 1ms to 10s'],
    [{ timeout: '1h' }, 'expected a duration from 1ms to 10s'],
    [{ failureMode: { rateLimits: 'failOpen' } }, 'config.shared.failureMode.rateLimits: '],
    [{ failureMode: { budgets: 'local' } }, 'config.shared.failureMode'],
  ])('%j is refused', async (more, expected) => {
    expect(await problemsOf({ redis: 'redis://localhost', ...more })).toEqual([
      expect.stringContaining(expected),
    ]);
  });

  test('a missing authority file of TLS is named', async () => {
    expect(await problemsOf({ redis: 'rediss://localhost', tls: { root: 'missing.pem' } })).toEqual([
      expect.stringMatching(/^AGW0107 config\.shared\.tls\.root: /),
    ]);
  });

  test('the password is in no log line, no access log and no dump of the admin server', async () => {
    const password = 'hunter2-secret-word';
    const redis = `redis://someone:${password}@127.0.0.1:${await freePort()}`;
    await using gate = await answeringGateway(
      { localRateLimit: [{ maxTokens: 5, fillInterval: '1h' }] },
      { config: { shared: { redis, failureMode: { rateLimits: 'failClosed' } } } },
      { admin: true, level: 'trace' },
    );
    await send(gate.url);
    await gate.accessLine(1);
    const dump = (await send(`${gate.admin}/config_dump`)).text;
    expect(gate.log.join('')).toContain('ECONNREFUSED');
    expect(gate.log.join('') + gate.accessLog.join('') + dump).not.toContain('hunter2');
  });

  test('while no Sentinel is reachable, the log says so, and the password is nowhere', async () => {
    const shared = {
      redis: 'redis://:of-redis@mymaster',
      sentinel: { servers: [`127.0.0.1:${await freePort()}`], password: 'of-sentinel' },
    };
    await using gate = await answeringGateway({}, { config: { shared } }, { admin: true });
    await until(() => gate.log.join('').includes('the shared store is not available'));
    const log = gate.log.join('');
    expect(log).toMatch(/server="mymaster \(Sentinel\)" problem="All sentinels are unreachable/);
    const dump = (await send(`${gate.admin}/config_dump`)).text;
    expect(log + dump).not.toMatch(/of-sentinel|of-redis/);
  });

  test('without config.session.key, a warning says that sessions cannot continue at other gateways', async () => {
    const text = JSON.stringify({
      config: { shared: { redis: 'redis://localhost' } },
      gateways: { default: { port: 0 } },
      mcp: { targets: [{ name: 'a', mcp: { host: 'http://localhost:1/mcp' } }] },
    });
    const { config, source } = loadConfigText(text, 'test.yaml', {});
    if (config === undefined) throw new Error('the file is refused');
    const { runtime, diagnostics } = compileRuntime({ config, source, log, folder: tmpdir(), env: {} });
    await runtime.close();
    expect(diagnostics.map(({ code, message }) => `${code} ${message}`)).toContain(
      'AGW0305 sessions cannot continue at other gateways, because `config.session.key` is not set',
    );
  });
});

/** The permissions that agctl check names. */
const NEEDED = '+@connection +eval +evalsha +get +set +pexpire +pttl +time'.split(' ');

const LIMIT = [{ maxTokens: 4, fillInterval: '1h' }];

async function admitted(gate: { readonly url: string }, count: number): Promise<number> {
  const replies = await Promise.all(Array.from({ length: count }, () => freshly(gate.url)));
  return replies.filter(({ status }) => status === 200).length;
}

describe.skipIf(REDIS_SERVER === undefined)('connections to a real Redis', () => {
  test('a connection with TLS checks the certificate, and sends a client certificate, user, password and database', async (ctx) => {
    const port = await freePort();
    const files = [
      '--tls-cert-file',
      certificatePath('good.crt'),
      '--tls-key-file',
      certificatePath('server.key'),
    ];
    const clients = [
      '--tls-ca-cert-file',
      certificatePath('client-authority.crt'),
      '--tls-auth-clients',
      'yes',
    ];
    const user = ['--user', 'gate', 'on', '>pass/word', '~agctl:*', ...NEEDED];
    // Some servers are built without TLS.
    const started = await redisServer('--tls-port', String(port), ...files, ...clients, ...user).catch(
      () => undefined,
    );
    if (started === undefined) return ctx.skip('the server has no TLS');
    await using redis = started;
    const open = (url: string, tls: object): Promise<TestGateway> =>
      answeringGateway({ localRateLimit: LIMIT }, { config: { shared: { redis: url, tls } } });
    const url = `rediss://gate:pass%2Fword@localhost:${port}/3`;
    const own = { cert: certificatePath('client.crt'), key: certificatePath('client.key') };
    await using gate = await open(url, { root: AUTHORITY, ...own });
    expect(await admitted(gate, 10)).toBe(4);
    await redis.client.select(3);
    expect(await redis.client.keys('agctl:v1:limit:*')).toHaveLength(1);
    await using untrusting = await open(url, own);
    expect(untrusting.log.join('')).toMatch(/the shared store is not available.*certificate/);
    await using other = await open(url.replace('localhost', '127.0.0.1'), { root: AUTHORITY, ...own });
    expect(other.log.join('')).toMatch(/the shared store is not available.*(?:altname|127\.0\.0\.1)/);
  });

  test('a database that the server does not have is a failure, not another database', async () => {
    await using redis = await redisServer();
    await using gate = await answeringGateway(
      { localRateLimit: LIMIT },
      { config: { shared: { redis: `${redis.url}/99` } } },
    );
    expect(gate.log.join('')).toMatch(/not available.*DB index is out of range/);
    expect(await admitted(gate, 10)).toBe(4);
    expect(await redis.client.keys('*')).toEqual([]);
  });

  test('while Redis is gone, the workers of a gateway count together', async () => {
    await using redis = await redisServer();
    const routes = [{ policies: { directResponse: {}, localRateLimit: LIMIT } }];
    const config = { config: { shared: { redis: redis.url } }, gateways: { default: { port: 0, routes } } };
    await using gate = await workerGateway(config);
    expect(await admitted(gate, 12)).toBe(4);
    const state = async () => {
      const { outages } = JSON.parse((await send(`${gate.admin}/api/overview`)).text);
      return [/^gw_shared_store_available (\d)$/m.exec(await gate.pool.renderMetrics())?.[1], outages];
    };
    expect(await state()).toEqual(['1', []]);
    await redis.kill();
    await until(
      () => gate.log.filter((line) => line.includes('the shared store is not available')).length === 2,
    );
    expect(await admitted(gate, 12)).toBe(4);
    const outage = { at: 'config.shared', problem: expect.not.stringContaining('being opened') };
    expect(await state()).toEqual(['0', [expect.objectContaining(outage)]]);
    const metrics = await gate.pool.renderMetrics();
    expect(metrics).toMatch(/^gw_shared_store_misses_total\{use="rateLimits",outcome="continued"\} 12$/m);
    await redis.restart();
    await until(async () => (await state())[0] === '1');
    expect(await state()).toEqual(['1', []]);
  });

  test('a gateway that starts later finds the counts of an unchanged limit, and starts a changed one anew', async () => {
    await using redis = await redisServer();
    const yaml = (size: number): string =>
      routesConfig(
        [{ policies: { directResponse: {}, localRateLimit: [{ ...LIMIT[0], maxTokens: size }] } }],
        {
          config: { shared: { redis: redis.url } },
        },
      );
    await using one = await gateway(yaml(4));
    expect(await admitted(one, 3)).toBe(3);
    await using two = await gateway(yaml(4));
    expect(await admitted(two, 3)).toBe(1);
    await using changed = await gateway(yaml(5));
    expect(await admitted(changed, 9)).toBe(5);
  });
});
