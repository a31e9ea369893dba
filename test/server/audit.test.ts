import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../src/core/limits.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { Audit } from '../../src/server/audit/audit.ts';
import type { AuditEvent } from '../../src/server/audit/event.ts';
import { auditSchema } from '../../src/server/audit/schema.ts';
import { openPostgresOn } from '../../src/server/database/postgres.ts';
import { openSqlite } from '../../src/server/database/sqlite.ts';
import type { Database } from '../../src/server/kernel/database.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { pgliteServer } from '../kit/pglite-pool.ts';
import { until } from '../kit/until.ts';

// One server for all: to compile PostgreSQL takes a second of CPU time.
let server: Awaited<ReturnType<typeof pgliteServer>>;
beforeAll(async () => {
  server = await pgliteServer();
}, 120_000);
afterAll(() => server.close());

async function opened(
  kind: 'sqlite' | 'postgres',
  schemas = [auditSchema],
): Promise<Database & AsyncDisposable> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'agctl.db');
  const driver =
    kind === 'sqlite'
      ? await openSqlite({ path, mustExist: false, schemas, log: SILENT_LOG, limits: LIMITS })
      : await openPostgresOn(server.pool(), 'PGlite', schemas, LIMITS);
  return {
    kind,
    query: (sql, values) => driver.query(sql, values),
    transaction: (statements) => driver.transaction(statements),
    [Symbol.asyncDispose]: async () => {
      await driver.close();
      await folder.remove();
      if (kind === 'postgres') await server.empty();
    },
  };
}

const auditOn = (database: Database, more: Partial<ConstructorParameters<typeof Audit>[0]> = {}): Audit =>
  new Audit({
    log: SILENT_LOG,
    file: undefined,
    database,
    gateway: undefined,
    retention: undefined,
    limits: LIMITS,
    failed: () => undefined,
    ...more,
  });

const ALL = { from: 0, to: Number.MAX_SAFE_INTEGER, limit: 100 };

describe.each(['sqlite', 'postgres'] as const)('events in %s', (kind) => {
  test('an event is read as it was written, whatever is in its texts', async () => {
    await using database = await opened(kind);
    const audit = auditOn(database, { gateway: 'web-1/7 0.2.0' });
    const full: Omit<AuditEvent, 'time' | 'gateway'> = {
      action: 'key.create',
      outcome: 'refused',
      actor: {
        kind: 'subject',
        name: "ann'; DROP TABLE agctl_audit; --",
        issuer: 'https://a/?',
        role: 'viewer',
      },
      from: { address: '2001:db8::1', proxy: '10.0.0.5' },
      target: 'a\nb\u0000c\ud800',
      before: 'a'.repeat(64),
      after: 'b'.repeat(64),
      detail: '? ?',
    };
    expect(await audit.record(full)).toEqual([]);
    expect(await audit.record({ action: 'shutdown', outcome: 'done', actor: { kind: 'signal' } })).toEqual(
      [],
    );
    const { events } = await audit.list(ALL);
    expect(events.map(({ action }) => action)).toEqual(['shutdown', 'key.create']);
    expect(events[1]).toEqual({
      ...full,
      gateway: 'web-1/7 0.2.0',
      time: expect.any(Number),
      target: 'a\nb\\0c\ufffd',
    });
    expect(events[0]?.from).toBeUndefined();
    // What a later version writes.
    await database.transaction([
      { sql: 'UPDATE agctl_audit SET outcome = ?, actor_kind = ?', values: ['postponed', 'robot'] },
    ]);
    expect((await audit.list(ALL)).events[0]).toMatchObject({
      outcome: 'unknown',
      actor: { kind: 'unknown' },
    });
  });

  test('a command writes and reads events in tables of the first version', async () => {
    const first = { ...auditSchema, migrations: auditSchema.migrations.slice(0, 1) };
    await using database = await opened(kind, [first]);
    const audit = auditOn(database);
    const event = { action: 'database.restore', outcome: 'done', actor: { kind: 'local' } } as const;
    expect(await audit.record(event)).toEqual([]);
    expect((await audit.list(ALL)).events).toMatchObject([event]);
  });

  test('pages of two processes that write at the same time have every event once', async () => {
    await using database = await opened(kind);
    const audits = [auditOn(database), auditOn(database)];
    const names = Array.from({ length: 30 }, (_, index) => `k${index}`);
    await Promise.all(
      names.map((target, index) =>
        audits[index % 2]?.record({
          action: 'key.create',
          outcome: 'done',
          actor: { kind: 'local' },
          target,
        }),
      ),
    );
    const seen: (string | undefined)[] = [];
    let after: number | undefined;
    do {
      const page = await (audits[0] as Audit).list({ ...ALL, limit: 7, after });
      seen.push(...page.events.map(({ target }) => target));
      after = page.next;
    } while (after !== undefined);
    expect(seen.toSorted()).toEqual(names.toSorted());
  });

  test('old events are deleted, and the others are kept', async () => {
    await using database = await opened(kind);
    const writer = auditOn(database);
    for (const target of ['a', 'b'])
      await writer.record({ action: 'key.create', outcome: 'done', actor: { kind: 'local' }, target });
    await database.transaction([{ sql: `UPDATE agctl_audit SET time = 1 WHERE target = 'a'` }]);
    const audit = auditOn(database, {
      retention: 3_600_000,
      limits: { ...LIMITS, auditExpiryInterval: 20, recordExpiryBatch: 1 },
    });
    await until(async () => (await audit.list(ALL)).events.length === 1);
    expect((await audit.list(ALL)).events[0]?.target).toBe('b');
    await audit.close();
  });
});
