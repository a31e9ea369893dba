import { describe, expect, test } from 'vitest';
import { checkGroups } from '../../src/cli/check/groups.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { freePort } from '../kit/ports.ts';
import { REDIS_SERVER, redisServer } from '../kit/redis.ts';
import { routesConfig } from '../kit/routes.ts';

/** The results of `agctl check --only shared`. */
async function checked(shared: object | undefined, offline = false): Promise<readonly object[]> {
  const text = routesConfig([{ policies: { directResponse: {} } }], { config: shared && { shared } });
  const loaded = loadConfigText(text, 'test.yaml', {});
  const options = {
    offline,
    start: false,
    tools: false,
    contract: undefined,
    token: undefined,
    probeRegistration: false,
    login: undefined,
  };
  const context = {
    file: 'test.yaml',
    loaded,
    config: loaded.config,
    gateways: [],
    env: {},
    folder: '/',
    options,
  };
  const group = checkGroups.find(({ name }) => name === 'shared');
  const results = await Promise.all((group?.run(context) ?? []).map((check) => check.results));
  return results.flat();
}

describe('agctl check of config.shared', () => {
  test('check says nothing of a shared store that is not configured, and contacts none with --offline', async () => {
    expect(await checked(undefined)).toEqual([]);
    expect(await checked({ redis: 'redis://localhost:1' }, true)).toEqual([
      { status: 'skip', message: 'not contacted (--offline)' },
    ]);
  });

  test('check reports a server that refuses connections, without the password', async () => {
    const [result] = await checked({ redis: `redis://:hunter2@127.0.0.1:${await freePort()}` });
    expect(result).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('ECONNREFUSED'),
      fix: expect.stringContaining('is the server running'),
    });
    expect(JSON.stringify(result)).not.toContain('hunter2');
  });

  test.skipIf(REDIS_SERVER === undefined)(
    'check accepts a server, and explains what it refuses',
    async () => {
      await using redis = await redisServer(
        '--requirepass',
        'correct',
        '--user',
        'reader',
        'on',
        '>r',
        '~*',
        '+get',
      );
      expect(await checked({ redis: redis.url })).toEqual([
        { status: 'ok', message: 'accepts the connection and a write' },
      ]);
      const at = (credentials: string): string => `redis://${credentials}127.0.0.1:${redis.port}`;
      expect(await checked({ redis: at(':wrong@') })).toEqual([
        expect.objectContaining({ fix: 'correct user and password in `config.shared.redis`' }),
      ]);
      expect(await checked({ redis: at('reader:r@') })).toEqual([
        expect.objectContaining({ fix: expect.stringContaining('+evalsha') }),
      ]);
      await redis.client.replicaof('127.0.0.1', '1');
      expect(await checked({ redis: redis.url })).toEqual([
        expect.objectContaining({ fix: expect.stringContaining('the server is a replica') }),
      ]);
    },
  );
});
