import type { Client } from '../../core/postgres-pool.ts';
import { rowsOf, text } from '../../core/sql-row.ts';
import type { DatabaseSchema } from '../kernel/database.ts';

const CHANGED_TABLE = /^\s*(?:CREATE|ALTER) TABLE (?:IF NOT EXISTS )?([a-z_]+)/;
/** A name in lower case and a type in upper case. Lists of columns, as that of PRIMARY KEY, have no types. */
const COLUMN = /(?:[(,]|ADD COLUMN(?: IF NOT EXISTS)?)\s*([a-z_]+) ([A-Z]+)/g;
/** Of one column, or with a list of columns. */
const KEY =
  /[(,]\s*(?:([a-z_]+) [A-Z ]+ (?:PRIMARY KEY|UNIQUE)\s*(?=[,)])|(?:PRIMARY KEY|UNIQUE) \(([^)]+)\))/g;
const UNIQUE_INDEX =
  /^\s*CREATE UNIQUE INDEX (?:IF NOT EXISTS )?[a-z_]+ ON ([a-z_]+) \(([^)]+)\)(?: WHERE (.+))?$/;

const COLUMNS = `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`;

/** Those that ON CONFLICT can use: not of expressions, and checked at once. The columns that an index only includes are left out. */
const KEYS = `SELECT string_agg(attname, ', ') AS columns, coalesce(pg_get_expr(indpred, indrelid), '') AS part
FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY ((indkey::int2[])[0:indnkeyatts - 1])
WHERE indrelid = to_regclass($1) AND indisunique AND indisvalid AND indimmediate AND indexprs IS NULL
GROUP BY indexrelid, indrelid, indpred`;

/** The statements of a script. PGlite executes one per call. */
export const statementsOf = (script: string): readonly string[] =>
  script.split(/;\s*\n/).filter((statement) => statement.trim() !== '');

/**
 * What a database lacks of the columns and unique keys that the scripts of a feature create. Those take a table of that name for the
 * one of a restored dump (`IF NOT EXISTS`), so a table of another program shows here; and `pg_restore` goes on after a key that it
 * could not create. Undefined if nothing is missing.
 */
export async function missingPart(client: Client, schema: DatabaseSchema): Promise<string | undefined> {
  for (const [table, { columns, keys }] of tablesOf(schema)) {
    const present = rowsOf(await client.query(COLUMNS, [table]));
    const types = new Map(present.map((row) => [text(row, 'name'), text(row, 'type')]));
    for (const [column, type] of columns)
      if (types.get(column) !== type)
        return `the table ${table} has no column ${column} with the type ${type}`;
    const unique = rowsOf(await client.query(KEYS, [table])).map((row) =>
      keyText(text(row, 'columns'), text(row, 'part')),
    );
    const missing = [...keys].find((key) => !unique.includes(key));
    if (missing !== undefined) return `the table ${table} has no unique key ${missing}`;
  }
  return undefined;
}

interface ExpectedTable {
  /** Types by name. */
  readonly columns: ReadonlyMap<string, string>;
  /** As `keyText` writes them. */
  readonly keys: ReadonlySet<string>;
}

/** By table: what the scripts of all versions create or add; none drops any. */
export function tablesOf({ migrations }: DatabaseSchema): ReadonlyMap<string, ExpectedTable> {
  const tables = new Map<string, { columns: Map<string, string>; keys: Set<string> }>();
  const named = (table: string): { columns: Map<string, string>; keys: Set<string> } => {
    const known = tables.get(table) ?? { columns: new Map<string, string>(), keys: new Set<string>() };
    tables.set(table, known);
    return known;
  };
  for (const statement of migrations.flatMap(({ postgres }) => statementsOf(postgres))) {
    const [, indexed, list = '', condition] = UNIQUE_INDEX.exec(statement) ?? [];
    if (indexed !== undefined)
      named(indexed).keys.add(keyText(list, condition === undefined ? '' : `(${condition})`));
    const table = CHANGED_TABLE.exec(statement)?.[1];
    if (table === undefined) continue;
    const { columns, keys } = named(table);
    for (const [, column = '', type = ''] of statement.matchAll(COLUMN))
      columns.set(column, type.toLowerCase());
    for (const [, column = '', several = column] of statement.matchAll(KEY)) keys.add(keyText(several, ''));
  }
  return tables;
}

/**
 * The columns of a key, in alphabetical order because ON CONFLICT knows none, and the condition of a partial one, in parentheses as
 * PostgreSQL shows it, or empty.
 */
export function keyText(columns: string, condition: string): string {
  const sorted = columns.split(', ').toSorted().join(', ');
  return condition === '' ? `(${sorted})` : `(${sorted}) WHERE ${condition}`;
}
