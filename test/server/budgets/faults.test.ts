import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import type { Overview } from '../../../src/core/overview.ts';
import type { ShownServices } from '../../../src/core/service-figures.ts';
import { budgetGateway, createKey, spending, spentIn } from '../../kit/budgets.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import type { TestGateway } from '../../kit/gateway.ts';
import {
  answering,
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  errorOf,
  llmProvider,
  streaming,
  USAGE,
} from '../../kit/llm-provider.ts';
import { loseCommit } from '../../kit/lost-commit.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

/** May use 21 tokens, and uses 19. */
const SMALL = { ...CHAT, max_tokens: 20 };
const budget = (more: object = {}) => ({ budgets: [{ name: 'all', limit: '1000tokens/day', ...more }] });
/** A short wait for the lock; counters are read for each call. */
const IMPATIENT = { options: { limits: { databaseLock: 20, budgetFreshness: 0 } } };

/** Another process that keeps the file locked. */
function lock(folder: string): { release(): void } {
  const other = new DatabaseSync(join(folder, 'agctl.db'));
  other.exec('BEGIN IMMEDIATE');
  return { release: () => other.close() };
}

const failures = async ({ running }: TestGateway): Promise<number> =>
  Number(/gw_budget_database_failures_total (\d+)/.exec(await running.metrics.render())?.[1] ?? 0);

describe('a database that cannot be used', () => {
  test('failClosed refuses calls, says so in log and metrics, and goes on afterwards', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, budget(), {
      options: { ...IMPATIENT.options, admin: true },
    });
    expect((await chat(gate, SMALL)).status).toBe(200);
    const locked = lock(folder.path);
    const refused = await chat(gate, SMALL);
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    expect(errorOf(refused).message).toBe(
      'budgets cannot be checked: the database of the gateway is not available',
    );
    expect(await gate.accessLine(2)).toMatchObject({ reason: 'Internal' });
    expect(gate.log.join('')).toContain('the database of budgets cannot be used');
    expect(gate.log.join('')).toContain('locked by another process');
    expect(await failures(gate)).toBeGreaterThan(0);
    expect(provider.received.length).toBe(1);
    const { services } = (await (await fetch(`${gate.admin}/api/services`)).json()) as ShownServices;
    expect(services).toMatchObject([{ kind: 'provider', name: 'openai', calls: 1, errors: 0 }]);
    const outages = async () =>
      ((await (await fetch(`${gate.admin}/api/overview`)).json()) as Overview).outages;
    expect(await outages()).toEqual([
      { at: 'config.database', problem: expect.stringContaining('locked'), since: expect.any(String) },
    ]);
    locked.release();
    await until(async () => (await chat(gate, SMALL)).status === 200);
    expect(gate.log.join('')).toContain('the database of budgets can be used again');
    expect(await outages()).toEqual([]);
    expect(await spentIn(gate)).toEqual(['all: 38 tokens']);
  });

  test('failOpen lets calls through, counted as such', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const open = budget({ failureMode: 'failOpen' });
    await using gate = await budgetGateway(provider, folder.path, open, IMPATIENT);
    expect((await chat(gate, SMALL)).status).toBe(200);
    const locked = lock(folder.path);
    expect((await chat(gate, SMALL)).status).toBe(200);
    expect(await gate.running.metrics.render()).toContain(
      'gw_budget_calls_total{budget="all",outcome="uncounted"} 1',
    );
    locked.release();
  });

  test('what a call has used while the database fails is charged later', async () => {
    await using folder = await temporaryFolder();
    let locked: { release(): void } | undefined;
    await using provider = await llmProvider((request, response, received) => {
      locked = lock(folder.path);
      return answering(completion('Hi'))(request, response, received);
    });
    const limits = { databaseLock: 20 };
    await using gate = await budgetGateway(provider, folder.path, budget(), { options: { limits } });
    expect((await chat(gate, SMALL)).status).toBe(200);
    expect(gate.log.join('')).toContain('the database of budgets cannot be used');
    locked?.release();
    await until(() => gate.log.join('').includes('the database of budgets can be used again'));
    expect(await spentIn(gate)).toEqual(['all: 19 tokens']);
  });

  test('charges that a stop cannot write are logged for each budget, and counted before', async () => {
    await using folder = await temporaryFolder();
    let locked: { release(): void } | undefined;
    await using provider = await llmProvider((request, response, received) => {
      locked = lock(folder.path);
      return answering(completion('Hi'))(request, response, received);
    });
    const limits = { databaseLock: 20 };
    await using gate = await budgetGateway(provider, folder.path, budget(), { options: { limits } });
    expect((await chat(gate, SMALL)).status).toBe(200);
    expect(await gate.running.metrics.render()).toContain('gw_budget_charges_waiting 1');
    await gate.close();
    locked?.release();
    expect(gate.log.join('')).toMatch(/charges of a budget are lost.*budget="all" lost="19 tokens"/);
  });

  test.each([true, false])(
    'a charge whose commit was lost counts once (executed: %s)',
    async (isExecuted) => {
      await using folder = await temporaryFolder();
      await using provider = await llmProvider();
      await using gate = await budgetGateway(provider, folder.path, budget({ failureMode: 'failOpen' }));
      expect((await chat(gate, SMALL)).status).toBe(200);
      loseCommit(gate.live.served.runtime.database, 'agctl_spending', isExecuted);
      expect((await chat(gate, SMALL)).status).toBe(200);
      await until(() => gate.log.join('').includes('the database of budgets can be used again'));
      expect((await chat(gate, SMALL)).status).toBe(200);
      expect(await spentIn(gate)).toEqual(['all: 57 tokens']);
    },
  );

  test('counters that could not be read do not keep others from being counted later', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const each = budget({ key: 'request.headers["x-team"]' });
    const limits = { ...IMPATIENT.options.limits, budgetCounters: 3 };
    await using gate = await budgetGateway(provider, folder.path, each, { options: { limits } });
    const call = async (team: number): Promise<number> =>
      (await chat(gate, SMALL, { 'x-team': `${team}` })).status;
    const locked = lock(folder.path);
    expect([await call(1), await call(2), await call(3), await call(4)]).toEqual([503, 503, 503, 503]);
    locked.release();
    await until(async () => (await call(5)) === 200);
  });

  test('keys that are known stay valid while the database fails', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(
      provider,
      folder.path,
      { apiKey: { mode: 'strict', virtualKeys: {} } },
      { options: { admin: true, limits: { keyRefresh: 10 } } },
    );
    const { secret } = await createKey(gate, { name: 'ann' });
    const authorization = { authorization: `Bearer ${secret}` };
    expect((await chat(gate, SMALL, authorization)).status).toBe(200);
    await gate.live.served.runtime.database?.close();
    await until(() =>
      gate.log.join('').includes('virtual keys cannot be read: those that are known stay valid'),
    );
    expect((await chat(gate, SMALL, authorization)).status).toBe(200);
  });
});

