import { EXTRACTED_FROM, SUPERSEDES } from '../../../core/memory-model.ts';
import { jsonObject, number, type Row, text } from '../../../core/sql-row.ts';
import { agentEntityId } from '../ids.ts';
import type { AgentEntity, Extraction } from '../store.ts';
import {
  createEntities,
  createRelations,
  deleteAgentEntities,
  deleteExpired,
  entityOf,
  type GraphOrigin,
  lockGraph,
  save,
} from './agent-graph.ts';
import { cutoffValues, EXTRACTED_ORIGIN, isAlive, NOTHING_EXPIRED, type Sql } from './sql.ts';

export const EXTRACTED: GraphOrigin = EXTRACTED_ORIGIN;
/** Weights of `EXTRACTED_FROM`: to the text that an entity was created from, and to others that name it. */
export const CREATED = 1;
export const NAMED = 0.5;

/**
 * Whatever deletes texts holds the graph's lock too, so that a text is not deleted between the look at it and the last statement. Its
 * row changes when it is written again, while the id of a chunk is only its place.
 */
export async function putExtraction(
  sql: Sql,
  { row, entities, relations, outdated }: Extraction,
  expired = NOTHING_EXPIRED,
): Promise<void> {
  await lockGraph(sql);
  const [source] = await sql.all(`SELECT id FROM memory_entities WHERE row = $1 AND ${isAlive(2)}`, [
    row,
    ...cutoffValues(expired),
  ]);
  if (source === undefined) return;
  const toId = text(source, 'id');
  await supersede(sql, toId, outdated);
  await deleteExpired(sql, { createEntities: entities }, expired);
  const names = [...entities.map(({ name }) => name), ...relations.flatMap(({ from, to }) => [from, to])];
  const ids = [...new Set(names.map(agentEntityId))];
  // One without a source is of an earlier version, and from a text that is not known.
  const others = new Set(
    (await rowsOf(sql, ids)).filter((one) => number(one, 'sources') === 0).map((one) => text(one, 'id')),
  );
  const created = new Set(
    (await createEntities(sql, entities, EXTRACTED)).map(({ name }) => agentEntityId(name)),
  );
  await createRelations(sql, relations, EXTRACTED);
  const extracted = (await rowsOf(sql, ids)).filter(isExtracted).map((one) => text(one, 'id'));
  await relate(
    sql,
    extracted
      .filter((id) => created.has(id) || !others.has(id))
      .map((id) => [id, toId, EXTRACTED_FROM, created.has(id) ? CREATED : NAMED]),
  );
}

/** A text that is read again does not make less of what was created from it. */
export function relate(
  sql: Sql,
  rows: readonly (readonly [from: string, to: string, type: string, weight: number])[],
): Promise<void> {
  return sql.insert({
    table: 'memory_relations',
    columns: ['from_id', 'to_id', 'relation_type', 'weight'],
    rows,
    conflict: `ON CONFLICT (from_id, to_id, relation_type) DO UPDATE SET weight = excluded.weight
      WHERE excluded.weight > memory_relations.weight`,
  });
}

export async function rowsOf(sql: Sql, ids: readonly string[]): Promise<readonly Row[]> {
  return sql.all(
    `SELECT id, metadata, (SELECT count(*) FROM memory_relations AS r
       WHERE r.from_id = e.id AND r.relation_type = '${EXTRACTED_FROM}') AS sources
     FROM memory_entities AS e WHERE ${sql.among('id', '$1')}`,
    [sql.list(ids)],
  );
}

/** What an agent has changed is the agent's. */
export function isExtracted(row: Row): boolean {
  return jsonObject(row, 'metadata')['origin'] === EXTRACTED;
}

export async function supersede(sql: Sql, fromId: string, outdated: readonly string[]): Promise<void> {
  const turns = await sql.all(
    `SELECT id FROM memory_entities WHERE type = 'chat_message' AND ${sql.among('id', '$1')}`,
    [sql.list(outdated)],
  );
  await relate(
    sql,
    turns.map((row) => [fromId, text(row, 'id'), SUPERSEDES, 1]),
  );
}

