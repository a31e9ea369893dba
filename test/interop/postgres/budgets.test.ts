import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { callUntilGone, type Seen, USED, usedProvider } from '../../kit/budget-load.ts';
import { serve } from '../../kit/process.ts';
import { until } from '../../kit/until.ts';
import { freshDatabase } from './fresh-database.ts';

const KILLS = Number(process.env['AGCTL_KILLS'] ?? 20);
/** At each of two replicas. */
const CLIENTS = 4;
const LIMIT = 1_000;

const configOf = (provider: string, url: string): string =>
  JSON.stringify({
    config: { adminAddr: 'off', database: { url } },
    llm: {
      port: 0,
      models: [{ name: '*', provider: 'openai', params: { baseUrl: `http://${provider}/v1`, apiKey: 'k' } }],
      policies: {
        budgets: [{ name: 'cycle', limit: `${LIMIT}tokens/total`, key: 'request.headers["x-cycle"]' }],
      },
    },
  });

const unseen = (): Seen => ({ complete: 0, refused: 0, other: [] });

async function spentOf(url: string, cycle: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query('SELECT counter, spent FROM agctl_spending');
  await client.end();
  const row = rows.find(({ counter }) => JSON.parse(String(counter))[3] === cycle);
  return Number(row?.spent ?? 0);
}

describe.skipIf(!process.env['MEMORY_DATABASE_URL'])('replicas with budgets in one PostgreSQL server', () => {
  test(`${KILLS} kills of one lose no spending that a client has an answer for; the other uses up the budget, and exceeds it by no more than what was in flight`, async () => {
    const database = await freshDatabase();
    await using provider = await usedProvider();
    const config = configOf(provider.address, database.url);
    await using stays = await serve(config);
    for (let kill = 0; kill < KILLS; kill++) {
      const cycle = `c${kill}`;
      const callsBefore = provider.received.length;
      const [here, there] = [unseen(), unseen()];
      const victim = await serve(config);
      const load = Array.from({ length: CLIENTS }, () => [
        callUntilGone(victim.url, cycle, there),
        callUntilGone(stays.url, cycle, here as Seen, () => here.refused > 0),
      ]).flat();
      const answers = (kill * 7) % (LIMIT / USED / 2);
      await until(() => there.complete >= answers || there.refused > 0);
      victim.kill('SIGKILL');
      await Promise.all([victim.finished, ...load]);
      const calls = provider.received.length - callsBefore;
      const spent = await spentOf(database.url, cycle);
      const where = `kill ${kill}: ${JSON.stringify({ here, there, calls, spent })}`;
      expect([...here.other, ...there.other], where).toEqual([]);
      expect(spent, where).toBeGreaterThanOrEqual((here.complete + there.complete) * USED);
      expect(spent, where).toBeLessThanOrEqual(calls * USED);
      // What the calls of one replica had reserved, the other one did not know.
      expect(spent, where).toBeLessThanOrEqual(LIMIT + CLIENTS * USED);
      // What the killed replica had reserved keeps nothing from being used.
      expect(spent, where).toBeGreaterThan(LIMIT - 4 * (2 * CLIENTS) * USED);
    }
    await stays[Symbol.asyncDispose]();
    await database.remove();
  }, 1_800_000);
});
