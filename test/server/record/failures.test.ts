import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { CHAT, chat, llmProvider } from '../../kit/llm-provider.ts';
import { loseCommit } from '../../kit/lost-commit.ts';
import { problemOf } from '../../kit/problem.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { workerGateway } from '../../kit/workers.ts';
import { llmSection, type RecordingGateway, recordingGateway } from './recorded.ts';

/** Locks the database like another process that writes. */
function lock({ folder }: RecordingGateway): { release(): void } {
  const other = new DatabaseSync(`${folder}/data/requests.db`);
  other.exec('BEGIN IMMEDIATE');
  return {
    release: () => {
      other.exec('COMMIT');
      other.close();
    },
  };
}

const QUICK = { databaseLock: 10, recordRetry: 20, recordMaxRetry: 40, recordFlush: 200 };

describe('while the database fails', () => {
  test('with failureMode allow, requests go on, wait to be recorded, and are recorded later', async () => {
    await using provider = await llmProvider();
    await using recording = await recordingGateway({
      more: llmSection(provider),
      options: { limits: QUICK },
    });
    const locked = lock(recording);
    for (let call = 0; call < 3; call++) expect((await chat(recording.gate)).status).toBe(200);
    await until(() =>
      recording.gate.log.some((line) => line.includes('requests cannot be recorded; they wait')),
    );
    expect(recording.gate.log.join('')).toContain('locked by another process');
    locked.release();
    expect(await recording.records('', 3)).toHaveLength(3);
    expect(recording.gate.log.join('')).toContain('requests are recorded again');
    expect((await recording.get('/api/usage')).total.requests).toBe(3);
  });

  test.each([true, false])(
    'a record whose commit was lost is stored once (executed: %s)',
    async (isExecuted) => {
      await using provider = await llmProvider();
      await using recording = await recordingGateway({
        more: llmSection(provider),
        options: { limits: QUICK },
      });
      loseCommit(recording.gate.live.served.runtime.database, 'agctl_records', isExecuted);
      for (let call = 0; call < 3; call++) expect((await chat(recording.gate)).status).toBe(200);
      await until(() => recording.gate.log.join('').includes('requests are recorded again'));
      expect(await recording.records('', 3)).toHaveLength(3);
      expect((await recording.get('/api/usage')).total.requests).toBe(3);
    },
  );

  test('with failureMode deny, requests are refused with status 503 until it works again', async () => {
    await using provider = await llmProvider();
    await using recording = await recordingGateway({
      record: { failureMode: 'deny' },
      more: llmSection(provider),
      options: { limits: { ...QUICK, recordFreshness: 0 } },
    });
    expect((await chat(recording.gate)).status).toBe(200);
    await recording.records('', 1);
    const locked = lock(recording);
    // Also the first one, which nothing that failed has preceded.
    const refused = await chat(recording.gate);
    expect(refused.status).toBe(503);
    expect(refused.text).toContain('cannot record requests at the moment');
    locked.release();
    await until(async () => (await chat(recording.gate)).status === 200);
    expect(provider.received.length).toBe(2);
  });

  test('records beyond the bound of the queue are lost, which is logged and counted', async () => {
    await using provider = await llmProvider();
    await using recording = await recordingGateway({
      more: llmSection(provider),
      options: { limits: { ...QUICK, recordQueue: 2 } },
    });
    const locked = lock(recording);
    for (let call = 0; call < 5; call++) await chat(recording.gate);
    await until(() => recording.gate.log.some((line) => line.includes('records of requests were lost')));
    const value = async (name: string) => {
      const text = await recording.gate.running.metrics.render();
      return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
    };
    await until(async () => (await value('gw_request_records_lost_total')) === 3);
    expect(await value('gw_request_records_queued')).toBe(2);
    locked.release();
    await recording.records('', 2);
    expect(await value('gw_request_records_total')).toBe(2);
  });

  test('a shutdown does not wait for it, and says how many records are lost', async () => {
    await using provider = await llmProvider();
    await using recording = await recordingGateway({
      more: llmSection(provider),
      options: { limits: QUICK },
    });
    const locked = lock(recording);
    await chat(recording.gate);
    await recording.gate.close();
    expect(recording.gate.log.join('')).toMatch(/records of requests were lost.*lost=1/);
    locked.release();
  });

  test('a full disk leaves requests alone', async () => {
    await using provider = await llmProvider();
    await using recording = await recordingGateway({
      record: { payloads: 'full' },
      more: llmSection(provider),
      options: { limits: { ...QUICK, databaseRetry: 20 } },
    });
    const { database } = recording.gate.live.served.runtime;
    if (database === undefined) throw new Error('there is a database');
    // The most pages that the file may have; the kernel reports a full disk at the same place.
    await database.transaction([{ sql: 'PRAGMA max_page_count = 1' }]);
    const long = { ...CHAT, messages: [{ role: 'user', content: 'word '.repeat(20_000) }] };
    expect((await chat(recording.gate, long)).status).toBe(200);
    await until(() => recording.gate.log.some((line) => line.includes('the disk is full')));
    // The outage does not end before something can be written: it lasts since the first failure.
    const since = database.outage?.since;
    const transaction = vi.spyOn(database, 'transaction');
    await until(() => transaction.mock.calls.length > 6);
    expect([since, database.outage?.since]).toEqual([expect.any(Number), since]);
    await database.transaction([{ sql: 'PRAGMA max_page_count = 100000' }]);
    await recording.records('', 1);
    await until(() => database.outage === undefined);
  });

  test('a database that is not reachable answers searches with status 503 and why', async () => {
    await using provider = await llmProvider();
    await using gate = await gateway(
      JSON.stringify({
        config: { database: { url: 'postgres://u:hunter22@127.0.0.1:1/db' } },
        ...llmSection(provider),
      }),
      { admin: true },
    );
    const reply = await send(`${gate.admin}/api/records`);
    expect(reply.status).toBe(503);
    expect(reply.text).toContain('127.0.0.1:1/db refuses connections');
    expect(reply.text).not.toContain('hunter22');
  });
});

