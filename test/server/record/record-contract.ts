import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import type { Driver } from '../../../src/server/database/driver.ts';
import type { Database } from '../../../src/server/kernel/database.ts';
import { earlierTime } from '../../../src/server/kernel/database-time.ts';
import { wordsOf } from '../../../src/server/record/payload.ts';
import type { RequestRecord } from '../../../src/server/record/request-record.ts';
import { type Clock, Retention } from '../../../src/server/record/retention.ts';
import { recordById, type Search, searchRecords } from '../../../src/server/record/search.ts';
import { type QueuedRecord, storeStatements } from '../../../src/server/record/statements.ts';
import { usageOf } from '../../../src/server/record/usage.ts';
import { recordingLog } from '../../adapter/memory/recording-log.ts';

const MINUTE = 60_000;
const DAY = 24 * 3600 * 1000;
/** Noon of a day, so that the records below are of one day. */
const NOW = Math.floor(Date.now() / DAY) * DAY - DAY / 2;

/** A record of a call without caller. */
export const EMPTY = {
  time: NOW,
  duration: 1500,
  protocol: 'llm',
  operation: 'chat',
  listener: 'llm',
  route: 'default/r',
  path: '/v1/chat/completions',
  status: 200,
  error: null,
  reason: null,
  cut: null,
  caller: null,
  user_name: null,
  user_group: null,
  client: '127.0.0.1',
  agent: null,
  session: null,
  trace_id: null,
  provider: 'openai',
  model: 'mini',
  used_model: 'mini-1',
  target: null,
  tool: null,
  streamed: 0,
  cache_hit: 0,
  first_token: null,
  input_tokens: 10,
  output_tokens: 5,
  cached_tokens: null,
  cache_write_tokens: null,
  reasoning_tokens: null,
  estimated: null,
  cost: 1_000_000,
  added: null,
} satisfies RequestRecord;

export const queued = (
  record: Partial<Record<keyof typeof EMPTY, string | number | null>>,
  payload?: QueuedRecord['payload'],
): QueuedRecord => ({
  record: { ...EMPTY, ...record },
  payload,
  isSummed: false,
  size: 0,
});

export const search = (given: Partial<Search>): Search => ({
  from: 0,
  to: NOW + DAY,
  equal: {},
  limit: 50,
  ...given,
});

