import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { createLog } from '../../../src/core/log.ts';
import { Ledger, type Reserved } from '../../../src/server/budgets/ledger.ts';
import { Pruning } from '../../../src/server/budgets/pruning.ts';
import { budgetsSchema } from '../../../src/server/budgets/schema.ts';
import { DatabaseSpending } from '../../../src/server/budgets/spending-store.ts';
import { openSqlite } from '../../../src/server/database/sqlite.ts';
import { temporaryFolder } from '../../kit/folder.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 10, 24, 23, 59);

const log = createLog({ write: () => undefined, dropped: 0, flush: () => Promise.resolve() }, 'off', 'text');
const CLAIM = { counter: '["all","tokens","day",""]', unit: 'tokens', window: 'day', limit: 100 } as const;
const tokens = (count: number) => ({ tokens: count, usd: 0 });

/** A ledger on a SQLite file. */
async function scene() {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'agctl.db');
  const options = { path, mustExist: false, schemas: [budgetsSchema], log, limits: LIMITS };
  const driver = await openSqlite(options);
  const store = new DatabaseSpending({ kind: 'sqlite', ...driver });
  const ledger = new Ledger({
    store,
    log,
    maxCounters: LIMITS.budgetCounters,
    freshness: LIMITS.budgetFreshness,
    wait: LIMITS.budgetWait,
    presence: LIMITS.budgetPresence,
    failed: () => undefined,
  });
  return {
    ledger,
    store,
    reserve: async (count: number): Promise<Reserved> => ledger.reserve(0, [CLAIM], tokens(count)),
    async [Symbol.asyncDispose]() {
      await ledger.flushed();
      await driver.close();
      await folder.remove();
    },
  };
}

/** A call that uses this many tokens. Whether it was allowed. */
async function use({ ledger, reserve }: Awaited<ReturnType<typeof scene>>, count: number): Promise<boolean> {
  const reserved = await reserve(count);
  if (!('id' in reserved)) return false;
  await ledger.charge(reserved.id, tokens(count));
  await ledger.release(reserved.id, tokens(count));
  return true;
}

describe('a clock that jumps over the edge of a window', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'], now: START });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('forward begins a window with the whole amount, and back finds what was spent in the earlier one', async () => {
    await using at = await scene();
    expect([await use(at, 80), await use(at, 80)]).toEqual([true, false]);
    vi.setSystemTime(START + 2 * MINUTE);
    expect([await use(at, 90), await use(at, 90)]).toEqual([true, false]);
    vi.setSystemTime(START);
    expect([await use(at, 21), await use(at, 20), await use(at, 1)]).toEqual([false, true, false]);
    vi.setSystemTime(START + 2 * MINUTE);
    expect([await use(at, 11), await use(at, 10)]).toEqual([false, true]);
  });

  test('during a call charges the window in which it began', async () => {
    await using at = await scene();
    const reserved = await at.reserve(80);
    vi.setSystemTime(START + 2 * MINUTE);
    if (!('id' in reserved)) throw new Error('refused');
    await at.ledger.charge(reserved.id, tokens(80));
    await at.ledger.release(reserved.id, tokens(80));
    expect(await use(at, 100)).toBe(true);
    vi.setSystemTime(START);
    expect([await use(at, 21), await use(at, 20)]).toEqual([false, true]);
  });
});

describe('counters of old windows', () => {
  test('are removed once a day, and never by a clock that has just jumped', async () => {
    await using at = await scene();
    const clock = { at: START, since: 0, now: () => clock.at, monotonic: () => clock.since };
    const pass = (ms: number): void => {
      clock.at += ms;
      clock.since += ms;
    };
    const spent = async (): Promise<number | undefined> =>
      (await at.store.totals([{ counter: 'a', start: START - HOUR }]))[0];
    await at.store.exchange([{ counter: 'a', start: START - HOUR, amount: 7 }], []);
    const pruning = new Pruning(at.store, clock);
    pass(30 * MINUTE);
    clock.at += 365 * DAY;
    pass(30 * MINUTE);
    await pruning.check();
    clock.at -= 365 * DAY;
    pass(HOUR);
    await pruning.check();
    pass(HOUR);
    await pruning.check();
    expect(await spent()).toBe(7);
    for (let hour = 0; hour < 63 * 24; hour++) {
      pass(HOUR);
      await pruning.check();
    }
    expect(await spent()).toBe(0);
    pruning.close();
  });
});
