import { setTimeout } from 'node:timers/promises';
import { AppError, detailOf, messageOf } from '../../core/errors.ts';
import type { Limits } from '../../core/limits.ts';
import { isAnswer, isUnanswered, sqlState } from '../../core/postgres-errors.ts';
import { type Client, createPool, type Pool } from '../../core/postgres-pool.ts';
import { repeated, SYNCHRONOUS_COMMIT, serverName, transaction } from '../../core/postgres-transaction.ts';
import { number, optionalText, type Row, RowError, rowsOf, text } from '../../core/sql-row.ts';
import type { DatabaseSchema, SqlRow, SqlValue, Statement, StatementResult } from '../kernel/database.ts';
import { clockDifference } from './clock.ts';
import { DatabaseError, type Driver } from './driver.ts';
import { TRANSACTION_ID, wasCommitted } from './lost-commit.ts';
import { CREATE_VERSIONS, missingMigrations, otherTables, SET_VERSION, VERSIONS } from './migrations.ts';
import { missingPart, statementsOf } from './postgres-tables.ts';

/** Key of the lock under which migrations run: "agctl" in ASCII. */
const MIGRATION_LOCK = 0x616763746c;
const UNDEFINED_TABLE = '42P01';
const INSUFFICIENT_PRIVILEGE = '42501';

/** The tables of a feature that were migrated. */
export interface Migrated {
  readonly feature: string;
  readonly from: number;
  readonly to: number;
}

/** What happens to the tables. */
export interface TableEvents {
  /** Called when the tables were gone and were created again. */
  onEmptied?(): void;
  /** Called after the commit, for each feature; not for a new database. */
  onMigrated?(change: Migrated): void;
}

export interface PostgresOptions extends TableEvents {
  readonly url: string;
  readonly connections: number;
  readonly schemas: readonly DatabaseSchema[];
  readonly limits: Limits;
  onLost(error: Error): void;
}

/** @throws DatabaseError */
export async function openPostgres(options: PostgresOptions): Promise<Driver> {
  const { url, connections, limits, schemas } = options;
  const pool = createPool({
    url,
    connections,
    connectTimeout: limits.databaseConnect,
    statementTimeout: limits.databaseStatement,
    name: 'agctl',
    setup: [SYNCHRONOUS_COMMIT],
    readsBigintAsNumber: true,
    onError: (error) => options.onLost(error),
  });
  return openPostgresOn(pool, serverName(url), schemas, limits, options);
}

/**
 * Connects as `openPostgres` does, and says whether rows can be written. Changes nothing. Returns how far the clock of this machine is
 * ahead of the server's, in ms. @throws DatabaseError
 */
export async function pingPostgres(url: string, limits: Limits): Promise<number | undefined> {
  const { databaseConnect: connectTimeout, databaseStatement: statementTimeout } = limits;
  const more = { name: 'agctl check', setup: [], readsBigintAsNumber: true, onError: () => undefined };
  const pool = createPool({ url, connections: 1, connectTimeout, statementTimeout, ...more });
  try {
    // Fails in a database that is read-only, such as a replica.
    return await transaction(pool, async (client) => {
      await client.query('SELECT txid_current()');
      return clockDifference(async (sql) => (await client.query(sql)).rows);
    });
  } catch (error) {
    throw openError(serverName(url), error);
  } finally {
    await pool.end().catch(() => undefined);
  }
}

/** The database on a pool, which it ends when it is closed or cannot be opened. `server` names it in messages. */
export async function openPostgresOn(
  pool: Pool,
  server: string,
  schemas: readonly DatabaseSchema[],
  limits: Limits,
  events: TableEvents = {},
): Promise<Driver> {
  const migrateTables = async (): Promise<void> => {
    const changes = await transaction(pool, (client) => migrate(client, server, schemas));
    for (const change of changes) events.onMigrated?.(change);
  };
  try {
    await migrateTables();
  } catch (error) {
    await pool.end().catch(() => undefined);
    throw openError(server, error);
  }
  /** Of all calls that find tables missing at once, one creates them. */
  let creating: Promise<void> | undefined;
  const createAgain = (): Promise<void> => {
    creating ??= migrateTables()
      .then(() => events.onEmptied?.())
      .finally(() => {
        creating = undefined;
      });
    return creating;
  };
  /** A database that was restored empty gets its tables again, as a SQLite file that was deleted does. */
  const withTables = async <T>(task: () => Promise<T>): Promise<T> => {
    try {
      return await task();
    } catch (error) {
      if (sqlState(error) !== UNDEFINED_TABLE) throw error;
      await createAgain();
      return task();
    }
  };
  let waiting = 0;
  /** The pool's own queue has no bound. */
  const bounded = async <T>(task: () => Promise<T>): Promise<T> => {
    if (waiting >= limits.databaseQueue)
      throw new AppError('database_unavailable', { detail: 'too many calls wait for the database' });
    waiting += 1;
    try {
      return await withTables(task);
    } catch (error) {
      throw callError(error);
    } finally {
      waiting -= 1;
    }
  };
  return {
    query: (sql, values) => bounded(async () => (await execute(pool, sql, values)).rows),
    transaction: (statements) => bounded(() => repeated(() => run(pool, statements))),
    // Calls that a server does not answer must not keep the process from ending.
    close: () => Promise.race([pool.end(), setTimeout(limits.databaseConnect, undefined, { ref: false })]),
  };
}

