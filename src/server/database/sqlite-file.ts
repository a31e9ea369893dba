import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { makeFolder } from '../../core/make-folder.ts';
import { createPrivateDatabase } from '../../core/private-files.ts';
import { RESULT, resultCode } from '../../core/sqlite-result.ts';
import type { DatabaseSchema, SqlRow, Statement, StatementResult } from '../kernel/database.ts';
import { DatabaseError } from './driver.ts';
import { CREATE_VERSIONS, missingMigrations, otherTables, SET_VERSION, VERSIONS } from './migrations.ts';
import { backUp, type LogLine, versionsIn } from './sqlite-backup.ts';
import { missingPart } from './sqlite-tables.ts';

export interface SqliteFileOptions {
  readonly path: string;
  readonly mustExist: boolean;
  /** For queries only: the file exists and has its tables. */
  readonly isReader: boolean;
  readonly schemas: readonly DatabaseSchema[];
  /** How long to wait for other processes that write, in ms. */
  readonly lockTimeout: number;
  /** How many copies from before migrations are kept beside the file; 0 makes and removes none. */
  readonly backups: number;
}

interface Prepared {
  readonly statement: StatementSync;
  readonly returnsRows: boolean;
}

/** An open SQLite file, which other processes and threads may have open too. All calls are synchronous. */
export class SqliteFile {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #inode: bigint | undefined;
  readonly #statements = new Map<string, Prepared>();

  /** `log` gets what is done with copies from before migrations. @throws DatabaseError */
  constructor(options: SqliteFileOptions, log: LogLine = () => undefined) {
    const { path, isReader, lockTimeout } = options;
    this.#path = path;
    let database: DatabaseSync | undefined;
    try {
      if (!isReader) createFile(options);
      database = new DatabaseSync(path, { timeout: lockTimeout, readOnly: isReader });
      if (!isReader) prepare(database, options, log);
    } catch (error) {
      if (database?.isOpen) database.close();
      throw openError(path, error);
    }
    this.#database = database;
    this.#inode = inodeOf(path);
  }

