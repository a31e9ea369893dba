import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { ShownKey } from '../../../src/core/virtual-key.ts';
import { budgetGateway, createKey, spentIn } from '../../kit/budgets.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { CHAT, chat, chunk, DONE, errorOf, llmProvider, streaming } from '../../kit/llm-provider.ts';
import { loseCommit } from '../../kit/lost-commit.ts';
import { problemOf } from '../../kit/problem.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

/** May use 21 tokens, and uses 19. */
const SMALL = { ...CHAT, max_tokens: 20 };
const KEYS = { apiKey: { mode: 'strict', virtualKeys: {} } };
const bearer = (key: string): { authorization: string } => ({ authorization: `Bearer ${key}` });
const ADMIN = { options: { admin: true } };

const post = ({ admin }: TestGateway, path: string, body: unknown) =>
  send(`${admin}${path}`, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) });
const revoke = (gate: TestGateway, key: string) => post(gate, '/api/keys/revoke', { key });

afterEach(() => void vi.useRealTimers());

describe('virtual keys', () => {
  test('a key works from its creation to its revocation, while the gateway runs', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, KEYS, ADMIN);
    expect((await chat(gate, SMALL, bearer('sk-agctl-unknown'))).status).toBe(401);
    const { secret, key } = await createKey(gate, { name: 'ann' });
    expect(secret).toMatch(/^sk-agctl-[\w-]{43}$/);
    expect(key).toMatchObject({ name: 'ann', state: 'active', hint: secret.slice(-4), budgets: [] });
    expect((await chat(gate, SMALL, bearer(secret))).status).toBe(200);
    expect(JSON.parse((await revoke(gate, 'ann')).text)).toMatchObject({
      key: { id: key.id, state: 'revoked' },
    });
    const refused = await chat(gate, SMALL, bearer(secret));
    expect([refused.status, errorOf(refused).message]).toEqual([
      401,
      'api key authentication failure: invalid credentials',
    ]);
    // Only the log says more of a key that was known.
    expect(await gate.accessLine(3)).toMatchObject({
      'caller.key': 'ann',
      error: 'api key authentication failure: the key is revoked',
      'error.detail': `virtual key ${key.id}`,
    });
    expect((await gate.accessLine(1))['caller.key']).toBeUndefined();
  });

  test('a key whose commit was lost is told and audited as unknown, with what to do', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, KEYS, ADMIN);
    loseCommit(gate.live.served.runtime.database, 'agctl_keys', true);
    const { status, text } = await post(gate, '/api/keys', { name: 'ghost' });
    const said = problemOf(text);
    expect(status).toBe(503);
    expect(said).toContain('whether the change was made is not known');
    expect(said).toContain('with `agctl keys list`. A new key that is there is to be revoked');
    const { events } = JSON.parse((await send(`${gate.admin}/api/audit`)).text) as { events: object[] };
    expect(events[0]).toMatchObject({
      action: 'key.create',
      outcome: 'unknown',
      target: 'ghost',
      detail: said,
    });
    const { keys } = JSON.parse((await send(`${gate.admin}/api/keys`)).text) as { keys: ShownKey[] };
    expect(keys).toMatchObject([{ name: 'ghost', state: 'active' }]);
    expect((await revoke(gate, 'ghost')).status).toBe(200);
  });

  test('the name of a revoked key can be used again, and then means the new key', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, KEYS, ADMIN);
    const old = await createKey(gate, { name: 'ann' });
    await revoke(gate, 'ann');
    const next = await createKey(gate, { name: 'ann' });
    expect((await chat(gate, SMALL, bearer(old.secret))).status).toBe(401);
    expect((await chat(gate, SMALL, bearer(next.secret))).status).toBe(200);
    const { keys } = JSON.parse((await send(`${gate.admin}/api/keys`)).text) as { keys: ShownKey[] };
    expect(keys.map(({ id, name, state }) => [id, name, state])).toEqual([
      [old.key.id, 'ann', 'revoked'],
      [next.key.id, 'ann', 'active'],
    ]);
    expect(JSON.parse((await revoke(gate, 'ann')).text)).toMatchObject({ key: { id: next.key.id } });
  });

  test('the key itself is shown once, and is neither in the database nor in any log', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, KEYS, {
      options: { admin: true, level: 'trace' },
    });
    const { secret } = await createKey(gate, { name: 'ann', metadata: { team: 'red' } });
    await chat(gate, SMALL, bearer(secret));
    await gate.accessLine(1);
    const list = await send(`${gate.admin}/api/keys`);
    const files = (await readdir(folder.path)).filter((name) => name.startsWith('agctl.db'));
    const bytes = await Promise.all(files.map((name) => readFile(join(folder.path, name), 'latin1')));
    const all = [list.text, ...bytes, ...gate.log, ...gate.accessLog].join('');
    expect(all).toContain('ann');
    expect(all).not.toContain(secret.slice('sk-agctl-'.length, -4));
    expect(provider.received[0]?.headers['authorization']).not.toBe(bearer(secret).authorization);
  });

  test('a key survives a restart', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const start = () => budgetGateway(provider, folder.path, KEYS, ADMIN);
    let secret: string;
    {
      await using gate = await start();
      ({ secret } = await createKey(gate, { name: 'ann' }));
    }
    await using gate = await start();
    expect((await chat(gate, SMALL, bearer(secret))).status).toBe(200);
  });

  test('a key allows its models, in calls and in the model list', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, KEYS, ADMIN);
    const { secret } = await createKey(gate, { name: 'ann', allowedModels: ['acme-mini', 'other-*'] });
    expect((await chat(gate, SMALL, bearer(secret))).status).toBe(200);
    expect((await chat(gate, { ...SMALL, model: 'big' }, bearer(secret))).status).toBe(403);
    const { text } = await send(`${gate.url}/v1/models`, { headers: bearer(secret) });
    expect((JSON.parse(text) as { data: { id: string }[] }).data.map(({ id }) => id)).toEqual(['acme-mini']);
  });

  test('a key expires', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-03-01T00:00:00Z') });
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, KEYS, ADMIN);
    const { secret } = await createKey(gate, { name: 'ann', expiresAt: '2026-03-02T00:00:00Z' });
    expect((await chat(gate, SMALL, bearer(secret))).status).toBe(200);
    vi.setSystemTime(Date.parse('2026-03-02T00:00:00Z'));
    expect((await chat(gate, SMALL, bearer(secret))).status).toBe(401);
    expect((await send(`${gate.admin}/api/keys`)).text).toContain('"state": "expired"');
  });

  test('expressions read the name and the metadata of a key, for example for the budget of its team', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const budgets = [{ name: 'team', limit: '30tokens/day', key: 'apiKey.team' }];
    const authorization = { rules: ['apiKey.name != "blocked"'] };
    await using gate = await budgetGateway(provider, folder.path, { ...KEYS, budgets, authorization }, ADMIN);
    const make = async (name: string, team: string) =>
      (await createKey(gate, { name, metadata: { team } })).secret;
    const [ann, bob, eve] = [
      await make('ann', 'red'),
      await make('bob', 'red'),
      await make('blocked', 'blue'),
    ];
    const status = async (key: string) => (await chat(gate, SMALL, bearer(key))).status;
    expect([await status(ann), await status(bob), await status(eve)]).toEqual([200, 429, 403]);
    expect(await spentIn(gate)).toEqual(['team red: 19 tokens']);
    const shown = JSON.parse((await send(`${gate.admin}/api/budgets`)).text) as { subjects: unknown };
    expect(shown).toMatchObject({
      budgets: [{ name: 'team', limit: '30tokens/day', key: 'apiKey.team' }],
      subjects: [{ name: 'team', subject: 'red', limit: '30tokens/day', spent: 19, reserved: 0 }],
    });
  });

  test('a key has budgets of its own', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, KEYS, ADMIN);
    const budgets = ['0.03USD/day', '1000tokens/total'];
    const ann = await createKey(gate, { name: 'ann', budgets });
    const bob = await createKey(gate, { name: 'bob', budgets });
    const status = async (key: string) => (await chat(gate, SMALL, bearer(key))).status;
    expect([await status(ann.secret), await status(ann.secret), await status(bob.secret)]).toEqual([
      200, 429, 200,
    ]);
    expect(errorOf(await chat(gate, SMALL, bearer(ann.secret))).message).toMatch(
      /^the budget of key `ann` \(0\.03USD\/day\) has 0\.011 USD left, and this call may use 0\.021 USD/,
    );
    const { keys } = JSON.parse((await send(`${gate.admin}/api/keys`)).text) as { keys: unknown[] };
    expect(keys[0]).toMatchObject({
      budgets: [
        { limit: '0.03USD/day', spent: '0.019', reserved: '0' },
        { limit: '1000tokens/total', spent: 19, reserved: 0 },
      ],
    });
  });

  test('a stream whose key is revoked goes on to its end', async () => {
    await using folder = await temporaryFolder();
    let finish: (() => void) | undefined;
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(chunk({ content: 'Hello' }));
        finish = () => response.end(DONE);
      }),
    );
    await using gate = await budgetGateway(provider, folder.path, KEYS, ADMIN);
    const { secret } = await createKey(gate, { name: 'ann', budgets: ['1000tokens/day'] });
    const answer = chat(gate, { ...SMALL, stream: true }, bearer(secret));
    await until(() => finish !== undefined);
    await revoke(gate, 'ann');
    finish?.();
    expect((await answer).text).toContain('[DONE]');
    expect((await chat(gate, SMALL, bearer(secret))).status).toBe(401);
  });

  test('gateways with the same database see each other’s keys and revocations', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const options = { options: { admin: true, limits: { keyRefresh: 10 } } };
    await using first = await budgetGateway(provider, folder.path, KEYS, options);
    await using second = await budgetGateway(provider, folder.path, KEYS, options);
    expect((await chat(second, SMALL, bearer('sk-agctl-unknown'))).status).toBe(401);
    const { secret } = await createKey(first, { name: 'ann' });
    await until(async () => (await chat(second, SMALL, bearer(secret))).status === 200);
    await revoke(first, 'ann');
    await until(async () => (await chat(second, SMALL, bearer(secret))).status === 401);
  });

  test('only routes whose policy says so accept virtual keys, of whatever protocol', async () => {
    await using folder = await temporaryFolder();
    const route = (path: string, apiKey: object) => ({
      matches: [{ path: { exact: path } }],
      policies: { apiKey, directResponse: { status: 200, body: 'ok' } },
    });
    const routes = [
      route('/open', { mode: 'strict', virtualKeys: {}, keys: [{ key: 'configured' }] }),
      route('/closed', { mode: 'strict', keys: [{ key: 'configured' }] }),
    ];
    const config = { adminAddr: 'off', database: { url: 'sqlite://./agctl.db' } };
    await using gate = await gateway(JSON.stringify({ config, gateways: { default: { port: 0, routes } } }), {
      folder: folder.path,
      admin: true,
    });
    const { secret } = await createKey(gate, { name: 'ann' });
    const status = async (path: string, key: string) =>
      (await send(gate.url + path, { headers: bearer(key) })).status;
    expect([await status('/open', secret), await status('/closed', secret)]).toEqual([200, 401]);
    expect([await status('/open', 'configured'), await status('/closed', 'configured')]).toEqual([200, 200]);
  });
});

