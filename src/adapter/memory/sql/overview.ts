import { json, number, type Row, text } from '../../../core/sql-row.ts';
import { ENTITY_TYPES, RELATION_TYPES, type Stats } from '../store.ts';
import type { Engine, Sql } from './sql.ts';

export async function stats(sql: Engine): Promise<Stats> {
  const entities = await sql.all('SELECT type AS kind, count(*) AS n FROM memory_entities GROUP BY type');
  const relations = await sql.all(
    'SELECT relation_type AS kind, count(*) AS n FROM memory_relations GROUP BY relation_type',
  );
  // A namespace that does not exist has no row.
  const [totals = { turns: 0, sessions: 0, documents: 0 }] = await sql.all(
    `SELECT (SELECT coalesce(sum(turns), 0) FROM memory_sessions) AS turns,
            (SELECT count(*) FROM memory_sessions WHERE turns > 0) AS sessions,
            (SELECT count(*) FROM memory_documents) AS documents`,
  );
  return {
    entities: counted(ENTITY_TYPES, entities),
    relations: { ...counted(RELATION_TYPES, relations), other: sumOfOthers(RELATION_TYPES, relations) },
    turns: number(totals, 'turns'),
    sessions: number(totals, 'sessions'),
    documents: number(totals, 'documents'),
    bytes: await sql.bytes(),
  };
}

function counted<T extends string>(kinds: readonly T[], rows: readonly Row[]): Record<T, number> {
  const found = new Map(rows.map((row) => [text(row, 'kind'), number(row, 'n')]));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `fromEntries` forgets the names
  return Object.fromEntries(kinds.map((kind) => [kind, found.get(kind) ?? 0])) as Record<T, number>;
}

/** Relations of agents have any name. */
function sumOfOthers(kinds: readonly string[], rows: readonly Row[]): number {
  return rows
    .filter((row) => !kinds.includes(text(row, 'kind')))
    .reduce((sum, row) => sum + number(row, 'n'), 0);
}

export async function setNote(sql: Sql, key: string, value: unknown): Promise<void> {
  await sql.run(
    'INSERT INTO memory_notes (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    [key, JSON.stringify(value ?? null)],
  );
}

/** Undefined for a key that was never set. */
export async function note(sql: Sql, key: string): Promise<unknown> {
  const [row] = await sql.all('SELECT value FROM memory_notes WHERE key = $1', [key]);
  return row === undefined ? undefined : json(row, 'value');
}