/** A transaction of which only the commit is missing. `id`: null if it has written nothing. */
interface Ended {
  readonly id: string | null;
  readonly results: readonly StatementResult[];
}

/** Thrown inside of a transaction to roll it back. */
class RequiredStatementFailed extends Error {}

async function run(
  pool: Pool,
  statements: readonly Statement[],
): Promise<readonly StatementResult[] | undefined> {
  let ended: Ended | undefined;
  try {
    return await transaction(pool, async (client) => {
      const results: StatementResult[] = [];
      for (const { sql, values, many, required } of statements) {
        const result =
          many === undefined ? await execute(client, sql, values) : await executeMany(client, sql, many);
        if (required && result.rows.length + result.changes === 0) throw new RequiredStatementFailed();
        results.push(result);
      }
      const [row] = rowsOf(await client.query(TRANSACTION_ID));
      ended = { id: row === undefined ? null : optionalText(row, 'id'), results };
      return results;
    });
  } catch (error) {
    if (error instanceof RequiredStatementFailed) return undefined;
    // Without an id, nothing was written.
    if (ended === undefined || ended.id === null) throw error;
    if (await wasCommitted(pool, ended.id, error)) return ended.results;
    throw error;
  }
}

async function executeMany(
  client: Client,
  sql: string,
  many: readonly (readonly SqlValue[])[],
): Promise<StatementResult> {
  let changes = 0;
  for (const values of many) changes += (await execute(client, sql, values)).changes;
  return { rows: [], changes };
}

async function execute(
  connection: Pick<Pool, 'query'>,
  sql: string,
  values: readonly SqlValue[] = [],
): Promise<StatementResult> {
  let count = 0;
  const numbered = sql.replaceAll('?', () => `$${++count}`);
  const result = await connection.query(numbered, [...values]);
  const rows = rowsOf(result).map(plainRow);
  return { rows, changes: result.rowCount ?? rows.length };
}

/** `pg` returns a bigint as text, PGlite as BigInt if it is large. */
function plainRow(row: Row): SqlRow {
  const plain: Record<string, SqlValue> = {};
  for (const [column, value] of Object.entries(row)) {
    if (typeof value === 'bigint') plain[column] = Number(value);
    else if (typeof value === 'boolean') plain[column] = value ? 1 : 0;
    else if (isSqlValue(value)) plain[column] = value;
    else throw new RowError(`column ${column} of the database has a type that agctl does not use`);
  }
  return plain;
}

const isSqlValue = (value: unknown): value is SqlValue =>
  value === null || typeof value === 'string' || typeof value === 'number' || value instanceof Uint8Array;

async function migrate(
  client: Client,
  server: string,
  schemas: readonly DatabaseSchema[],
): Promise<readonly Migrated[]> {
  // Until the transaction ends: of several gateways that start at once, one migrates and the others wait.
  await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
  await client.query(CREATE_VERSIONS);
  const versions = rowsOf(await client.query(`SELECT feature, version FROM ${VERSIONS}`));
  const known = new Map(versions.map((row) => [text(row, 'feature'), number(row, 'version')]));
  const to = new Map<string, number>();
  const problem = (feature: string, version: number): string =>
    `${server}: the tables of \`${feature}\` cannot be migrated to version ${version}`;
  for (const { feature, version, script } of missingMigrations(server, 'postgres', schemas, known)) {
    for (const statement of statementsOf(script))
      await client.query(statement).catch((error: unknown) => {
        throw migrationError(error, problem(feature, version));
      });
    await execute(client, SET_VERSION, [feature, version]);
    to.set(feature, version);
  }
  for (const schema of schemas) {
    const missing = await missingPart(client, schema);
    if (missing !== undefined) throw foreignTables(otherTables(server, schema), missing);
  }
  if (known.size === 0) return [];
  return [...to].map(([feature, version]) => ({ feature, from: known.get(feature) ?? 0, to: version }));
}

/** Errors about tables, columns and rows (classes 42 and 23), except of rights, say that the tables are other ones. */
function migrationError(error: unknown, problem: string): unknown {
  const state = sqlState(error);
  if (!/^(?:23|42)/.test(state) || state === INSUFFICIENT_PRIVILEGE) return error;
  return foreignTables(problem, messageOf(error).slice(0, SAID), error);
}

function foreignTables(problem: string, why: string, cause?: unknown): DatabaseError {
  return new DatabaseError(
    `${problem} (${why})`,
    'nothing has changed. The tables are not those that agctl has made: restore a dump (docs/upgrades.md), or name another database',
    { cause },
  );
}

/** Characters of a message of the server. */
const SAID = 200;

/**
 * Classes of SQLSTATE (postgresql.org/docs/current/errcodes-appendix.html) whose messages name tables, columns and
 * constraints, or say how the server is. Those of class 22 (data) and P0 (raised by functions) quote values.
 */