describe('several writers of one file', () => {
  test('two gateways record into one SQLite file', async () => {
    await using provider = await llmProvider();
    await using one = await recordingGateway({ more: llmSection(provider) });
    const text = JSON.stringify({
      config: { adminAddr: 'off', database: { url: `sqlite://${one.folder}/data/requests.db` } },
      ...llmSection(provider),
    });
    await using two = await gateway(text, { limits: { recordDelay: 5 } });
    await Promise.all(Array.from({ length: 40 }, (_, index) => chat(index % 2 === 0 ? one.gate : two)));
    expect(await one.records('limit=100', 40)).toHaveLength(40);
    expect((await one.get('/api/usage')).total.requests).toBe(40);
  });

  test('workers record into one file, which the admin server of the first process reads', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const config = { database: { url: `sqlite://${folder.path}/requests.db` } };
    await using pool = await workerGateway({ config, ...llmSection(provider) });
    await Promise.all(Array.from({ length: 10 }, () => chat(pool)));
    await until(async () => {
      const { records } = (await (await fetch(`${pool.admin}/api/records`)).json()) as { records: unknown[] };
      return records.length === 10;
    });
  }, 60_000);
});

describe('the endpoints of the record', () => {
  test.each([
    ['/api/records?colour=red', 400, 'unknown parameter "colour": expected protocol,'],
    [
      '/api/records?status=teapot',
      400,
      'status is not one: expected a number such as 404, a class such as 5xx, error or refused',
    ],
    ['/api/records?limit=0', 400, 'limit is not a number from 1 to'],
    ['/api/records?after=x', 400, 'after is not the `next` of another page'],
    ['/api/records?since=yesterday', 400, 'since is not a duration: expected a number with a unit'],
    ['/api/records?since=1h&from=2026-10-01T00:00:00Z', 400, 'since and from cannot be used together'],
    ['/api/records?from=soon', 400, 'from is not a time: expected one such as 2026-10-01T12:00:00Z'],
    ['/api/records?key=a&key=b', 400, 'key is given more than once'],
    ['/api/records/none', 400, 'the id of a record is a number'],
    ['/api/records/77', 404, 'no record has this id'],
    ['/api/usage?by=colour', 400, 'by has the unknown value "colour": expected key, user,'],
  ])('answer %s with status %i and what is expected', async (path, status, text) => {
    shared ??= await recordingGateway({
      more: {
        gateways: { default: { port: 0, routes: [{ policies: { directResponse: { status: 200 } } }] } },
      },
    });
    const reply = await send(shared.gate.admin + path);
    expect({ status: reply.status, text: problemOf(reply.text) }).toEqual({
      status,
      text: expect.stringContaining(text),
    });
  });
  let shared: RecordingGateway | undefined;
  afterAll(() => shared?.[Symbol.asyncDispose]());
});
