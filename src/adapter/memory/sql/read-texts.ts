import { EXTRACTED_FROM, SUPERSEDES } from '../../../core/memory-model.ts';
import { jsonObject, number, type Row, text } from '../../../core/sql-row.ts';
import { agentEntityId, chatMessageId } from '../ids.ts';
import type { ReadText } from '../store.ts';
import { CREATED, isExtracted, NAMED, relate, rowsOf, supersede } from './extracted.ts';
import { cutoffValues, isAlive, NOTHING_EXPIRED, type Sql } from './sql.ts';
import { EXTRACTION } from './vectors.ts';

/** What a model has extracted from those of some texts that it has read. */
export async function readTexts(
  sql: Sql,
  ids: readonly string[],
  expired = NOTHING_EXPIRED,
): Promise<Map<string, ReadText>> {
  const list = sql.list(ids);
  const read = await sql.all(
    `SELECT id FROM memory_entities AS e WHERE ${sql.among('id', '$1')} AND type <> 'entity'
       AND EXISTS (SELECT 1 FROM memory_vectors AS v WHERE v.row = e.row AND v.embedder = $2)`,
    [list, EXTRACTION],
  );
  const named = await sql.all(
    `SELECT r.to_id AS id, e.name AS name, r.weight AS weight
     FROM memory_relations AS r JOIN memory_entities AS e ON e.id = r.from_id
     WHERE r.relation_type = '${EXTRACTED_FROM}' AND ${sql.among('r.to_id', '$1')} AND ${isAlive(2, 'e')}
     ORDER BY e.name`,
    [list, ...cutoffValues(expired)],
  );
  const outdated = await sql.all(
    `SELECT r.from_id AS id, t.metadata AS metadata
     FROM memory_relations AS r JOIN memory_entities AS t ON t.id = r.to_id
     WHERE r.relation_type = '${SUPERSEDES}' AND ${sql.among('r.from_id', '$1')} AND ${isAlive(2, 't')}
     ORDER BY t.row`,
    [list, ...cutoffValues(expired)],
  );
  const [namedBy, outdatedBy] = [Map.groupBy(named, idOf), Map.groupBy(outdated, idOf)];
  return new Map(
    read.map(idOf).map((id) => [
      id,
      {
        entities: (namedBy.get(id) ?? []).map((row) => ({
          name: text(row, 'name'),
          created: number(row, 'weight') === CREATED,
        })),
        outdated: (outdatedBy.get(id) ?? []).flatMap((row) => {
          const { turnId } = jsonObject(row, 'metadata');
          return typeof turnId === 'string' ? [turnId] : [];
        }),
      },
    ]),
  );
}

/**
 * Stores what a model has extracted from texts in another memory, as far as both ends are here, and that they have been read. The
 * entities are stored already; one that an agent has written stays the agent's.
 */
export async function importReadTexts(sql: Sql, texts: ReadonlyMap<string, ReadText>): Promise<void> {
  if (texts.size === 0) return;
  const stored = await sql.all(
    `SELECT id, row FROM memory_entities WHERE ${sql.among('id', '$1')} AND type <> 'entity'`,
    [sql.list([...texts.keys()])],
  );
  await sql.insertVectors(
    EXTRACTION,
    stored.map((row) => ({ row: number(row, 'row'), embedding: undefined })),
  );
  const known = stored.flatMap((row) => {
    const read = texts.get(idOf(row));
    return read === undefined ? [] : [{ id: idOf(row), ...read }];
  });
  const ids = [...new Set(known.flatMap(({ entities }) => entities.map(({ name }) => agentEntityId(name))))];
  const extracted = new Set((await rowsOf(sql, ids)).filter(isExtracted).map(idOf));
  const creators = await sql.all(
    `SELECT from_id AS id, to_id FROM memory_relations
     WHERE relation_type = '${EXTRACTED_FROM}' AND weight = ${CREATED} AND ${sql.among('from_id', '$1')}`,
    [sql.list(ids)],
  );
  const creator = new Map(creators.map((row) => [idOf(row), text(row, 'to_id')]));
  for (const { id, entities, outdated } of known) {
    const named = new Map(entities.map(({ name, created }) => [agentEntityId(name), created]));
    // What an entity says here may be from another text.
    for (const [from, created] of named) if (created && !creator.has(from)) creator.set(from, id);
    await relate(
      sql,
      [...named]
        .filter(([from]) => extracted.has(from))
        .map(([from, created]) => [
          from,
          id,
          EXTRACTED_FROM,
          created && creator.get(from) === id ? CREATED : NAMED,
        ]),
    );
    await supersede(sql, id, outdated.map(chatMessageId));
  }
}

const idOf = (row: Row): string => text(row, 'id');
