import { createHash } from 'node:crypto';
import { AppError } from '../../../core/errors.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { number, RowError, rowsOf, text } from '../../../core/sql-row.ts';
import { DEFAULT_NAMESPACE } from '../../namespace.ts';
import type { NamespaceSize } from '../store.ts';
import type { Client, Pool } from './connection.ts';
import { PostgresEngine } from './engine.ts';
import { lockSchema, migrateTables } from './schema.ts';
import { inSchema } from './schema-connection.ts';

/** Where a namespace keeps its tables. */
export interface Tables {
  /** Undefined for `default`, whose tables are in the first schema of the search path. */
  readonly schema: string | undefined;
  /** For reading. */
  readonly engine: PostgresEngine;
}

/** Runs statements in one transaction. */
export type Transaction = <T>(task: (client: Client) => Promise<T>) => Promise<T>;

/**
 * The schemas of the namespaces. The table `memory_namespaces` lists them; it is changed in the transaction that creates
 * or drops a schema, by any backend on the database.
 */
export class PostgresNamespaces {
  readonly #pool: Pool;
  readonly #server: string;
  readonly #transaction: Transaction;
  readonly #known = new Map<string, Tables>();
  readonly #default: Tables;

  /** @param server names it in messages */
  constructor(pool: Pool, server: string, transaction: Transaction) {
    this.#pool = pool;
    this.#server = server;
    this.#transaction = transaction;
    this.#default = { schema: undefined, engine: new PostgresEngine(pool.prepared ?? pool) };
  }

  /** Undefined if the namespace does not exist. Tables of an older version are migrated first. */
  async existing(name: string): Promise<Tables | undefined> {
    if (name === DEFAULT_NAMESPACE) return this.#default;
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const { rows } = await this.#pool.query('SELECT name FROM memory_namespaces WHERE name = $1', [name]);
    if (rows.length === 0) return undefined;
    const schema = await this.#transaction(async (client) => {
      await lockSchema(client);
      const listed = await schemaOf(client, name);
      if (listed !== undefined) await migrateIn(client, listed, this.#server);
      return listed;
    });
    return schema === undefined ? undefined : this.#remember(name, schema);
  }

  /** Creates the namespace, unless another backend was faster. Throws `memory_full` if there are too many. */
  async created(name: string): Promise<Tables> {
    const schema = await this.#transaction(async (client) => {
      await lockSchema(client);
      const listed = await schemaOf(client, name);
      if (listed !== undefined) return listed;
      const [row = {}] = rowsOf(
        await client.query(
          'SELECT current_schema() AS home, (SELECT count(*) FROM memory_namespaces) AS count',
        ),
      );
      // `default` is not listed.
      if (number(row, 'count') + 1 >= MEMORY_STORE_LIMITS.namespaces) throw tooMany();
      const made = schemaName(text(row, 'home'), name);
      await client.query(`CREATE SCHEMA ${made}`);
      await client.query('INSERT INTO memory_namespaces (name, schema_name) VALUES ($1, $2)', [name, made]);
      await migrateIn(client, made, this.#server);
      return made;
    });
    return this.#remember(name, schema);
  }

  #remember(name: string, schema: string): Tables {
    const reading = inSchema(this.#pool.prepared ?? this.#pool, schema);
    const tables = { schema, engine: new PostgresEngine(reading) };
    this.#known.set(name, tables);
    return tables;
  }

  /** After a statement found no such schema or table: another backend has deleted the namespace. */
  forget(name: string): void {
    this.#known.delete(name);
  }

  async remove(name: string): Promise<boolean> {
    if (name === DEFAULT_NAMESPACE) return false;
    this.#known.delete(name);
    return this.#transaction(async (client) => {
      await lockSchema(client);
      const schema = await schemaOf(client, name);
      if (schema === undefined) return false;
      await client.query('DELETE FROM memory_namespaces WHERE name = $1', [name]);
      await client.query(`DROP SCHEMA ${schema} CASCADE`);
      return true;
    });
  }

  async list({
    limit,
    cursor = '',
  }: {
    readonly limit: number;
    readonly cursor?: string | undefined;
  }): Promise<{
    readonly namespaces: NamespaceSize[];
    readonly nextCursor: string | null;
  }> {
    const result = await this.#pool.query(
      `SELECT name, (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class AS c
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
         WHERE c.relkind = 'r' AND n.nspname = schema_name) AS bytes
       FROM memory_namespaces WHERE name > $1 ORDER BY name LIMIT $2`,
      [cursor, limit + 1],
    );
    const listed = rowsOf(result).map((row) => ({ name: text(row, 'name'), bytes: number(row, 'bytes') }));
    if (DEFAULT_NAMESPACE > cursor)
      listed.push({ name: DEFAULT_NAMESPACE, bytes: await this.#default.engine.bytes() });
    listed.sort((a, b) => (a.name < b.name ? -1 : 1));
    const namespaces = listed.slice(0, limit);
    return { namespaces, nextCursor: listed.length > limit ? (namespaces.at(-1)?.name ?? null) : null };
  }
}

async function schemaOf(client: Client, name: string): Promise<string | undefined> {
  const [row] = rowsOf(
    await client.query('SELECT schema_name FROM memory_namespaces WHERE name = $1', [name]),
  );
  if (row === undefined) return undefined;
  const schema = text(row, 'schema_name');
  // It becomes part of statements, without quotes.
  if (!SCHEMA_NAME.test(schema))
    throw new RowError('column schema_name of the database contains no name that agctl gives');
  return schema;
}

const SCHEMA_NAME = /^agctl_memory_[0-9a-f]{32}$/;

/**
 * Name of the schema of a namespace: hexadecimal, because identifiers have at most 63 bytes and namespaces any
 * characters. It depends on the schema of `default`, so that two memories may share a database.
 */
function schemaName(home: string, namespace: string): string {
  const hash = createHash('sha256').update(`${home}\n${namespace}`).digest('hex');
  return `agctl_memory_${hash.slice(0, 32)}`;
}

/** Creates or migrates the tables of one schema. The others stay visible, because one of them has the type `vector`. */
async function migrateIn(client: Client, schema: string, server: string): Promise<void> {
  await client.query(`SELECT set_config('search_path', $1 || ', ' || current_setting('search_path'), true)`, [
    schema,
  ]);
  await migrateTables(client, server);
}

function tooMany(): AppError {
  return new AppError('memory_full', {
    message:
      `the memory store has ${MEMORY_STORE_LIMITS.namespaces} namespaces, the maximum: nothing was stored; delete ` +
      'namespaces that are not used (DELETE /api/memory/namespaces/NAME)',
  });
}