  /** Whether the file at the path is another one than that which is open: it was deleted or replaced. */
  get isReplaced(): boolean {
    return inodeOf(this.#path) !== this.#inode;
  }

  query({ sql, values = [] }: Statement): readonly SqlRow[] {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- integers are read as numbers, not as BigInt
    return this.#prepared(sql).statement.all(...values) as unknown as SqlRow[];
  }

  /** Undefined if a required statement did nothing. */
  transaction(statements: readonly Statement[]): readonly StatementResult[] | undefined {
    this.#prepared('BEGIN IMMEDIATE').statement.run();
    try {
      const results: StatementResult[] = [];
      for (const statement of statements) {
        const result = this.#execute(statement);
        if (statement.required && result.rows.length + result.changes === 0) {
          this.#database.exec('ROLLBACK');
          return undefined;
        }
        results.push(result);
      }
      this.#prepared('COMMIT').statement.run();
      return results;
    } catch (error) {
      // Some errors, such as that of a full disk, have ended the transaction already.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }

  #execute({ sql, values = [], many }: Statement): StatementResult {
    const { statement, returnsRows } = this.#prepared(sql);
    if (many !== undefined) {
      let changes = 0;
      for (const each of many) changes += Number(statement.run(...each).changes);
      return { rows: [], changes };
    }
    if (!returnsRows) return { rows: [], changes: Number(statement.run(...values).changes) };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- integers are read as numbers, not as BigInt
    const rows = statement.all(...values) as unknown as SqlRow[];
    return { rows, changes: rows.length };
  }

  #prepared(sql: string): Prepared {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    if (this.#statements.size >= LIMITS.databaseStatements) this.#statements.clear();
    const statement = this.#database.prepare(sql);
    const returnsRows = statement.columns().length > 0;
    // The last rowid that `run` returns may exceed 2^53: an index of words has rows of its own.
    if (!returnsRows) statement.setReadBigInts(true);
    const prepared = { statement, returnsRows };
    this.#statements.set(sql, prepared);
    return prepared;
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }
}

function createFile({ path, mustExist }: SqliteFileOptions): void {
  if (mustExist && !existsSync(path))
    throw new DatabaseError(
      `${path} does not exist`,
      'correct the path, or remove `mode=rw`: then the file is created',
    );
  makeFolder(dirname(path), 0o700);
  createPrivateDatabase(path);
}

function prepare(database: DatabaseSync, { path, schemas, backups }: SqliteFileOptions, log: LogLine): void {
  // Only a statement that writes detects a read-only file: in one, `BEGIN IMMEDIATE` only reads.
  database.exec('BEGIN IMMEDIATE; PRAGMA user_version = 1; ROLLBACK');
  const mode = Object.values(database.prepare('PRAGMA journal_mode = WAL').get() ?? {})[0];
  if (mode !== 'wal')
    throw new DatabaseError(
      `${path}: the file system does not support a write-ahead log (mode ${mode})`,
      'put the file on a local disk, or use PostgreSQL',
    );
  // NORMAL: a commit needs no flush, and survives the end of the process (sqlite.org/pragma.html#pragma_synchronous).
  database.exec('PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY');
  // 16 MiB of cache, and of log before it is written back: indexes of a million rows are changed at many places.
  database.exec('PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 4000');
  // What retention deletes is overwritten with zeros.
  database.exec('PRAGMA secure_delete = ON');
  // Not in the transaction, which may not copy. Only what is migrated is copied, not what is created.
  const before = backups > 0 ? versionsIn(database) : undefined;
  if (before !== undefined && missingMigrations(path, 'sqlite', schemas, before).length > 0) {
    const copy = copyBefore(database, path, before, backups, log);
    if (copy !== undefined)
      log('the tables of the database are to be migrated; it was copied before', { file: path, copy });
  }
  database.exec('BEGIN IMMEDIATE');
  try {
    const tables = database
      .prepare('SELECT name FROM sqlite_schema')
      .all()
      .map(({ name }) => name);
    if (tables.length > 0 && !tables.includes(VERSIONS))
      throw new DatabaseError(`${path} is a database of another program`, 'name another file');
    database.exec(CREATE_VERSIONS);
    const known = versionsIn(database) ?? new Map<string, number>();
    for (const { feature, version, script } of missingMigrations(path, 'sqlite', schemas, known)) {
      migrate(
        database,
        script,
        `${path}: the tables of \`${feature}\` cannot be migrated to version ${version}`,
      );
      database.prepare(SET_VERSION).run(feature, version);
    }
    for (const schema of schemas) {
      const missing = missingPart(database, schema);
      if (missing !== undefined) throw foreignTables(otherTables(path, schema), missing);
    }
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** Errors of the disk or of other processes are not those of the migration. */
function migrate(database: DatabaseSync, script: string, problem: string): void {
  try {
    database.exec(script);
  } catch (error) {
    if (OPEN_PROBLEMS.has(resultCode(error))) throw error;
    throw foreignTables(problem, messageOf(error), error);
  }
}

function foreignTables(problem: string, why: string, cause?: unknown): DatabaseError {
  return new DatabaseError(
    `${problem} (${why})`,
    'nothing has changed. The tables are not those that agctl has made: restore a copy with `agctl database restore`, or start the earlier version again',
    { cause },
  );
}

function copyBefore(...of: Parameters<typeof backUp>): string | undefined {
  try {
    return backUp(...of);
  } catch (error) {
    const [, path] = of;
    throw new DatabaseError(
      `${path} is to be migrated, and cannot be copied before (${messageOf(error)})`,
      'make room beside it, or copy it yourself and set `config.database.backups: 0`',
      { cause: error },
    );
  }
}

function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}

function openError(path: string, error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  const [reason, help] = OPEN_PROBLEMS.get(resultCode(error)) ?? [
    `cannot be opened (${messageOf(error)})`,
    'correct the path, or name another file',
  ];
  return new DatabaseError(`${path} ${reason}`, help, { cause: error });
}

const OPEN_PROBLEMS: ReadonlyMap<number | undefined, readonly [reason: string, help: string]> = new Map([
  [RESULT.full, ['cannot be written: the disk is full', 'free space on the disk']],
  [RESULT.readonly, ['cannot be written', 'allow this user to write the file and its folder']],
  [
    RESULT.cantopen,
    ['cannot be opened', 'the folder must exist, and this user must be able to read and write it'],
  ],
  [RESULT.notadb, ['is not a SQLite database', 'name another file']],
  [
    RESULT.corrupt,
    ['is damaged', 'restore it from a backup, or move it and the files beside it (-wal, -shm) away'],
  ],
  [RESULT.ioerr, ['cannot be read: the disk failed', 'check the disk']],
  [RESULT.busy, ['is locked by another program', 'stop the program that has it open, or name another file']],
]);
