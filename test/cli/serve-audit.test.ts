import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { AuditEventView } from '../../src/core/audit-view.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { freePort } from '../kit/ports.ts';
import { agctl, service } from '../kit/process.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';

test('a gateway with workers vouches for callers, audits signals and changes of its file, and keeps events for all of them', async () => {
  await using folder = await temporaryFolder();
  const [admin, port] = [await freePort(), await freePort()];
  const config = (groups: string): string =>
    JSON.stringify({
      config: {
        workers: 2,
        adminAddr: `127.0.0.1:${admin}`,
        database: { url: 'sqlite://./audit.db' },
        audit: { file: 'audit.jsonl' },
        adminRoles: { claim: 'apiKey.groups', viewer: ['v'], editor: [groups] },
        statsAddr: 'off',
        readinessAddr: 'off',
      },
      gateways: { default: { port, address: '127.0.0.1' } },
      ui: {
        policies: {
          apiKey: {
            keys: [
              { key: 'viewer-key', metadata: { name: 'vera', groups: ['v'] } },
              { key: 'editor-key', metadata: { name: 'ed', groups: ['e'] } },
            ],
          },
        },
      },
    });
  const file = join(folder.path, 'gateway.yaml');
  writeFileSync(file, config('e'));
  const events = (): AuditEventView[] =>
    readFileSync(join(folder.path, 'audit.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as AuditEventView);
  await using running = await service(['serve', '-f', 'gateway.yaml'], {
    cwd: folder.path,
    env: { ADMIN_ADDR: '' },
  });
  const level = async (key: string): Promise<number> =>
    (
      await send(`http://127.0.0.1:${port}/logging?level=debug`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
      })
    ).status;
  // Whichever worker has the connection.
  for (let count = 0; count < 4; count += 1) {
    expect(await level('editor-key')).toBe(200);
    expect(await level('viewer-key')).toBe(403);
  }
  expect((await send(`http://127.0.0.1:${admin}/api/overview`)).status).toBe(403);
  expect(events().map(({ action, outcome, actor }) => [action, outcome, actor])).toEqual(
    Array.from({ length: 4 }).flatMap(() => [
      ['log.level', 'done', { kind: 'key', name: 'ed', role: 'editor' }],
      ['log.level', 'refused', { kind: 'key', name: 'vera', role: 'viewer' }],
    ]),
  );
  writeFileSync(file, config('nobody'));
  await until(() => events().some(({ action }) => action === 'configuration.reload'));
  expect(events().at(-1)).toMatchObject({
    action: 'configuration.reload',
    outcome: 'done',
    actor: { kind: 'watch' },
  });
  expect(await level('editor-key')).toBe(403);
  running.kill('SIGHUP');
  await until(() => events().some(({ actor }) => actor.name === 'SIGHUP'));
  const last = events().at(-1);
  expect(last).toMatchObject({ action: 'configuration.reload', outcome: 'done', actor: { kind: 'signal' } });
  expect(last?.before).toBe(last?.after);
  running.kill('SIGTERM');
  expect((await running.finished).code).toBe(0);
  expect(events().at(-1)).toMatchObject({ action: 'shutdown', actor: { kind: 'signal', name: 'SIGTERM' } });
  // The log has each of them, and so has the database.
  const { stderr } = await running.finished;
  expect(stderr.match(/\taudit\t/g)).toHaveLength(events().length);
  const stored = await cli(['audit', '-f', file, '-o', 'json', '-n', '1000']);
  expect(stored.stdout.trimEnd().split('\n')).toHaveLength(events().length);
  // Which process has written an event: the one that ends is the first, whose log is read here.
  expect(events().at(-1)?.gateway).toMatch(new RegExp(`^[^/ ]+/${running.pid} \\d+\\.\\d+\\.\\d+`));
});

test('an audit file that cannot be written is in the log at the start', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'gateway.yaml');
  const config = {
    config: {
      adminAddr: 'off',
      audit: { file: 'missing/audit.jsonl' },
      statsAddr: 'off',
      readinessAddr: 'off',
    },
    gateways: { default: { port: 0, address: '127.0.0.1' } },
  };
  writeFileSync(file, JSON.stringify(config));
  await using running = await service(['serve', '-f', file], { env: { ADMIN_ADDR: '' } });
  await until(() => /events cannot be written to the file; the log has them.*ENOENT/.test(running.stderr));
});

