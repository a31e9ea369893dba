import { AppError } from '../../../core/errors.ts';
import { EXTRACTED_FROM } from '../../../core/memory-model.ts';
import { number, oneOf, type Row, text } from '../../../core/sql-row.ts';
import {
  type DocumentRecord,
  type DocumentRename,
  type NewDocument,
  type NewEntity,
  ORIGINS,
  type Origin,
  type Relation,
  type Stored,
} from '../store.ts';
import { lockGraph } from './agent-graph.ts';
import { deleteLost, lostWith, moveSources } from './extracted.ts';
import { mentionsIn } from './mentions.ts';
import { ENTITY_COLUMNS, entityValues, SEARCH_FIELDS, type Sql, searchFieldsOf } from './sql.ts';

const RECORD = 'key, origin, hash, file_id, chunks';

/** Replaces a whole document. The caller's transaction makes that atomic. */
export async function putDocument(sql: Sql, document: NewDocument): Promise<void> {
  const [file] = document.entities;
  if (file === undefined)
    throw new AppError('memory_invalid', { message: 'entities: expected the file first' });
  await lockGraph(sql);
  // On PostgreSQL this locks the row, so that two backends replace the same document one after another.
  const [stored] = await sql.all(
    `INSERT INTO memory_documents (origin, key, hash, embedder, file_id, chunks) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (origin, key) DO UPDATE SET hash = excluded.hash, embedder = excluded.embedder,
       file_id = excluded.file_id, chunks = excluded.chunks
     RETURNING document`,
    [
      document.origin,
      document.key,
      document.hash,
      document.embedder,
      file.id,
      document.entities.filter((entity) => entity.type === 'doc_chunk').length,
    ],
  );
  const row = number(stored ?? {}, 'document');
  const ids = sql.list(document.entities.map((entity) => entity.id));
  const [taken] = await sql.all(
    `SELECT id FROM memory_entities WHERE ${sql.among('id', '$1')} AND document IS DISTINCT FROM $2 LIMIT 1`,
    [ids, row],
  );
  if (taken !== undefined)
    throw new AppError('memory_invalid', {
      message: `entities: the id ${JSON.stringify(text(taken, 'id'))} belongs to another entity: ids must be unique`,
    });
  await sql.run(
    `DELETE FROM memory_relations WHERE from_id IN (SELECT id FROM memory_entities WHERE document = $1)`,
    [row],
  );
  // Relations from other documents to remaining parts are kept; what was extracted follows the texts, not their places.
  await sql.run(
    `DELETE FROM memory_relations WHERE relation_type <> '${EXTRACTED_FROM}' AND to_id IN
       (SELECT id FROM memory_entities WHERE document = $1 AND NOT (${sql.among('id', '$2')}))`,
    [row, ids],
  );
  await replaceEntities(sql, document, row);
  await insertRelations(sql, document.relations);
  await mentionsIn(sql, document.entities);
}

/**
 * Replaces the entities of a document. The rows of texts that have not changed stay, with their vectors and words, whichever place in
 * the document they have now.
 */
async function replaceEntities(
  sql: Sql,
  { entities, embedder }: NewDocument,
  document: number,
): Promise<void> {
  const stored = await sql.all(
    `SELECT row, id, ${SEARCH_FIELDS} FROM memory_entities WHERE document = $1 AND search_text <> '' ORDER BY row`,
    [document],
  );
  const rows = Map.groupBy(stored, (row) => textKey(searchFieldsOf(row)));
  const kept: { readonly row: number; readonly entity: NewEntity }[] = [];
  const fresh: NewEntity[] = [];
  for (const entity of entities) {
    const same = entity.searchText === '' ? undefined : rows.get(textKey(entity))?.shift();
    if (same === undefined) fresh.push(entity);
    else kept.push({ row: number(same, 'row'), entity });
  }
  const places = new Map(kept.map(({ row, entity }) => [row, entity.id]));
  await moveSources(
    sql,
    stored.map((row) => ({ from: text(row, 'id'), to: places.get(number(row, 'row')) })),
  );
  const list = sql.list(kept.map(({ row }) => row));
  await sql.run(`DELETE FROM memory_entities WHERE document = $1 AND NOT (${sql.among('row', '$2')})`, [
    document,
    list,
  ]);
  const ids = new Map(stored.map((row) => [number(row, 'row'), text(row, 'id')]));
  const moved = kept.filter(({ row, entity }) => ids.get(row) !== entity.id);
  // Two may exchange their ids, which are unique at any time.
  for (const { row } of moved)
    await sql.run('UPDATE memory_entities SET id = $1 WHERE row = $2', [`moved ${row}`, row]);
  for (const { row, entity } of moved)
    await sql.run('UPDATE memory_entities SET id = $1 WHERE row = $2', [entity.id, row]);
  await sql.insert({
    table: 'memory_entities',
    columns: [...ENTITY_COLUMNS, 'document'],
    rows: kept.map(({ entity }) => [...entityValues(entity), document]),
    conflict: `ON CONFLICT (id) DO UPDATE SET name = excluded.name, name_key = excluded.name_key, content = excluded.content,
      metadata = excluded.metadata, stored_at = excluded.stored_at`,
  });
  await sql.insertVectors(
    embedder,
    kept.flatMap(({ row, entity: { embedding } }) => (embedding === undefined ? [] : [{ row, embedding }])),
  );
  await sql.insertEntities(fresh, embedder, document);
}

