import { keysCreatedBy, missingKey } from '../../core/postgres-keys.ts';
import type { Client } from '../../core/postgres-pool.ts';
import { rowsOf, text } from '../../core/sql-row.ts';
import type { DatabaseSchema } from '../kernel/database.ts';

const CHANGED_TABLE = /^\s*(?:CREATE|ALTER) TABLE (?:IF NOT EXISTS )?([a-z_]+)/;
/** A name in lower case and a type in upper case. Lists of columns, as that of PRIMARY KEY, have no types. */
const COLUMN = /(?:[(,]|ADD COLUMN(?: IF NOT EXISTS)?)\s*([a-z_]+) ([A-Z]+)/g;

const COLUMNS = `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`;

/** The statements of a script. PGlite executes one per call. */
export const statementsOf = (script: string): readonly string[] =>
  script.split(/;\s*\n/).filter((statement) => statement.trim() !== '');

const allStatements = ({ migrations }: DatabaseSchema): readonly string[] =>
  migrations.flatMap(({ postgres }) => statementsOf(postgres));

/**
 * What a database lacks of the columns and unique keys that the scripts of a feature create. Those take a table of that name for the
 * one of a restored dump (`IF NOT EXISTS`), so a table of another program shows here. Undefined if nothing is missing.
 */
export async function missingPart(client: Client, schema: DatabaseSchema): Promise<string | undefined> {
  for (const [table, wanted] of columnsOf(schema)) {
    const present = new Map(
      rowsOf(await client.query(COLUMNS, [table])).map((row) => [text(row, 'name'), text(row, 'type')]),
    );
    for (const [column, type] of wanted)
      if (present.get(column) !== type)
        return `the table ${table} has no column ${column} with the type ${type}`;
  }
  return missingKey(client, keysOf(schema));
}

/** By table: the unique keys that the scripts of all versions create; none drops any. */
export const keysOf = (schema: DatabaseSchema): ReadonlyMap<string, ReadonlySet<string>> =>
  keysCreatedBy(allStatements(schema));

/** By table: the columns and their types that the scripts of all versions create or add; none drops any. */
export function columnsOf(schema: DatabaseSchema): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const tables = new Map<string, Map<string, string>>();
  for (const statement of allStatements(schema)) {
    const table = CHANGED_TABLE.exec(statement)?.[1];
    if (table === undefined) continue;
    const columns = tables.get(table) ?? new Map<string, string>();
    for (const [, column = '', type = ''] of statement.matchAll(COLUMN))
      columns.set(column, type.toLowerCase());
    tables.set(table, columns);
  }
  return tables;
}