test('a reload that adds a database and what needs it says that a restart is needed', async () => {
  await using folder = await temporaryFolder();
  const config = (database: object, policies: object): string =>
    JSON.stringify({
      config: database,
      llm: { port: 0, models: [{ name: 'm', provider: 'echo' }], policies },
    });
  await using gate = await gateway(config({}, {}), { folder: folder.path, live: 'asked' });
  const database = { database: { url: 'sqlite://./agctl.db' } };
  const budgets = [{ name: 'all', limit: '5tokens/day' }];
  await writeFile(join(folder.path, 'test.yaml'), config(database, { ...KEYS, budgets }));
  expect(await gate.live.reload()).toBe(false);
  const log = gate.log.join('');
  for (const key of ['virtualKeys', 'budgets'])
    expect(log).toMatch(
      new RegExp(`\`${key}\\\\?\` needs the new .*config.database.* is read only at startup`),
    );
  expect(log).not.toContain('needs a database');
});

describe('bad input', () => {
  test.each([
    ['no JSON', 'expected a JSON object'],
    [{}, '`name`: expected 1 to 64 letters'],
    [{ name: 'a b' }, '`name`: expected 1 to 64 letters'],
    [{ name: 'ann', model: ['x'] }, '`model`: unknown member'],
    [{ name: 'ann', allowedModels: 'x' }, '`allowedModels`: expected a list'],
    [{ name: 'ann', metadata: [] }, '`metadata`: expected an object'],
    [{ name: 'ann', metadata: { a: 'x'.repeat(5000) } }, '`metadata`: expected at most 4096 characters'],
    [{ name: 'ann', budgets: ['10EUR/day'] }, '`budgets`: `10EUR/day`: expected an amount per window'],
    [{ name: 'ann', budgets: ['1USD/day', '2USD/day'] }, '`budgets`: two budgets of usd per day'],
    [{ name: 'ann', expiresAt: '2020-01-01' }, '`expiresAt`: expected a time in the future'],
    [{ name: 'ann', expiresAt: 45 }, '`expiresAt`: expected a time in the future'],
    [{ name: 'ann', expiresAt: 'tomorrow 45' }, '`expiresAt`: expected a time in the future'],
    [
      { name: 'taken' },
      '`name`: the key `taken` exists and is not revoked: choose another name, or revoke it first',
    ],
  ])('a new key of %j is refused with the member and what is expected', async (body, message) => {
    await using folder = await temporaryFolder();
    await using gate = await budgetGateway({ address: '127.0.0.1:1' }, folder.path, KEYS, ADMIN);
    await createKey(gate, { name: 'taken' });
    const reply = await post(gate, '/api/keys', body);
    expect([reply.status, problemOf(reply.text)]).toEqual([400, expect.stringContaining(message)]);
  });

  test('revoking an unknown key says so', async () => {
    await using folder = await temporaryFolder();
    await using gate = await budgetGateway({ address: '127.0.0.1:1' }, folder.path, KEYS, ADMIN);
    const reply = await revoke(gate, 'nobody');
    expect([reply.status, problemOf(reply.text)]).toEqual([
      400,
      'no key has the id or name `nobody`: `agctl keys list` lists all keys',
    ]);
  });

  test('virtual keys without a database are an error that names the setting', async () => {
    const models = [{ name: '*', provider: 'echo' }];
    const without = { llm: { port: 0, models, policies: KEYS } };
    await expect(gateway(JSON.stringify(without))).rejects.toThrow('`virtualKeys` needs a database');
  });

  test('apiKey without keys and without virtualKeys is an error', async () => {
    const models = [{ name: '*', provider: 'echo' }];
    const config = { llm: { port: 0, models, policies: { apiKey: { mode: 'strict' } } } };
    await expect(gateway(JSON.stringify(config))).rejects.toThrow('expected `keys` with at least one key');
  });
});
