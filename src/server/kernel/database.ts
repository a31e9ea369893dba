import { AppError } from '../../core/errors.ts';

/** A parameter or a column. Booleans are stored as 0 and 1, times as ms since 1970. Integers up to 2^53. */
export type SqlValue = string | number | Uint8Array | null;

export type SqlRow = Readonly<Record<string, SqlValue>>;

/**
 * One statement of both SQLite and PostgreSQL, with `?` for each parameter (and nowhere else). Sums of integers are read
 * as text, `CAST(sum(x) AS TEXT)`, because they may exceed 2^53.
 */
export interface Statement {
  readonly sql: string;
  readonly values?: readonly SqlValue[];
  /** Executes the statement once for each of these lists of parameters, instead of `values`. */
  readonly many?: readonly (readonly SqlValue[])[];
  /** If the statement returns and changes no row, the transaction is rolled back and `transaction` returns undefined. */
  readonly required?: true;
}

/** What one statement did. With `many`, of all its executions together. */
export interface StatementResult {
  readonly rows: readonly SqlRow[];
  /** Rows inserted, updated or deleted. */
  readonly changes: number;
}

/**
 * The database of `config.database`. Every process of a gateway has its own connections, and several gateways may use the
 * same database at once. Calls reject with an `AppError`: `database_unavailable` (gone, locked for too long, full, or too
 * many calls wait; `detail` has the reason), then nothing of the call was stored, unless it is an `UnknownCommit`.
 */
export interface Database {
  readonly kind: 'sqlite' | 'postgres';
  /** Reads. A slow read delays no transaction. It sees every transaction that has resolved. */
  query(sql: string, values?: readonly SqlValue[]): Promise<readonly SqlRow[]>;
  /**
   * Executes the statements in one transaction. Resolves after the commit, which survives the end of this process; after
   * a power failure, the last commits to SQLite may be missing.
   */
  transaction(statements: readonly Statement[]): Promise<readonly StatementResult[] | undefined>;
}

/** The connection was lost during a commit, and whether it was executed is not known yet. */
export class UnknownCommit extends AppError {
  /** Whether it was. Rejects while that is not known: to repeat the transaction could store it twice. */
  readonly isStored: () => Promise<boolean>;

  constructor(detail: string, isStored: () => Promise<boolean>, cause: unknown) {
    super('database_unavailable', { detail, cause });
    this.isStored = isStored;
  }
}

/** The tables of one feature. */
export interface DatabaseSchema {
  /** Never changed once released; its tables begin with `agctl_`. */
  readonly feature: string;
  /**
   * Scripts of statements that end with `;`, each from the preceding version to its own. What they do never changes once released.
   * Those of PostgreSQL pass over what is there already (`IF NOT EXISTS`): a restored dump of an earlier version has set the
   * versions back, and has left the tables in place that it does not know. Columns and unique keys are compared at each start.
   */
  readonly migrations: readonly { readonly sqlite: string; readonly postgres: string }[];
}
