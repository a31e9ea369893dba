import { describe, expect, test } from 'vitest';
import { budgetGateway, createKey } from '../kit/budgets.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { CHAT, chat, llmProvider } from '../kit/llm-provider.ts';

const POLICIES = { apiKey: { mode: 'strict', virtualKeys: {} } };

describe('agctl keys', () => {
  test('an operator creates a key, lists it with its use, and revokes it', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, POLICIES, { options: { admin: true } });
    const keys = (...args: string[]) => cli(['keys', ...args, '--admin', gate.admin]);
    expect(await keys('list')).toMatchObject({ code: 0, stdout: 'no keys: agctl keys create creates one\n' });
    const created = await keys(
      'create',
      ...['--name', 'ann', '--models', 'acme-*,other', '--expires', '30d', '--metadata', 'team=red'],
      ...['--budget', '10USD/day', '--budget', '5000tokens/total'],
    );
    expect(created.code).toBe(0);
    expect(created.stderr).toMatch(
      /^created `ann` \([0-9a-f]{16}\); the key above is not kept: store it now\n$/,
    );
    const secret = created.stdout.trim();
    const call = () => chat(gate, CHAT, { authorization: `Bearer ${secret}` });
    expect((await call()).status).toBe(200);
    const listed = await keys('list');
    expect(listed.stdout).toMatch(/^NAME +ID +KEY +STATE +CREATED +EXPIRES +MODELS +BUDGETS\n/);
    expect(listed.stdout).toMatch(
      /\nann +[0-9a-f]{16} +….{4} +active +[\d-]{10} +[\d-]{10} +acme-\*,other +0\.019 of 10USD\/day, 19 of 5000tokens\/total\n/,
    );
    expect(JSON.parse((await keys('list', '-o', 'json')).stdout)).toMatchObject({
      keys: [{ name: 'ann', state: 'active', metadata: { team: 'red' } }],
    });
    expect((await keys('revoke', 'ann')).stdout).toMatch(/^revoked `ann` \([0-9a-f]{16}\)\n$/);
    expect((await keys('revoke', 'ann')).stdout).toMatch(/^was revoked before: `ann`/);
    expect((await call()).status).toBe(401);
    expect((await keys('list')).stdout).toContain(' revoked ');
  });

  test.each([
    [['create', '--name', 'a b'], '`name`: expected 1 to 64 letters'],
    [['create', '--name', 'a', '--budget', '10'], '--budget: `10`: expected an amount per window'],
    [['create', '--name', 'a', '--metadata', 'red'], '--metadata red: expected name=value'],
    [['create', '--name', 'a', '--expires', 'soon'], '--expires soon: expected a time such as 30d or 12h'],
    [['create'], "required option '--name <name>' not specified"],
    [['revoke'], "missing required argument 'key'"],
  ])('`agctl keys` %j says what is wrong', async (args, message) => {
    const { code, stderr } = await cli(['keys', ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  test('a gateway that is read-only lists keys, and neither creates nor revokes one', async () => {
    await using folder = await temporaryFolder();
    const gate = (mode: string) =>
      budgetGateway({ address: '127.0.0.1:1' }, folder.path, POLICIES, {
        config: { storage: { mode } },
        options: { admin: true },
      });
    await using writable = await gate('file');
    await createKey(writable, { name: 'ann' });
    await writable.close();
    await using readOnly = await gate('readOnly');
    const keys = (...args: string[]) => cli(['keys', ...args, '--admin', readOnly.admin]);
    for (const args of [
      ['create', '--name', 'bob'],
      ['revoke', 'ann'],
    ])
      expect(await keys(...args)).toEqual({
        code: 4,
        stdout: '',
        stderr: 'error: the gateway is read-only: `config.storage.mode` is `readOnly`\n',
      });
    const { stdout } = await keys('list');
    expect(stdout).toMatch(/\nann .* active /);
    expect(stdout).not.toContain('bob');
  });

  test('an answer of the gateway that refuses a key is shown', async () => {
    await using folder = await temporaryFolder();
    await using gate = await budgetGateway({ address: '127.0.0.1:1' }, folder.path, POLICIES, {
      options: { admin: true },
    });
    const { code, stderr } = await cli(['keys', 'revoke', 'nobody', '--admin', gate.admin]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('no key has the id or name `nobody`')]);
  });

  test('a key that no route accepts is created with a warning', async () => {
    await using folder = await temporaryFolder();
    const policies = { apiKey: { mode: 'strict', keys: [{ key: 'k' }] } };
    await using gate = await budgetGateway({ address: '127.0.0.1:1' }, folder.path, policies, {
      options: { admin: true },
    });
    const args = ['keys', 'create', '--name', 'a', '-o', 'json', '--admin', gate.admin];
    const { code, stderr } = await cli(args);
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('warning: no route of this gateway accepts the key: its configuration has no'),
    ]);
  });
});
