import { DatabaseSync } from 'node:sqlite';
import type { DatabaseSchema } from '../kernel/database.ts';

/** Without those that an index of words keeps for itself (shadow tables), which depend on the version of SQLite. */
const TABLES = `(SELECT name AS named FROM pragma_table_list
  WHERE schema = 'main' AND type IN ('table', 'virtual') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\')`;

/** The key of a rowid table with an INTEGER PRIMARY KEY has no index. */
const PARTS = `
SELECT format('the table %s has no column %s with the type %s', named, c.name, c.type) AS missing
FROM ${TABLES}, pragma_table_xinfo(named) AS c
UNION ALL
SELECT format('the table %s has no unique key (%s)', named, group_concat(c.name, ', ' ORDER BY c.name))
FROM ${TABLES}, pragma_table_xinfo(named) AS c WHERE c.pk > 0 GROUP BY named
UNION ALL
SELECT format('the table %s has no unique key (%s)%s', named,
  (SELECT group_concat(name, ', ' ORDER BY name) FROM pragma_index_info(i.name)),
  (SELECT iif(i.partial, ' ' || substr(sql, instr(sql, 'WHERE ')), '') FROM sqlite_schema WHERE name = i.name))
FROM ${TABLES}, pragma_index_list(named) AS i WHERE i."unique"`;

/**
 * What a file lacks of the columns and unique keys that the scripts of a feature create. Some of these take a table of that name as
 * it is (`IF NOT EXISTS`), also one of another program. Undefined if nothing is missing.
 */
export function missingPart(database: DatabaseSync, { migrations }: DatabaseSchema): string | undefined {
  const expected = new DatabaseSync(':memory:');
  try {
    for (const { sqlite } of migrations) expected.exec(sqlite);
    const present = new Set(partsOf(database));
    return partsOf(expected).find((part) => !present.has(part));
  } finally {
    expected.close();
  }
}

const partsOf = (database: DatabaseSync): string[] =>
  database
    .prepare(PARTS)
    .all()
    .map(({ missing }) => String(missing));