const textKey = ({
  title = '',
  heading = '',
  searchText,
}: Pick<NewEntity, 'title' | 'heading' | 'searchText'>) => JSON.stringify([title, heading, searchText]);

/** Whether a turn exists. What deletes turns holds the graph's lock, so it stays until the transaction ends. */
async function holdTurn(sql: Sql, id: string): Promise<boolean> {
  await lockGraph(sql);
  const [turn] = await sql.all('SELECT 1 AS one FROM memory_chat_history WHERE id = $1 LIMIT 1', [id]);
  return turn !== undefined;
}

/** Creates or replaces entities outside of documents. */
export async function putEntities(
  sql: Sql,
  entities: readonly NewEntity[],
  relations: readonly Relation[],
  embedder: string,
  ofTurn?: string,
): Promise<void> {
  if (ofTurn !== undefined && !(await holdTurn(sql, ofTurn))) return;
  const ids = sql.list(entities.map((entity) => entity.id));
  const [taken] = await sql.all(
    `SELECT id FROM memory_entities WHERE ${sql.among('id', '$1')} AND document IS NOT NULL LIMIT 1`,
    [ids],
  );
  if (taken !== undefined)
    throw new AppError('memory_invalid', {
      message: `entities: the id ${JSON.stringify(text(taken, 'id'))} belongs to a document: change the document`,
    });
  await sql.run(`DELETE FROM memory_entities WHERE ${sql.among('id', '$1')}`, [ids]);
  await sql.insertEntities(entities, embedder, null);
  await insertRelations(sql, relations);
  await mentionsIn(sql, entities);
}

export async function removeEntities(sql: Sql, ids: readonly string[]): Promise<number> {
  await lockGraph(sql);
  const lost = await lostWith(sql, ids);
  const gone = await sql.all(
    `DELETE FROM memory_entities WHERE ${sql.among('id', '$1')} AND document IS NULL RETURNING id`,
    [sql.list(ids)],
  );
  const list = sql.list(gone.map((row) => text(row, 'id')));
  await sql.run(
    `DELETE FROM memory_relations WHERE ${sql.among('from_id', '$1')} OR ${sql.among('to_id', '$1')}`,
    [list],
  );
  await deleteLost(sql, lost);
  return gone.length;
}

async function insertRelations(sql: Sql, relations: readonly Relation[]): Promise<void> {
  // PostgreSQL refuses to update a row twice in one statement; the last value counts.
  const distinct = new Map(
    relations.map((relation) => [
      JSON.stringify([relation.fromId, relation.toId, relation.relationType]),
      relation,
    ]),
  );
  await sql.insert({
    table: 'memory_relations',
    columns: ['from_id', 'to_id', 'relation_type', 'weight'],
    rows: [...distinct.values()].map((relation) => [
      relation.fromId,
      relation.toId,
      relation.relationType,
      relation.weight,
    ]),
    conflict: 'ON CONFLICT (from_id, to_id, relation_type) DO UPDATE SET weight = excluded.weight',
  });
}

export async function document(sql: Sql, origin: Origin, key: string): Promise<DocumentRecord | undefined> {
  const [row] = await sql.all(`SELECT ${RECORD} FROM memory_documents WHERE origin = $1 AND key = $2`, [
    origin,
    key,
  ]);
  return row === undefined ? undefined : recordOf(row);
}

export async function documents(sql: Sql, origin: Origin): Promise<DocumentRecord[]> {
  const rows = await sql.all(`SELECT ${RECORD} FROM memory_documents WHERE origin = $1 ORDER BY key`, [
    origin,
  ]);
  return rows.map(recordOf);
}

export async function renameDocuments(
  sql: Sql,
  origin: Origin,
  renames: readonly DocumentRename[],
): Promise<number> {
  let count = 0;
  for (const { from, to } of renames)
    count += await sql.run('UPDATE memory_documents SET key = $3 WHERE origin = $1 AND key = $2', [
      origin,
      from,
      to,
    ]);
  return count;
}

export async function removeDocuments(
  sql: Sql,
  origin: Stored<Origin>,
  keys: readonly string[],
): Promise<number> {
  await lockGraph(sql);
  // Deleted first, so that other transactions that remove or replace the same documents wait for this one.
  const gone = await sql.all(
    `DELETE FROM memory_documents WHERE origin = $1 AND ${sql.among('key', '$2')} RETURNING document`,
    [origin, sql.list(keys)],
  );
  for (const row of gone) {
    const parameters = [number(row, 'document')];
    const parts = 'SELECT id FROM memory_entities WHERE document = $1';
    const ids = (await sql.all(parts, parameters)).map((part) => text(part, 'id'));
    const lost = await lostWith(sql, ids);
    await sql.run(`DELETE FROM memory_relations WHERE from_id IN (${parts})`, parameters);
    await sql.run(`DELETE FROM memory_relations WHERE to_id IN (${parts})`, parameters);
    await sql.run('DELETE FROM memory_entities WHERE document = $1', parameters);
    await deleteLost(sql, lost);
  }
  return gone.length;
}

function recordOf(row: Row): DocumentRecord {
  return {
    key: text(row, 'key'),
    origin: oneOf(row, 'origin', ORIGINS),
    hash: text(row, 'hash'),
    id: text(row, 'file_id'),
    chunks: number(row, 'chunks'),
  };
}
