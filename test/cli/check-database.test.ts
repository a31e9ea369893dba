import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TLSSocket } from 'node:tls';
import { expect, test, vi } from 'vitest';
import { checkGroups } from '../../src/cli/check/groups.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { planGateways } from '../../src/server/config/plan/plan-gateways.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { freePort } from '../kit/ports.ts';
import { routesConfig } from '../kit/routes.ts';

const CERTIFICATES = join(import.meta.dirname, '../kit/certificates');

/** The results of one group of checks. */
async function checked(
  name: string,
  text: string,
  folder = '/',
  offline = false,
): Promise<readonly object[]> {
  const loaded = loadConfigText(text, 'test.yaml', {});
  const options = {
    ...{ offline, start: false, tools: false, contract: undefined, token: undefined },
    ...{ probeRegistration: false, login: undefined },
  };
  const { config } = loaded;
  const gateways = config === undefined ? [] : planGateways(config).gateways;
  const context = { file: 'test.yaml', loaded, config, gateways, env: {}, folder, options };
  const group = checkGroups.find((each) => each.name === name);
  return (await Promise.all((group?.run(context) ?? []).map((check) => check.results))).flat();
}

const withDatabase = (url: string): string =>
  routesConfig([{ policies: { directResponse: {} } }], { config: { database: { url } } });

test('check opens the SQLite file as the gateway does, and makes none', async () => {
  await using folder = await temporaryFolder();
  const at = (name: string): string => join(folder.path, name);
  const check = (url: string) => checked('database', withDatabase(url), folder.path);
  expect(await check('sqlite://./new.db')).toMatchObject([
    { status: 'ok', message: `${at('new.db')} is created at the start` },
  ]);
  expect(await check('sqlite://./new.db?mode=rw')).toMatchObject([{ status: 'fail' }]);
  writeFileSync(at('text.db'), 'no database, but long enough to have a header of one, which it has not');
  expect(await check('sqlite://./text.db')).toMatchObject([{ status: 'fail' }]);
  new DatabaseSync(at('empty.db')).close();
  expect(await check('sqlite://./empty.db')).toEqual([
    { status: 'ok', message: 'can be opened and written' },
  ]);
});

test.skipIf(process.getuid?.() === 0)(
  'check and the gateway say that a SQLite file is read-only',
  async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'a.db');
    const check = () => checked('database', withDatabase('sqlite://./a.db'), folder.path);
    writeFileSync(file, '');
    expect(await check()).toMatchObject([{ status: 'ok' }]);
    chmodSync(file, 0o444);
    expect(await check()).toMatchObject([
      { status: 'fail', message: expect.stringContaining('cannot be written') },
    ]);
  },
);

test('check says that PostgreSQL does not answer, without the password, and asks nothing with --offline', async () => {
  const text = withDatabase(`postgres://u:hunter2@127.0.0.1:${await freePort()}/db`);
  const [result] = await checked('database', text);
  expect(result).toMatchObject({
    status: 'fail',
    message: expect.stringContaining('refuses connections'),
    fix: 'start it, or correct host and port of `url`',
  });
  expect(JSON.stringify(result)).not.toContain('hunter2');
  expect(await checked('database', text, '/', true)).toEqual([
    { status: 'skip', message: 'not contacted (--offline)' },
  ]);
});

/** A server that offers TLS with a certificate, or none, to clients of PostgreSQL (postgresql.org/docs/current/protocol-flow.html, "SSL Session Encryption"). */
async function greeting(certificate: string | undefined): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(certificate === undefined ? 'N' : 'S');
      if (certificate === undefined) return;
      const [cert, key] = [certificate, 'server.key'].map((name) => readFileSync(`${CERTIFICATES}/${name}`));
      new TLSSocket(socket, { isServer: true, cert, key }).on('error', () => undefined);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

test.each([
  ['good.crt', 'localhost', '', /has a TLS certificate of an unknown authority/, /sslrootcert=/],
  [
    'good.crt',
    '127.0.0.1',
    `&sslrootcert=${CERTIFICATES}/authority.crt`,
    /certificate for another host/,
    /host in `url`/,
  ],
  ['expired.crt', 'localhost', `&sslrootcert=${CERTIFICATES}/authority.crt`, /has expired/, /renew/],
  ['good.crt', 'localhost', '&sslrootcert=/nonexistent/ca.crt', /\/nonexistent\/ca\.crt/, /`sslrootcert`/],
  [undefined, 'localhost', '', /does not offer TLS/, /remove `sslmode`/],
  // The last of several modes counts; pg itself warns of this one.
  [
    'good.crt',
    'localhost',
    '&sslmode=require',
    /has a TLS certificate of an unknown authority/,
    /sslrootcert=/,
  ],
])(
  'check says what is wrong with the TLS of PostgreSQL: %s at %s%s',
  async (certificate, host, more, message, fix) => {
    const server = await greeting(certificate);
    const warn = vi.spyOn(process, 'emitWarning');
    try {
      const { port } = server.address() as AddressInfo;
      const url = `postgres://u:hunter2@${host}:${port}/db?sslmode=verify-full${more}`;
      const [result] = await checked('database', withDatabase(url));
      expect(result).toMatchObject({
        status: 'fail',
        message: expect.stringMatching(new RegExp(`^PostgreSQL at ${host}:${port}/db .*${message.source}`)),
        fix: expect.stringMatching(fix),
      });
      expect(JSON.stringify(result)).not.toContain('hunter2');
      expect(warn).not.toHaveBeenCalled();
    } finally {
      warn.mockRestore();
      server.close();
    }
  },
);

test('check asks the provider of the sign-in of the pages', async () => {
  const issuer = `http://127.0.0.1:${await freePort()}`;
  const oidc = { issuer, clientId: 'c', clientSecret: 's', redirectURI: 'http://localhost/callback' };
  const text = JSON.stringify({ gateways: { default: { port: 0 } }, ui: { policies: { oidc } } });
  expect(await checked('idp', text)).toMatchObject([
    { status: 'fail', message: expect.stringContaining('metadata for the sign-in of browsers') },
  ]);
});
