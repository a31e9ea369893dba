import { type Row, text } from '../../../core/sql-row.ts';
import type { Cutoffs } from '../store.ts';
import { deleteAgentEntities } from './agent-graph.ts';
import { removeDocuments } from './documents.ts';
import { dropEntities, dropTurns } from './erasure.ts';
import type { Sql } from './sql.ts';

/** Deletes some of what has expired, the oldest first; returns the number of turns, entities and documents. */
export async function expire(sql: Sql, cutoffs: Cutoffs, limit: number): Promise<number> {
  const turns =
    cutoffs.turns === ''
      ? []
      : await sql.all(
          'SELECT id, session_id FROM memory_chat_history WHERE created_at <= $1 ORDER BY created_at LIMIT $2',
          [cutoffs.turns, limit],
        );
  await dropTurns(sql, ids(turns), [...new Set(turns.map((row) => text(row, 'session_id')))]);
  const messages = await stored(sql, 'chat_message', cutoffs.turns, limit);
  await dropEntities(sql, ids(messages));
  const entities = await stored(sql, 'entity', cutoffs.entities, limit);
  await deleteAgentEntities(sql, ids(entities));
  const files = await stored(sql, 'doc_file', cutoffs.entities, limit);
  const documents =
    files.length === 0
      ? []
      : await sql.all(
          `SELECT key FROM memory_documents WHERE origin = 'ingest' AND ${sql.among('file_id', '$1')}`,
          [sql.list(ids(files))],
        );
  await removeDocuments(
    sql,
    'ingest',
    documents.map((row) => text(row, 'key')),
  );
  return turns.length + messages.length + entities.length + documents.length;
}

async function stored(sql: Sql, type: string, cutoff: string, limit: number): Promise<readonly Row[]> {
  if (cutoff === '') return [];
  return sql.all(
    'SELECT id FROM memory_entities WHERE stored_at <= $1 AND type = $2 ORDER BY stored_at LIMIT $3',
    [cutoff, type, limit],
  );
}

function ids(rows: readonly Row[]): string[] {
  return rows.map((row) => text(row, 'id'));
}