test('on a unix socket, events name the user of the gateway, who has every role', async () => {
  await using folder = await temporaryFolder();
  const socket = join(folder.path, 'admin.sock');
  const file = join(folder.path, 'gateway.yaml');
  writeFileSync(
    file,
    JSON.stringify({
      config: {
        adminAddr: `unix:${socket}`,
        audit: { file: 'audit.jsonl' },
        adminRoles: { editor: ['e'] },
        statsAddr: 'off',
        readinessAddr: 'off',
      },
      gateways: { default: { port: 0, address: '127.0.0.1' } },
    }),
  );
  await using running = await service(['serve', '-f', file], { env: { ADMIN_ADDR: '' } });
  const set = await agctl(['proxy', 'log', '--set', 'mcp=debug', '--admin', `unix:${socket}`]);
  expect([set.code, running.stderr.includes('error')]).toEqual([0, false]);
  const line = readFileSync(join(folder.path, 'audit.jsonl'), 'utf8');
  expect(JSON.parse(line)).toMatchObject({
    action: 'log.level',
    from: { address: 'unix' },
    actor: { kind: 'local', name: userInfo().username, role: 'editor' },
  });
});

test('a secret that has changed is named in the audit, whether it is in a variable or in a file, and its value is not', async () => {
  await using folder = await temporaryFolder();
  const at = (name: string): string => join(folder.path, name);
  // The password is `secret`.
  const users = (name: string): string => `${name}:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n`;
  writeFileSync(at('gateway.env'), 'CLIENT_KEY=canary-one\nOTHER=x\n');
  writeFileSync(at('keys.txt'), 'canary-three\n');
  writeFileSync(at('users'), users('ann'));
  const route = (path: string, policies: object): object => ({
    name: path,
    matches: [{ path: { exact: `/${path}` } }],
    policies: { ...policies, directResponse: { body: 'ok' } },
  });
  const config = {
    config: { adminAddr: 'off', audit: { file: 'audit.jsonl' }, statsAddr: 'off', readinessAddr: 'off' },
    gateways: {
      default: {
        port: 0,
        address: '127.0.0.1',
        routes: [
          route('a', {
            apiKey: { mode: 'strict', keys: [{ key: '$CLIENT_KEY' }, { key: { file: 'keys.txt' } }] },
          }),
          route('b', { basicAuth: { mode: 'strict', htpasswd: { file: 'users' } } }),
        ],
      },
    },
  };
  writeFileSync(at('gateway.yaml'), JSON.stringify(config));
  await using running = await service(['serve', '-f', 'gateway.yaml'], {
    cwd: folder.path,
    env: { ADMIN_ADDR: '' },
  });
  const text = (): string => (existsSync(at('audit.jsonl')) ? readFileSync(at('audit.jsonl'), 'utf8') : '');
  const events = (): AuditEventView[] =>
    text()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as AuditEventView);
  const next = async (count: number): Promise<AuditEventView | undefined> => {
    await until(() => events().length >= count);
    return events()[count - 1];
  };
  writeFileSync(at('gateway.env'), 'CLIENT_KEY=canary-two\nOTHER=x\n');
  expect(await next(1)).toMatchObject({
    action: 'configuration.reload',
    outcome: 'done',
    detail: expect.stringMatching(/^changed: routes\.changed: \S+; variables: CLIENT_KEY(?!,)/),
  });
  writeFileSync(at('keys.txt'), 'canary-four\n');
  expect(await next(2)).toMatchObject({
    action: 'configuration.reload',
    detail: `changed: files: ${at('keys.txt')}`,
  });
  // The log is written in batches.
  await until(() => /configuration reloaded.* files="\S+keys\.txt"/.test(running.stderr));
  writeFileSync(at('users'), users('bob'));
  expect(await next(3)).toMatchObject({
    action: 'file.reload',
    outcome: 'done',
    target: at('users'),
    actor: { kind: 'watch' },
  });
  writeFileSync(at('users'), '');
  expect(await next(4)).toMatchObject({
    action: 'file.reload',
    outcome: 'failed',
    target: at('users'),
    detail: 'the previous content stays in use: there are no users',
  });
  running.kill('SIGTERM');
  const { stderr } = await running.finished;
  expect(text() + stderr).not.toContain('canary');
});
