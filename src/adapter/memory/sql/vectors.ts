import { number, text } from '../../../core/sql-row.ts';
import type { UnembeddedText } from '../store.ts';
import { type RowVector, SEARCH_FIELDS, type Sql, searchFieldsOf } from './sql.ts';

/** Takes the place of an embedder in rows without vector, which say that a text's entities have been extracted. */
export const EXTRACTION = 'extracted';

/** Searched texts that have no row of this embedder, not even one that says that the text has no meaning. */
const UNEMBEDDED = `FROM memory_entities AS e WHERE search_text <> '' AND NOT EXISTS
  (SELECT 1 FROM memory_vectors AS v WHERE v.row = e.row AND v.embedder = $1)`;

export async function unembedded(
  sql: Sql,
  embedder: string,
  page: { readonly after: number; readonly limit: number },
): Promise<UnembeddedText[]> {
  const rows = await sql.all(
    `SELECT e.row AS row, e.id AS id, e.type AS type, ${SEARCH_FIELDS} ${UNEMBEDDED} AND e.row > $2 ORDER BY e.row LIMIT $3`,
    [embedder, page.after, page.limit],
  );
  return rows.map((row) => ({
    row: number(row, 'row'),
    id: text(row, 'id'),
    type: text(row, 'type'),
    ...searchFieldsOf(row),
  }));
}

export async function unembeddedCount(sql: Sql, embedder: string): Promise<number> {
  const [row] = await sql.all(`SELECT count(*) AS n ${UNEMBEDDED}`, [embedder]);
  return row === undefined ? 0 : number(row, 'n');
}

export async function textCount(sql: Sql): Promise<number> {
  const [row] = await sql.all("SELECT count(*) AS n FROM memory_entities WHERE search_text <> ''", []);
  return row === undefined ? 0 : number(row, 'n');
}

export async function putVectors(sql: Sql, embedder: string, vectors: readonly RowVector[]): Promise<void> {
  if (vectors.length > 0) await sql.insertVectors(embedder, vectors);
}

export function keepVectorsOf(sql: Sql, embedder: string): Promise<number> {
  return sql.run('DELETE FROM memory_vectors WHERE embedder <> $1 AND embedder <> $2', [
    embedder,
    EXTRACTION,
  ]);
}
