import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createPool } from '../../../src/core/postgres-pool.ts';
import { parseDatabaseUrl } from '../../../src/server/database/settings.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';

const config = (url: string): string => `
config: { database: { url: '${url}' } }
gateways: { default: { port: 0, routes: [{ policies: { directResponse: { status: 200, body: ok } } }] } }
`;

describe('config.database.url', () => {
  test.each([
    ['sqlite://./data.db?mode=rwc', { kind: 'sqlite', path: './data.db', mustExist: false }],
    ['sqlite:///data/data.db', { kind: 'sqlite', path: '/data/data.db', mustExist: false }],
    ['sqlite:data.db?mode=rw', { kind: 'sqlite', path: 'data.db', mustExist: true }],
    ['sqlite://my%20data.db', { kind: 'sqlite', path: 'my data.db', mustExist: false }],
  ])('reads %s', (url, expected) => expect(parseDatabaseUrl(url)).toEqual(expected));

  test.each([
    'postgres://user:password@host:5432/dbname',
    'postgresql://agentgateway@localhost/agentgateway',
    'postgres:///db?host=/run/postgresql&port=5433&user=u&application_name=a&options=-c%20jit%3Doff',
    'postgres://h/db?sslmode=verify-full&sslrootcert=/a.crt&sslcert=/b.crt&sslkey=/b.key&sslnegotiation=direct',
  ])('reads %s', (url) => expect(parseDatabaseUrl(url)).toEqual({ kind: 'postgres', url }));

  test.each([
    ['mysql://host/db', 'expected `sqlite://./data.db`'],
    ['data.db', 'expected `sqlite://./data.db`'],
    ['sqlite://', 'the name of the file is missing'],
    ['sqlite://folder/', 'the name of the file is missing'],
    ['sqlite://:memory:', 'lost with the process'],
    ['sqlite://a.db?mode=ro', '`mode=ro` is not supported: expected `rwc`'],
    ['sqlite://a.db?cache=shared', 'the parameter `cache` is not supported'],
    ['postgres://host:5432', 'the name of the database is missing'],
    ['postgres://host:5432/?dbname=db', 'the name of the database is missing'],
    [
      'postgres://host/db?sslmode=bogus',
      '`sslmode=bogus` is not supported: expected `verify-full`, `verify-ca`',
    ],
    ['postgres://host/db?sslmode=', '`sslmode=` is not supported'],
    ['postgres://host/db?pgbouncer=true', 'the parameter `pgbouncer` has no effect: remove it'],
    [
      'postgres://host/db?connect_timeout=0',
      '`connect_timeout=0` is not supported: expected 1 to 60 seconds',
    ],
    ['postgres://host/db?port=x', '`port=x` is not a port'],
    ['postgres://u:12/a?secret=b@host/db', 'in a password, write `@` as `%40`'],
  ])('refuses %s and says what is expected', (url, problem) =>
    expect(parseDatabaseUrl(url)).toEqual(expect.stringContaining(problem)),
  );

  test('connect_timeout is how long a connection may take, and channel_binding is known', async () => {
    // Never answers.
    const server = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const url = `postgres://u:p@127.0.0.1:${port}/db?connect_timeout=1&channel_binding=require`;
    expect(parseDatabaseUrl(url)).toEqual({ kind: 'postgres', url });
    const options = { url, connections: 1, connectTimeout: 60_000, statementTimeout: 60_000 };
    const pool = createPool({ ...options, name: 'test', setup: [], onError: () => undefined });
    await expect(pool.query('SELECT 1')).rejects.toThrow('timeout');
    await pool.end();
    server.close();
  });

  test('a relative path starts at the folder of the configuration, and the file exists once the gateway runs', async () => {
    await using folder = await temporaryFolder();
    await using running = await gateway(config('sqlite://./sub/data.db?mode=rwc'), { folder: folder.path });
    expect((await fetch(running.url)).status).toBe(200);
    const { statSync } = await import('node:fs');
    expect(statSync(`${folder.path}/sub/data.db`).size).toBeGreaterThan(0);
  });

  test('a gateway does not start with a file that cannot be opened', async () => {
    await using folder = await temporaryFolder();
    await expect(
      gateway(config('sqlite://./missing.db?mode=rw'), { folder: folder.path }),
    ).rejects.toMatchObject({
      message: `${folder.path}/missing.db does not exist`,
    });
  });

  test('a gateway starts without a PostgreSQL that is not reachable, and says so', async () => {
    await using running = await gateway(config('postgres://user:hunter22@127.0.0.1:1/db'));
    expect((await fetch(running.url)).status).toBe(200);
    const log = running.log.join('');
    expect(log).toContain('the database is not available; the gateway starts without it');
    expect(log).toContain('PostgreSQL at 127.0.0.1:1/db refuses connections');
    expect(log).not.toContain('hunter22');
  });
});
