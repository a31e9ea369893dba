import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import {
  answering,
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  llmProvider,
  streaming,
  USAGE,
} from '../../kit/llm-provider.ts';
import { type ServeProcess, serve } from '../../kit/process.ts';
import { repeats } from '../../kit/thorough.ts';
import { until } from '../../kit/until.ts';

const CYCLES = repeats(4, 500);
const CLIENTS = 8;
/** What one call uses, and what it may use. */
const USED = USAGE.total_tokens;
const CALL = { ...CHAT, max_tokens: 20 };
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

/** What clients have seen of one cycle. */
interface Seen {
  /** Answers that were received completely. */
  complete: number;
  refused: number;
  other: string[];
}

/** Calls until the gateway is gone. */
async function client(url: string, cycle: number, seen: Seen): Promise<void> {
  for (let count = 0; ; count++) {
    const isStream = count % 2 === 0;
    try {
      const { status, text } = await chat({ url }, { ...CALL, stream: isStream }, { 'x-cycle': `c${cycle}` });
      const isComplete = isStream ? text.includes('[DONE]') : text.includes('"usage"');
      if (status === 200 && isComplete) seen.complete += 1;
      else if (status === 429) seen.refused += 1;
      else seen.other.push(`${status} ${text}`);
    } catch {
      return;
    }
  }
}

function spentOf(folder: string): Map<string, number> {
  // Somebody else may look at the file of a test that runs for half an hour.
  using database = new DatabaseSync(join(folder, 'agctl.db'), { timeout: 5_000 });
  const rows = database.prepare('SELECT counter, spent FROM agctl_spending').all();
  return new Map(
    rows.map(({ counter, spent }) => {
      const [budget, , , subject] = JSON.parse(String(counter)) as string[];
      return [`${budget}${subject}`, Number(spent)];
    }),
  );
}

async function cycles(count: number, workers: number): Promise<void> {
  await using folder = await temporaryFolder();
  const stream = streaming((response) =>
    response.end(chunk({ content: 'Hello' }) + chunk(undefined, { usage: USAGE }) + DONE),
  );
  let calls = 0;
  await using provider = await llmProvider((request, response, received) => {
    calls += 1;
    const answer = received.body.includes('"stream":true') ? stream : answering(completion('Hi'));
    return answer(request, response, received);
  });
  const config = configOf(provider.address, folder.path, workers);
  let allComplete = 0;
  for (let cycle = 0; cycle < count; cycle++) {
    calls = 0;
    const seen: Seen = { complete: 0, refused: 0, other: [] };
    const gate: ServeProcess = await serve(config);
    const clients = Array.from({ length: CLIENTS }, () => client(gate.url, cycle, seen));
    const killedAfter = Math.floor(Math.random() * 1.5 * (LIMIT / USED));
    await until(() => seen.complete >= killedAfter || seen.refused > CLIENTS);
    gate.kill('SIGKILL');
    await Promise.all([gate.finished, ...clients]);
    allComplete += seen.complete;
    const spent = spentOf(folder.path);
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
