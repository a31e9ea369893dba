import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { fakeAdmin, says } from '../kit/fake-admin.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';

const EVENT = {
  time: '2026-01-05T10:00:01.000Z',
  action: 'key.create',
  outcome: 'done',
  actor: { kind: 'subject', name: 'ann', issuer: 'https://login.example.com' },
  from: { address: '203.0.113.7' },
  target: '2f1c (ci)',
  after: 'a'.repeat(64),
  gateway: 'web-1/7 0.2.0',
};

const run = async (events: unknown, ...args: string[]) => {
  const answer = { events, next: null, kept: true };
  await using server = await fakeAdmin({ '/api/audit': says(JSON.stringify(answer), 'application/json') });
  const result = await cli(['audit', '--admin', server.address, ...args]);
  return { ...result, asked: server.asked };
};

describe('`agctl audit`', () => {
  test('prints events as a table, or one object a line', async () => {
    const shown = await run(
      [EVENT],
      '--action',
      'key.create',
      '--actor',
      'ann',
      '--outcome',
      'done',
      '-n',
      '7',
    );
    expect([shown.code, shown.stderr]).toEqual([0, '']);
    expect(shown.asked[0]?.url).toBe('/api/audit?from=0&limit=7&action=key.create&actor=ann&outcome=done');
    expect(shown.stdout).toBe(
      'TIME                 ACTION      OUTCOME  WHO            FROM         TARGET     GATEWAY        DETAIL\n' +
        '2026-01-05 10:00:01  key.create  done     ann (subject)  203.0.113.7  2f1c (ci)  web-1/7 0.2.0\n',
    );
    const { stdout } = await run([EVENT, EVENT], '-o', 'json');
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([EVENT, EVENT]);
  });

  test('prints no control characters of names, and takes whatever another server sends', async () => {
    const odd = {
      ...EVENT,
      actor: { kind: 'key', name: 'a\n\u001b[2J\u202e' },
      target: 7,
      from: [],
      outcome: 'odd',
    };
    for (const args of [[], ['-o', 'json']]) {
      const { code, stdout } = await run([odd, null, 'x', {}], ...args);
      expect(code).toBe(0);
      expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\u202e]/u);
    }
    expect((await run('none')).code).not.toBe(0);
    expect((await run([], '--since', 'soon')).code).not.toBe(0);
    expect((await run([], '-n', '0')).code).not.toBe(0);
    const { code, stderr } = await run([]);
    expect([code, stderr]).toEqual([0, 'no such events\n']);
  });

  test('lists events of a running gateway, and those of its database when it has stopped', async () => {
    await using folder = await temporaryFolder();
    const yaml = JSON.stringify({
      config: { adminAddr: 'off', database: { url: 'sqlite://./audit.db' } },
      gateways: { default: { port: 0 } },
    });
    const file = join(folder.path, 'gateway.yaml');
    writeFileSync(file, yaml);
    expect((await cli(['audit', '-f', file])).stderr).toContain('audit.db');
    const gate = await gateway(yaml, { admin: true, folder: folder.path });
    const admin = ['--admin', new URL(gate.admin).host];
    await cli(['keys', 'create', '--name', 'ci', ...admin]);
    await cli(['keys', 'revoke', 'ci', ...admin]);
    await cli(['proxy', 'log', '--set', 'mcp=debug', ...admin]);
    const running = await cli(['audit', ...admin, '-o', 'json']);
    const actions = (stdout: string): string[] =>
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { action: string }).action);
    // One line each.
    expect(actions(running.stdout)).toEqual(['log.level', 'key.revoke', 'key.create']);
    await gate.close();
    const stored = await cli(['audit', '-f', file, '-o', 'json']);
    expect([stored.code, stored.stdout]).toEqual([0, running.stdout]);
    // Where the database is, is all that it needs to know.
    writeFileSync(file, yaml.replace(/\}$/, ',"binds":7,"llm":{"models":[{"name":"$NOT_SET"}]}}'));
    const first = await cli(['audit', '-f', file, '-n', '1', '--action', 'key.create']);
    expect(first.stdout.split('\n')).toHaveLength(3);
    expect((await cli(['audit', '-f', file, '--since', '2099-01-01'])).stderr).toBe('no such events\n');
  });

  test('says what a file lacks', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'gateway.yaml');
    writeFileSync(file, 'gateways: {default: {port: 3000}}\n');
    expect((await cli(['audit', '-f', file])).stderr).toContain('has no config.database');
    writeFileSync(file, 'config: {database: {url: "sqlite://./a.db", backups: many}}\n');
    expect((await cli(['audit', '-f', file])).stderr).toContain('config.database is not valid');
    writeFileSync(file, 'config: {database: {url: "sqlite://./$NOT_SET"}}\n');
    expect((await cli(['audit', '-f', file])).stderr).toContain('NOT_SET');
  });
});

describe('commands that write a configuration', () => {
  test('say so in the audit file that it names', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'gateway.yaml');
    writeFileSync(
      file,
      'config: {  audit: {file: audit.jsonl}}\ngateways: {default: {port: 3000}}\nmcp:\n    targets: []\n',
    );
    const before = readFileSync(file, 'utf8');
    expect((await cli(['config', 'fmt', '-f', file])).code).toBe(0);
    const servers = join(folder.path, 'mcp.json');
    writeFileSync(servers, JSON.stringify({ mcpServers: { one: { url: 'http://127.0.0.1:9/mcp' } } }));
    const added = await cli(['add', 'one', '--from', servers, '--no-start', '-f', file]);
    expect([added.code, added.stderr]).toEqual([0, '']);
    // A variable that is not set here is not the name of a file.
    const unset = join(folder.path, 'unset.yaml');
    writeFileSync(unset, 'config: {  audit: {file: $NOT_SET}}\n');
    expect((await cli(['config', 'fmt', '-f', unset])).stderr).toMatch(
      /warning: .*not in the audit.*NOT_SET/,
    );
    expect(readdirSync(folder.path)).not.toContain('$NOT_SET');
    const events = readFileSync(join(folder.path, 'audit.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(events).toMatchObject([
      {
        action: 'configuration.write',
        outcome: 'done',
        target: file,
        detail: 'agctl config fmt',
        actor: { kind: 'local' },
      },
      {
        action: 'configuration.write',
        outcome: 'done',
        target: file,
        detail: 'agctl add',
        before: events[0]?.['after'],
      },
    ]);
    const { createHash } = await import('node:crypto');
    const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
    expect([events[0]?.['before'], events[1]?.['after']]).toEqual([
      hash(before),
      hash(readFileSync(file, 'utf8')),
    ]);
  });
});

test('a command that its role does not allow says which role it needs', async () => {
  const roles = { viewer: ['v'], local: 'viewer' };
  await using gate = await gateway(
    JSON.stringify({ config: { adminAddr: 'off', adminRoles: roles }, gateways: { default: { port: 0 } } }),
    { admin: true },
  );
  const { code, stderr } = await cli(['keys', 'revoke', 'x', '--admin', new URL(gate.admin).host]);
  expect(code).not.toBe(0);
  expect(stderr).toMatch(
    /^error: POST \/api\/keys\/revoke needs the role `editor`, and you have the role `viewer`: `config\.adminRoles\.local`/,
  );
});
