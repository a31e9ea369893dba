import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openPostgresStore } from '../../../src/adapter/memory/postgres/open.ts';
import { MEMORY_STORE_LIMITS } from '../../../src/core/memory-limits.ts';
import { recordingLog } from '../../adapter/memory/recording-log.ts';
import { memoryBackend, type TestBackend } from '../../kit/memory-backend.ts';
import { networkPath } from '../../kit/network-path.ts';
import { until } from '../../kit/until.ts';
import { type OwnServer, ownServer, POSTGRES_PROGRAMS } from './own-server.ts';

const backendOn = async (url: string): Promise<TestBackend> =>
  memoryBackend({ store: await openPostgresStore({ url, log: recordingLog() }) });

/** A memory on a server of its own. */
async function scene() {
  const stack = new AsyncDisposableStack();
  const server = stack.use(await ownServer());
  const path = stack.use(await networkPath(server.port));
  const memory = stack.use(await backendOn(server.url(path.port)));
  return { server, path, memory, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const store = ({ post }: TestBackend, content: string) =>
  post('chat', { sessionId: 's', role: 'user', content });

const stored = async (server: OwnServer): Promise<unknown[]> =>
  (await server.run('SELECT content FROM memory_chat_history ORDER BY seq')).map(({ content }) => content);

describe.skipIf(POSTGRES_PROGRAMS === undefined)('faults of the PostgreSQL that the memory is in', () => {
  const { connect, statement } = MEMORY_STORE_LIMITS;
  // A busy machine takes seconds to accept a connection.
  beforeAll(() => void Object.assign(MEMORY_STORE_LIMITS, { connect: 4_000, statement: 1_000 }));
  afterAll(() => void Object.assign(MEMORY_STORE_LIMITS, { connect, statement }));

  test('a PostgreSQL that hangs is answered with 503 in a bounded time, and used again when it goes on', async () => {
    await using at = await scene();
    expect((await store(at.memory, 'first')).status).toBe(201);
    at.path.hang();
    const startedAt = performance.now();
    const refused = await store(at.memory, 'second');
    expect(refused).toMatchObject({ status: 503 });
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    at.path.resume();
    await until(async () => (await store(at.memory, 'third')).status === 201);
    expect(await stored(at.server)).toContain('third');
  });

  test('a PostgreSQL that crashes and starts again is used again, with everything that was acknowledged', async () => {
    await using at = await scene();
    expect((await store(at.memory, 'first')).status).toBe(201);
    at.server.kill();
    expect((await store(at.memory, 'second')).status).toBe(503);
    at.server.start();
    await until(async () => (await store(at.memory, 'third')).status === 201);
    expect(await stored(at.server)).toEqual(expect.arrayContaining(['first', 'third']));
  });

  test('after a failover the promoted server is used, also by connections to the old one that is read-only now', async () => {
    await using at = await scene();
    expect((await store(at.memory, 'first')).status).toBe(201);
    await using standby = at.server.standby();
    await until(async () => (await stored(standby)).length === 1);
    await at.server.run('ALTER SYSTEM SET default_transaction_read_only = on');
    await at.server.run('SELECT pg_reload_conf()');
    await until(async () => (await store(at.memory, 'lost')).status === 503);
    at.path.pointTo(standby.port);
    standby.promote();
    await until(async () => (await store(at.memory, 'second')).status === 201);
    expect(await stored(standby)).toContain('second');
  });

  test('a full disk is answered with 507, and turns are stored again when it has room', async () => {
    await using at = await scene();
    expect((await store(at.memory, 'first')).status).toBe(201);
    await at.server.run(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '53100'; END $$`);
    await at.server.run('CREATE TRIGGER fail BEFORE INSERT ON memory_chat_history EXECUTE FUNCTION fail()');
    expect((await store(at.memory, 'second')).status).toBe(507);
    await at.server.run('DROP FUNCTION fail CASCADE');
    expect((await store(at.memory, 'third')).status).toBe(201);
    expect(await stored(at.server)).toEqual(['first', 'third']);
  });

  test('a PostgreSQL that was emptied is answered with 503 and what to do, until the memory starts again', async () => {
    await using at = await scene();
    expect((await store(at.memory, 'first')).status).toBe(201);
    await at.server.run('DROP SCHEMA public CASCADE');
    await at.server.run('CREATE SCHEMA public');
    await at.server.run('CREATE EXTENSION vector');
    const refused = await store(at.memory, 'second');
    expect(refused.status).toBe(503);
    expect(JSON.stringify(refused.body)).toContain('its tables are gone');
    await using again = await backendOn(at.server.url());
    expect((await store(again, 'third')).status).toBe(201);
    expect((await store(at.memory, 'fourth')).status).toBe(201);
  });

  test('a memory does not start with a wrong password', async () => {
    await using server = await ownServer();
    const error = await backendOn(server.url().replace('correct', 'hunter2')).catch(
      (reason: unknown) => reason,
    );
    expect(String(error)).toContain('the password is wrong');
    expect(String(error)).not.toContain('hunter2');
  });
});
