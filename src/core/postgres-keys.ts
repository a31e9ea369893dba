import type { Connection } from './postgres-pool.ts';
import { rowsOf, text } from './sql-row.ts';

// Without --exit-on-error, `pg_restore` continues if it cannot create a key. Every upsert then fails with "there is no unique or exclusion
// constraint matching the ON CONFLICT specification".

const CREATED_TABLE = /^\s*CREATE TABLE (?:IF NOT EXISTS )?([a-z_]+)/;
/** Of one column, or with a list of columns. */
const KEY =
  /[(,]\s*(?:([a-z_]+) [^(),]*(?:PRIMARY KEY|UNIQUE)\s*(?=[,)])|(?:PRIMARY KEY|UNIQUE) \(([^)]+)\))/g;
const UNIQUE_INDEX =
  /^\s*CREATE UNIQUE INDEX (?:IF NOT EXISTS )?[a-z_]+ ON ([a-z_]+) \(([^)]+)\)(?:\s+WHERE (.+))?$/;

/** Those that ON CONFLICT can use: not of expressions, and checked at once. The columns that an index only includes are left out. */
const KEYS = `SELECT string_agg(attname, ', ') AS columns, coalesce(pg_get_expr(indpred, indrelid), '') AS part
FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY ((indkey::int2[])[0:indnkeyatts - 1])
WHERE indrelid = to_regclass($1) AND indisunique AND indisvalid AND indimmediate AND indexprs IS NULL
GROUP BY indexrelid, indrelid, indpred`;

/** By table: the unique keys that statements create, as `keyText` writes them. */
export function keysCreatedBy(statements: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const keys = new Map<string, Set<string>>();
  const add = (table: string, key: string): void => {
    keys.set(table, (keys.get(table) ?? new Set()).add(key));
  };
  for (const statement of statements) {
    const [, indexed, list = '', condition] = UNIQUE_INDEX.exec(statement) ?? [];
    if (indexed !== undefined) add(indexed, keyText(list, condition === undefined ? '' : `(${condition})`));
    const table = CREATED_TABLE.exec(statement)?.[1];
    if (table === undefined) continue;
    for (const [, column = '', several = column] of statement.matchAll(KEY)) add(table, keyText(several, ''));
  }
  return keys;
}

/** The first of these unique keys that a database lacks, with its table; undefined if it has all. */
export async function missingKey(
  client: Pick<Connection, 'query'>,
  expected: ReadonlyMap<string, ReadonlySet<string>>,
): Promise<string | undefined> {
  for (const [table, keys] of expected) {
    const present = rowsOf(await client.query(KEYS, [table])).map((row) =>
      keyText(text(row, 'columns'), text(row, 'part')),
    );
    const missing = [...keys].find((key) => !present.includes(key));
    if (missing !== undefined) return `the table ${table} has no unique key ${missing}`;
  }
  return undefined;
}

/**
 * The columns of a key, in alphabetical order because ON CONFLICT knows none, and the condition of a partial one, in parentheses as
 * PostgreSQL shows it, or empty.
 */
export function keyText(columns: string, condition: string): string {
  const sorted = columns.split(', ').toSorted().join(', ');
  return condition === '' ? `(${sorted})` : `(${sorted}) WHERE ${condition}`;
}
