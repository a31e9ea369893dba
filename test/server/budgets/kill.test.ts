import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { callUntilGone, type Seen, USED, usedProvider } from '../../kit/budget-load.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { type ServeProcess, serve } from '../../kit/process.ts';
import { repeats } from '../../kit/thorough.ts';
import { until } from '../../kit/until.ts';

const CYCLES = repeats(2, 500);
const CLIENTS = 8;
/** Of each cycle: some end before it is used up, and some after. */
const LIMIT = 1_000;

const configOf = (provider: string, folder: string, workers: number): string =>
  JSON.stringify({
    config: {
      adminAddr: 'off',
      database: { url: `sqlite://${join(folder, 'agctl.db')}` },
      ...(workers > 1 && { workers }),
    },
    llm: {
      port: 0,
      models: [{ name: '*', provider: 'openai', params: { baseUrl: `http://${provider}/v1`, apiKey: 'k' } }],
      policies: {
        budgets: [
          { name: 'cycle', limit: `${LIMIT}tokens/total`, key: 'request.headers["x-cycle"]' },
          { name: 'all', limit: '1000000000tokens/total' },
        ],
      },
    },
  });

function spentOf(folder: string): Map<string, number> {
  // Somebody else may look at the file of a test that runs for half an hour.
  using database = new DatabaseSync(join(folder, 'agctl.db'), { timeout: 5_000 });
  const rows = database.prepare('SELECT counter, spent FROM agctl_spending_totals').all();
  return new Map(
    rows.map(({ counter, spent }) => {
      const [budget, , , subject] = JSON.parse(String(counter)) as string[];
      return [`${budget}${subject}`, Number(spent)];
    }),
  );
}

async function cycles(count: number, workers: number): Promise<void> {
  await using folder = await temporaryFolder();
  await using provider = await usedProvider();
  const config = configOf(provider.address, folder.path, workers);
  let allComplete = 0;
  for (let cycle = 0; cycle < count; cycle++) {
    const callsBefore = provider.received.length;
    const seen: Seen = { complete: 0, refused: 0, other: [] };
    const gate: ServeProcess = await serve(config);
    const clients = Array.from({ length: CLIENTS }, () => callUntilGone(gate.url, `c${cycle}`, seen));
    const killedAfter = Math.floor(Math.random() * 1.5 * (LIMIT / USED));
    await until(() => seen.complete >= killedAfter || seen.refused > CLIENTS);
    gate.kill('SIGKILL');
    await Promise.all([gate.finished, ...clients]);
    allComplete += seen.complete;
    const spent = spentOf(folder.path);
    const calls = provider.received.length - callsBefore;
    const here = spent.get(`cyclec${cycle}`) ?? 0;
    const where = `cycle ${cycle}: ${JSON.stringify({ ...seen, calls, here })}`;
    expect(
      // Workers that have lost the first process refuse calls, and end answers that they cannot count with an error.
      seen.other.filter(
        (text) => workers === 1 || !(text.startsWith('503') || text.includes('gateway_closing')),
      ),
      where,
    ).toEqual([]);
    // Nothing that a client has received is lost, nothing is counted twice, and no budget is exceeded.
    expect(here, where).toBeGreaterThanOrEqual(seen.complete * USED);
    expect(here, where).toBeLessThanOrEqual(calls * USED);
    expect(here, where).toBeLessThanOrEqual(LIMIT);
    expect(spent.get('all') ?? 0, where).toBeGreaterThanOrEqual(allComplete * USED);
  }
}

describe('a gateway that is killed (SIGKILL) under load with budgets', () => {
  test(
    `${CYCLES} kills lose no spending that a client has an answer for, and exceed no budget`,
    () => cycles(CYCLES, 1),
    CYCLES * 20_000,
  );

  test(
    'kills of a gateway with workers lose none either',
    () => cycles(repeats(1, 30), 2),
    repeats(1, 30) * 30_000,
  );
});