describe('the end of an answer', () => {
  test.each([
    ['a response', false],
    ['a stream', true],
  ])('of %s is sent only when its charge is written', async (_what, stream) => {
    await using folder = await temporaryFolder();
    let locked: { release(): void } | undefined;
    const events = streaming((response) =>
      response.end(chunk({ content: 'Hello' }) + chunk(undefined, { usage: USAGE }) + DONE),
    );
    await using provider = await llmProvider((request, response, received) => {
      locked = lock(folder.path);
      return (stream ? events : answering(completion('Hi')))(request, response, received);
    });
    await using gate = await budgetGateway(provider, folder.path, budget());
    let isComplete = false;
    const call = chat(gate, { ...SMALL, stream }).finally(() => {
      isComplete = true;
    });
    await until(() => locked !== undefined);
    // By now, the answer would have been there.
    for (let count = 0; count < 20; count++) await send(`${gate.url}/v1/models`);
    expect(isComplete).toBe(false);
    locked?.release();
    expect((await call).status).toBe(200);
    expect(await spentIn(gate)).toEqual(['all: 19 tokens']);
  });
});

describe('several processes on one database', () => {
  test('a budget that two gateways share is exceeded by neither', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const start = () => budgetGateway(provider, folder.path, budget({ limit: '200tokens/total' }), IMPATIENT);
    await using first = await start();
    await using second = await start();
    const statuses: number[] = [];
    for (let round = 0; round < 10; round++)
      for (const gate of [first, second]) statuses.push((await chat(gate, SMALL)).status);
    // 9 calls of 19 tokens are 171; the tenth may use 21.
    expect(statuses.filter((status) => status === 200)).toHaveLength(10);
    expect(await spentIn(second)).toEqual(['all: 190 tokens']);
  });

  test('what a process has charged counts after it has left, also in budgets that were read before', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const each = budget({ limit: '60tokens/total', key: 'request.headers["x-team"]' });
    const options = { options: { limits: { budgetPresence: 0, budgetFreshness: 60_000 } } };
    const call = async (gate: TestGateway, team: string): Promise<number> =>
      (await chat(gate, SMALL, { 'x-team': team })).status;
    await using first = await budgetGateway(provider, folder.path, each, options);
    expect(await call(first, 'red')).toBe(200);
    {
      await using second = await budgetGateway(provider, folder.path, each, options);
      expect([await call(second, 'red'), await call(second, 'red')]).toEqual([200, 200]);
    }
    // The second process is noticed with another budget.
    expect(await call(first, 'blue')).toBe(200);
    expect(await call(first, 'red')).toBe(429);
  });

  test('a second process is noticed within the time that counters count as fresh', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const start = () => budgetGateway(provider, folder.path, budget({ limit: '60tokens/total' }));
    await using first = await start();
    await using second = await start();
    expect((await chat(first, SMALL)).status).toBe(200);
    expect((await chat(second, SMALL)).status).toBe(200);
    await until(async () => (await chat(first, SMALL)).status === 429);
    expect(spending(first).ledger.size).toBe(1);
  });
});