/** What the record does in every kind of database. `open` returns one without tables of records. */
export function recordContract(kind: Database['kind'], open: () => Promise<Driver>): void {
  describe(`the stored record (${kind})`, () => {
    let database: Database;
    let driver: Driver;
    const store = (batch: readonly QueuedRecord[]) => database.transaction(storeStatements(kind, batch));
    const times = async (given: Partial<Search>) =>
      (await searchRecords(database, search(given))).records.map(
        (each) => (Date.parse(each['time'] as string) - NOW) / MINUTE,
      );
    beforeAll(async () => {
      driver = await open();
      database = { kind, query: driver.query, transaction: driver.transaction };
    });
    afterAll(() => driver.close());
    const empty = async () => {
      const tables = ['agctl_records', 'agctl_record_payloads', 'agctl_usage'];
      const statements = tables.map((table) => ({ sql: `DELETE FROM ${table}` }));
      const words = { sql: 'DELETE FROM agctl_record_words WHERE rowid IN (SELECT id FROM agctl_records)' };
      await database.transaction(kind === 'sqlite' ? [words, ...statements] : statements);
    };

    test('a search finds records by each filter, newest first', async () => {
      await empty();
      await store([
        queued({ time: NOW + MINUTE, caller: 'k1', user_name: 'u1', user_group: 'g1', model: 'large' }),
        queued({
          time: NOW + 2 * MINUTE,
          protocol: 'mcp',
          operation: 'tools/call',
          target: 't',
          tool: 'read',
          session: 's',
          model: null,
          trace_id: 'abc',
          error: 'tool_error',
        }),
        queued({
          time: NOW + 3 * MINUTE,
          status: 529,
          error: 'overloaded',
          caller: 'k1',
          route: 'default/other',
          provider: 'x',
        }),
        queued({ time: NOW + 4 * MINUTE, status: 404, error: 'route not found' }),
      ]);
      expect(await times({})).toEqual([4, 3, 2, 1]);
      const filters: [Search['equal'], number[]][] = [
        [{ key: 'k1' }, [3, 1]],
        [{ user: 'u1' }, [1]],
        [{ group: 'g1' }, [1]],
        [{ model: 'large' }, [1]],
        [{ key: 'k1', model: 'mini' }, [3]],
        [{ key: 'k1', tool: 'read' }, []],
        [{ target: 't' }, [2]],
        [{ tool: 'read', operation: 'tools/call' }, [2]],
        [{ session: 's' }, [2]],
        [{ trace: 'abc' }, [2]],
        [{ protocol: 'mcp' }, [2]],
        [{ route: 'default/other' }, [3]],
        [{ provider: 'x' }, [3]],
        [{ key: 'nobody' }, []],
      ];
      for (const [equal, expected] of filters)
        expect(await times({ equal }), JSON.stringify(equal)).toEqual(expected);
      expect(await times({ status: [400, 599] })).toEqual([4, 3]);
      expect(await times({ status: 'error' })).toEqual([3, 2]);
      expect(await times({ status: 'error', equal: { tool: 'no such' } })).toEqual([]);
      expect(await times({ status: [500, 599] })).toEqual([3]);
      expect(await times({ status: [200, 299], equal: { key: 'k1' } })).toEqual([1]);
      expect(await times({ from: NOW + 2 * MINUTE, to: NOW + 4 * MINUTE })).toEqual([3, 2]);
      expect(await times({ from: NOW + 2 * MINUTE, to: NOW + 4 * MINUTE, equal: { key: 'k1' } })).toEqual([
        3,
      ]);
    });

    test('pages follow each other without gap or repetition, also among records of one millisecond', async () => {
      await empty();
      const batch = Array.from({ length: 57 }, (_, index) =>
        queued({ time: NOW + Math.floor(index / 10), caller: `k${index % 3}` }),
      );
      await store(batch);
      for (const given of [
        {},
        { equal: { key: 'k1' } },
        { equal: { key: 'k1', group: 'none' } },
        { equal: { key: 'k1', provider: 'openai' } },
      ]) {
        const ids: number[] = [];
        let after: Search['after'];
        do {
          const page = await searchRecords(database, search({ ...given, limit: 4, after }));
          ids.push(...page.records.map(({ id }) => id));
          after = page.next;
        } while (after !== undefined);
        const expected = 'equal' in given ? ('group' in (given.equal ?? {}) ? 0 : 19) : 57;
        expect(ids).toHaveLength(expected);
        expect(new Set(ids).size).toBe(expected);
      }
    });

    test('no page of a search has newer records than it asks for, though they fill more than a step', async () => {
      await empty();
      const newer = Array.from({ length: LIMITS.recordSearchStep + 5 }, () => queued({ time: NOW + MINUTE }));
      const older = Array.from({ length: 9 }, (_, index) => queued({ time: NOW - index * MINUTE }));
      await store([...newer, ...older]);
      const found: number[] = [];
      let after: Search['after'];
      // Ten pages are more than there are.
      for (let page = 0; page < 10 && (page === 0 || after !== undefined); page++) {
        const given = { to: NOW + MINUTE, equal: { provider: 'openai' }, limit: 4, after };
        const { records, next } = await searchRecords(database, search(given));
        found.push(...records.map((each) => (NOW - Date.parse(each['time'] as string)) / MINUTE));
        after = next;
      }
      expect(found).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    });

    test('words of payloads and errors are found, and a record is shown with its conversation', async () => {
      await empty();
      const request = JSON.stringify({ messages: [{ role: 'user', content: 'Où est le café?' }] });
      const response = JSON.stringify({ texts: ['Around the corner'], toolCalls: [] });
      await store([
        queued(
          { time: NOW + MINUTE },
          { request, response, words: wordsOf('Où est le café Around the corner') },
        ),
        queued({ time: NOW + 2 * MINUTE, error: 'the provider said: rate_limit', status: 429 }),
        queued(
          { time: NOW + 3 * MINUTE, caller: 'k9' },
          { request: null, response, words: 'the other corner' },
        ),
      ]);
      expect(await times({ text: 'corner' })).toEqual([3, 1]);
      expect(await times({ text: 'CAFÉ corner' })).toEqual([1]);
      expect(await times({ text: 'provider' })).toEqual([2]);
      expect(await times({ text: 'corner', equal: { key: 'k9' } })).toEqual([3]);
      expect(await times({ text: 'corner', to: NOW + 2 * MINUTE })).toEqual([1]);
      expect(await times({ text: 'nothing' })).toEqual([]);
      expect(await times({ text: '" OR AND NOT *' })).toEqual([]);
      const [found] = (await searchRecords(database, search({ text: 'café' }))).records;
      expect((await recordById(database, found?.id as number))?.['payload']).toEqual({
        messages: [{ role: 'user', content: 'Où est le café?' }],
        texts: ['Around the corner'],
        toolCalls: [],
      });
      expect(await recordById(database, 2 ** 40)).toBeUndefined();
    });

    test('texts that one of the databases cannot store are stored without what it cannot', async () => {
      await empty();
      await store([queued({ agent: 'emoji 🦀 "quoted" \\ \' ? $1', added: '{"a":"?"}' })]);
      const [record] = (await searchRecords(database, search({}))).records;
      expect(record).toMatchObject({ userAgent: 'emoji 🦀 "quoted" \\ \' ? $1', added: { a: '?' } });
    });

    test('usage is summed exactly by key, model and day', async () => {
      await empty();
      const cost = 333_333_333;
      await store(
        Array.from({ length: 30 }, (_, index) =>
          queued({ caller: `k${index % 2}`, cost, status: index === 0 ? 500 : 200 }),
        ),
      );
      await store([queued({ caller: 'k1', model: 'large', cost: 7, time: NOW - 3 * DAY })]);
      const query = { from: NOW - 9 * DAY, to: NOW + DAY, equal: {} };
      const byKey = await usageOf(database, { ...query, by: ['key', 'model'] });
      expect(byKey.rows).toEqual([
        {
          group: { key: 'k0', model: 'mini' },
          requests: 15,
          errors: 1,
          refused: 0,
          inputTokens: 150,
          outputTokens: 75,
          cachedInputTokens: 0,
          costUsd: '0.4999999995',
        },
        {
          group: { key: 'k1', model: 'mini' },
          requests: 15,
          errors: 0,
          refused: 0,
          inputTokens: 150,
          outputTokens: 75,
          cachedInputTokens: 0,
          costUsd: '0.4999999995',
        },
        {
          group: { key: 'k1', model: 'large' },
          requests: 1,
          errors: 0,
          refused: 0,
          inputTokens: 10,
          outputTokens: 5,
          cachedInputTokens: 0,
          costUsd: '0.0000000007',
        },
      ]);
      expect(byKey.total).toMatchObject({ requests: 31, costUsd: '0.9999999997' });
      const byDay = await usageOf(database, { ...query, by: ['day'], equal: { key: 'k1' } });
      expect(byDay.rows.map(({ group, requests }) => [group.day, requests])).toEqual([
        [new Date(NOW - 3 * DAY).toISOString().slice(0, 10), 1],
        [new Date(NOW).toISOString().slice(0, 10), 15],
      ]);
    });

    test('refused requests, also calls that rules of MCP do not allow, are counted and found apart from errors', async () => {
      await empty();
      const denied = { status: 200, error: 'Unknown tool: x', reason: 'Authorization' };
      await store([
        queued({ time: NOW, status: 401, error: 'no key', reason: 'APIKeyAuth' }),
        queued({ time: NOW + 1, ...denied }),
        queued({ time: NOW + 2, ...denied, reason: null }),
        queued({ time: NOW + 3, status: 503, error: 'gone', reason: 'UpstreamFailure' }),
        // The client left, which nobody refused.
        queued({ time: NOW + 4, status: 499, error: 'left', reason: 'ClientClosed' }),
        queued({ time: NOW + 5 }),
        queued({ time: NOW + 6, status: 503, error: 'no guard', reason: 'Guardrail', input_tokens: null }),
        // The provider has answered before.
        queued({ time: NOW + 7, status: 503, error: 'no guard', reason: 'Guardrail', input_tokens: 500 }),
      ]);
      const found = async (status: 'error' | 'refused') =>
        (await searchRecords(database, search({ status }))).records.map(
          ({ time }) => Date.parse(String(time)) - NOW,
        );
      expect(await found('refused')).toEqual([1, 0]);
      expect(await found('error')).toEqual([7, 6, 3, 2]);
      const usage = { from: NOW - DAY, to: NOW + DAY, equal: {} };
      const { total, rows } = await usageOf(database, { ...usage, by: ['provider'] });
      expect(total).toMatchObject({ requests: 8, errors: 4, refused: 2 });
      // What the gateway itself failed at is not an error of the provider, and what it refused is not a call of it.
      expect(rows.map(({ group, requests, errors }) => [group.provider, requests, errors])).toEqual([
        ['openai', 4, 2],
        ['', 4, 2],
      ]);
      const tokens = rows.map(({ inputTokens }) => inputTokens);
      expect(tokens).toEqual([6 * Number(queued({}).record['input_tokens']) + 500, 0]);
    });

    test('sums of old hours become sums of days without losing any', async () => {
      await empty();
      const old = NOW - 5 * DAY;
      await store([0, 1, 2, 2].map((hour) => queued({ time: old + hour * 60 * MINUTE, caller: 'k' })));
      await store([queued({ time: NOW })]);
      await retention({ retention: 90 * DAY }).run();
      expect(
        await database.query('SELECT hour % 24 AS hour, requests FROM agctl_usage ORDER BY agctl_usage.hour'),
      ).toEqual([
        { hour: 0, requests: 4 },
        { hour: 12, requests: 1 },
      ]);
      // A record of that day that is stored late.
      await store([queued({ time: old, caller: 'k' })]);
      await retention({ retention: 90 * DAY }).run();
      const { total } = await usageOf(database, { from: old, to: NOW + DAY, by: ['key'], equal: {} });
      expect(total.requests).toBe(6);
    });

    test('old records are deleted with their payloads and words while others are read', async () => {
      await empty();
      const payload = { request: '{}', response: null, words: 'forgotten' };
      const old = Array.from({ length: 40 }, (_, index) => queued({ time: NOW - 40 * DAY + index }, payload));
      await store([...old, queued({ time: NOW }, { ...payload, words: 'kept' })]);
      const first = await searchRecords(database, search({ limit: 10 }));
      const deleting = retention({ retention: 30 * DAY, batch: 7 }).run();
      const reading = Promise.all(
        Array.from({ length: 10 }, () => searchRecords(database, search({ limit: 500 }))),
      );
      await deleting;
      for (const { records } of await reading) expect(records.length).toBeGreaterThanOrEqual(1);
      // The page after one whose records have been deleted is empty, not an error.
      expect(await searchRecords(database, search({ limit: 10, after: first.next }))).toMatchObject({
        records: [],
      });
      expect(await times({})).toEqual([0]);
      expect(await times({ text: 'forgotten' })).toEqual([]);
      expect(await times({ text: 'kept' })).toEqual([0]);
      expect(await database.query('SELECT count(*) AS n FROM agctl_record_payloads')).toEqual([
        { n: expect.anything() },
      ]);
      expect(
        Number((await database.query('SELECT count(*) AS n FROM agctl_record_payloads'))[0]?.['n']),
      ).toBe(1);
    });

    test('after a jump of the clock nothing is deleted for an hour', async () => {
      await empty();
      await store([queued({ time: NOW })]);
      const clock = {
        at: NOW,
        since: 0,
        now: () => clock.at,
        monotonic: () => clock.since,
        earlier: async (_: unknown, own: number) => own,
      };
      const log = recordingLog();
      const keeper = retention({ retention: 30 * DAY, clock, log });
      const pass = (ms: number) => {
        clock.at += ms;
        clock.since += ms;
      };
      clock.at += 365 * DAY;
      await keeper.run();
      pass(59 * MINUTE);
      await keeper.run();
      expect(await times({ to: NOW + 400 * DAY })).toEqual([0]);
      expect(log.lines.join('')).toContain('the clock has jumped');
      // Set right again: another jump.
      clock.at -= 365 * DAY;
      await keeper.run();
      pass(61 * MINUTE);
      await keeper.run();
      expect(await times({})).toEqual([0]);
      // A year that has really passed.
      for (let day = 0; day < 32; day++) pass(DAY);
      await keeper.run();
      expect(await times({})).toEqual([]);
    });

    test.skipIf(kind === 'sqlite')(
      'a replica whose clock is a year ahead deletes nothing that is new by the clock of PostgreSQL',
      async () => {
        await empty();
        await store([queued({ time: NOW }), queued({ time: NOW - 40 * DAY })]);
        const now = () => Date.now() + 365 * DAY;
        const clock = { now, monotonic: () => performance.now(), earlier: earlierTime };
        await retention({ retention: 30 * DAY, clock }).run();
        expect(await times({})).toEqual([0]);
      },
    );

    function retention({
      retention: age,
      batch = LIMITS.recordExpiryBatch,
      ...more
    }: {
      retention: number;
      batch?: number;
      clock?: Clock;
      log?: ReturnType<typeof recordingLog>;
    }): Retention {
      const limits = { ...LIMITS, recordExpiryBatch: batch };
      return new Retention({ database, log: recordingLog(), limits, retention: () => age, ...more });
    }
  });
}