const WITHOUT_VALUES = /^(?:08|23|25|40|42|53|54|55|57|58|XX)/;

function callError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const state = sqlState(error);
  const detail = isAnswer(error)
    ? (DETAILS.get(state) ?? serverError(state, error))
    : isUnanswered(error)
      ? 'PostgreSQL does not answer'
      : messageOf(error);
  return new AppError('database_unavailable', { detail, cause: error });
}

function serverError(state: string, error: unknown): string {
  const code = `PostgreSQL error ${state}`;
  return WITHOUT_VALUES.test(state) ? `${code}: ${messageOf(error).slice(0, SAID)}` : code;
}

const DETAILS: ReadonlyMap<string, string> = new Map([
  ['25006', 'the database is read-only'],
  ['28000', 'PostgreSQL rejects the user'],
  ['28P01', 'PostgreSQL rejects the password'],
  ['3D000', 'the database does not exist'],
  ['53100', 'the disk is full'],
  ['53300', 'PostgreSQL has no connection left'],
  ['57014', 'a statement took too long'],
  ['57P01', 'PostgreSQL is shutting down'],
  ['57P03', 'PostgreSQL is starting up'],
]);

function openError(server: string, error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  const code = sqlState(error);
  const [reason, help] = OPEN_PROBLEMS.get(code) ??
    DRIVER_PROBLEMS.find(([said]) => said.test(messageOf(error)))?.[1] ?? [
      `cannot be used (${detailOf(error)})`,
      code === 'ENOENT'
        ? 'correct the path in `url`, such as that of `sslrootcert`'
        : "check the URL and the server's log",
    ];
  // Without an SQLSTATE the server did not answer.
  const isTransient = !/^[0-9A-Z]{5}$/.test(code) || TRANSIENT.has(code);
  return new DatabaseError(`${server} ${reason}`, help, { isTransient, cause: error });
}

const TRANSIENT = new Set(['57P01', '57P02', '57P03', '53300', 'EPIPE']);

type OpenProblem = readonly [reason: string, help: string];

const UNTRUSTED: OpenProblem = [
  'has a TLS certificate of an unknown authority',
  'add the certificate of that authority to `url`: `?sslmode=verify-full&sslrootcert=/path/to/authority.crt`',
];

const TIMED_OUT: OpenProblem = [
  'does not answer',
  'correct host and port of `url`, or let connections through the firewall',
];

/** By SQLSTATE, or by the codes of Node.js for connections and TLS (nodejs.org/api/tls.html, "X509 certificate error codes"). */
const OPEN_PROBLEMS: ReadonlyMap<string, OpenProblem> = new Map<string, OpenProblem>([
  ['SELF_SIGNED_CERT_IN_CHAIN', UNTRUSTED],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNTRUSTED],
  ['UNABLE_TO_GET_ISSUER_CERT', UNTRUSTED],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNTRUSTED],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNTRUSTED],
  ['CERT_HAS_EXPIRED', ['has a TLS certificate that has expired', 'renew the certificate of the server']],
  [
    'ERR_TLS_CERT_ALTNAME_INVALID',
    ['has a TLS certificate for another host', 'write the host in `url` as the certificate names it'],
  ],
  ['ETIMEDOUT', TIMED_OUT],
  ['EHOSTUNREACH', TIMED_OUT],
  ['ENETUNREACH', TIMED_OUT],
  ['ECONNREFUSED', ['refuses connections', 'start it, or correct host and port of `url`']],
  ['ENOTFOUND', ['cannot be found: the host is unknown', 'correct the host of `url`']],
  ['EAI_AGAIN', ['cannot be found: DNS does not answer', 'correct the host of `url`, or try again']],
  ['28P01', ['rejects the password', 'correct user and password of `url`']],
  [
    '28000',
    [
      'rejects the user',
      'correct the user of `url`, add `?sslmode=verify-full` if the server wants TLS, or correct its pg_hba.conf',
    ],
  ],
  ['3D000', ['does not exist', 'create the database (createdb), or correct its name in `url`']],
  [INSUFFICIENT_PRIVILEGE, ['does not let the user create tables', 'grant CREATE on its schema to the user']],
  ['57P03', ['is starting up', 'wait for it']],
  ['53300', ['has no connection left', 'raise max_connections of the server, or lower `maxConnections`']],
]);

/** Errors of `pg` without a code. */
const DRIVER_PROBLEMS: readonly (readonly [said: RegExp, problem: OpenProblem])[] = [
  [
    /does not support SSL/,
    ['does not offer TLS', 'turn on `ssl` of the server, or remove `sslmode` from `url`'],
  ],
  [
    /password must be a (?:non-empty )?string/,
    ['asks for a password', 'write it in `url`: `postgres://user:password@host:5432/database`'],
  ],
  [/^timeout e|connection timeout/, TIMED_OUT],
  [
    /^Connection terminated unexpectedly/,
    ['ends the connection', 'correct host and port of `url`: another service may listen there'],
  ],
];