/** What goes with some texts. */
export interface Lost {
  /** No other text names them. */
  readonly entities: readonly AgentEntity[];
  /** Other texts name them, but what they say is from these. */
  readonly emptied: readonly AgentEntity[];
}

/** @param sources ids of the entities of texts */
export async function lostWith(sql: Sql, sources: readonly string[]): Promise<Lost> {
  if (sources.length === 0) return { entities: [], emptied: [] };
  // Agents may give a relation between their entities the same name.
  const rows = await sql.all(
    `SELECT e.name AS name, e.metadata AS metadata, max(r.weight) AS weight,
       (SELECT count(*) FROM memory_relations AS o JOIN memory_entities AS s ON s.id = o.to_id
        WHERE o.from_id = e.id AND o.relation_type = '${EXTRACTED_FROM}' AND s.type <> 'entity'
          AND NOT (${sql.among('o.to_id', '$1')})) AS others
     FROM memory_relations AS r JOIN memory_entities AS e ON e.id = r.from_id
     WHERE r.relation_type = '${EXTRACTED_FROM}' AND ${sql.among('r.to_id', '$1')}
     GROUP BY e.id, e.name, e.metadata ORDER BY e.name`,
    [sql.list(sources)],
  );
  const extracted = rows.filter(isExtracted);
  return {
    entities: extracted.filter((row) => number(row, 'others') === 0).map(entityOf),
    emptied: extracted
      .filter((row) => number(row, 'others') > 0 && number(row, 'weight') === CREATED)
      .map(entityOf)
      .filter(({ observations }) => observations.length > 0),
  };
}

export async function deleteLost(sql: Sql, { entities, emptied }: Lost): Promise<void> {
  await deleteAgentEntities(
    sql,
    entities.map(({ name }) => agentEntityId(name)),
  );
  await save(
    sql,
    emptied.map((entity) => ({ ...entity, observations: [] })),
    EXTRACTED,
  );
}

/** Deletes observations of extracted entities. They still count as extracted afterwards: no agent has written anything. */
export async function deleteExtracted(
  sql: Sql,
  observations: ReadonlyMap<string, ReadonlySet<string>>,
): Promise<void> {
  const rows = await sql.all(
    `SELECT name, metadata FROM memory_entities WHERE folded IS NOT NULL AND ${sql.among('id', '$1')}`,
    [sql.list([...observations.keys()].map(agentEntityId))],
  );
  const left = rows.filter(isExtracted).map((row) => {
    const entity = entityOf(row);
    const gone = observations.get(entity.name);
    return { ...entity, observations: entity.observations.filter((one) => gone?.has(one) !== true) };
  });
  await save(sql, left, EXTRACTED);
}

/**
 * Relates what was extracted from the texts of a document to their new ids, and deletes what came from those that have none.
 * `from` and `to` may be ids of the same document in any order.
 */
export async function moveSources(
  sql: Sql,
  moves: readonly { readonly from: string; readonly to: string | undefined }[],
): Promise<void> {
  const lost = await lostWith(
    sql,
    moves.filter(({ to }) => to === undefined).map(({ from }) => from),
  );
  const places = new Map(moves.map(({ from, to }) => [from, to]));
  const rows = await sql.all(
    `DELETE FROM memory_relations WHERE relation_type = '${EXTRACTED_FROM}' AND ${sql.among('to_id', '$1')}
     RETURNING from_id, to_id, weight`,
    [sql.list([...places.keys()])],
  );
  await relate(
    sql,
    rows.flatMap((row) => {
      const to = places.get(text(row, 'to_id'));
      return to === undefined ? [] : [[text(row, 'from_id'), to, EXTRACTED_FROM, number(row, 'weight')]];
    }),
  );
  await deleteLost(sql, lost);
}
