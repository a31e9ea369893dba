import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { text } from '../../../core/sql-row.ts';
import { agentEntityId } from '../ids.ts';
import type { AgentEntity, AgentGraph, AgentGraphRequest, AgentRelation, Cutoffs } from '../store.ts';
import { ENTITY, entityOf } from './agent-graph.ts';
import { cutoffValues, isAlive, NOTHING_EXPIRED, type Sql } from './sql.ts';

/** Entities that one statement reads. */
const PAGE = 50;

/** A page of entities by name, up to a number of characters, with their relations. */
export async function agentGraph(sql: Sql, request: AgentGraphRequest): Promise<AgentGraph> {
  const { names, query, cursor = '' } = request;
  const found: AgentEntity[] = [];
  let room: number = MEMORY_STORE_LIMITS.graphCharacters;
  let after = cursor;
  let nextCursor: string | null = null;
  for (;;) {
    const page = await entitiesAfter(sql, request, after);
    for (const entity of page) {
      room -= JSON.stringify(entity).length;
      if (room < 0 && found.length > 0) {
        nextCursor = found.at(-1)?.name ?? null;
        break;
      }
      found.push(entity);
    }
    if (nextCursor !== null || page.length < PAGE) break;
    after = page.at(-1)?.name ?? after;
  }
  const isWhole = names === undefined && query === undefined;
  const relations = await relationsOf(sql, found, {
    isWhole,
    isFirst: cursor === '',
    expired: request.expired ?? NOTHING_EXPIRED,
  });
  return {
    entities: found,
    relations: relations.slice(0, MEMORY_STORE_LIMITS.graphRelations),
    isCut: relations.length > MEMORY_STORE_LIMITS.graphRelations,
    nextCursor,
  };
}

async function entitiesAfter(
  sql: Sql,
  { names, query, expired = NOTHING_EXPIRED }: AgentGraphRequest,
  after: string,
): Promise<AgentEntity[]> {
  const filter =
    names !== undefined
      ? { condition: `AND ${sql.among('id', '$5')}`, value: [sql.list(names.map(agentEntityId))] }
      : query !== undefined
        ? { condition: `AND folded LIKE $5 ESCAPE '\\'`, value: [pattern(query)] }
        : { condition: '', value: [] };
  const rows = await sql.all(
    `SELECT ${ENTITY} FROM memory_entities
     WHERE type = 'entity' AND folded IS NOT NULL AND name > $1
       AND ${isAlive(3)} ${filter.condition} ORDER BY name LIMIT $2`,
    [after, PAGE, ...cutoffValues(expired), ...filter.value],
  );
  return rows.map(entityOf);
}

function pattern(query: string): string {
  return `%${query.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`;
}

/** One more than fits. With all entities, each relation is on the page of its beginning, or on the first one. */
async function relationsOf(
  sql: Sql,
  entities: readonly AgentEntity[],
  { isWhole, isFirst, expired }: { isWhole: boolean; isFirst: boolean; expired: Cutoffs },
): Promise<AgentRelation[]> {
  const ids = sql.list(entities.map(({ name }) => agentEntityId(name)));
  const starting = `SELECT * FROM memory_relations WHERE ${sql.among('from_id', '$1')}`;
  const ending = `SELECT * FROM memory_relations WHERE ${sql.among('to_id', '$1')}`;
  const loose = `SELECT * FROM memory_relations WHERE from_id IN
    (SELECT id FROM memory_entities WHERE type = 'entity' AND folded IS NULL)`;
  // UNION instead of OR: each part uses its index on both engines.
  const touching = [starting, ...(isWhole ? [] : [ending]), ...(isWhole && isFirst ? [loose] : [])];
  const rows = await sql.all(
    `SELECT f.name AS from_name, t.name AS to_name, r.relation_type AS relation_type
     FROM (${touching.join(' UNION ')}) AS r
       JOIN memory_entities AS f ON f.id = r.from_id JOIN memory_entities AS t ON t.id = r.to_id
     WHERE f.type = 'entity' AND t.type = 'entity' AND ${isAlive(3, 'f')} AND ${isAlive(3, 't')}
     ORDER BY f.name, t.name, r.relation_type LIMIT $2`,
    [ids, MEMORY_STORE_LIMITS.graphRelations + 1, ...cutoffValues(expired)],
  );
  return rows.map((row) => ({
    from: text(row, 'from_name'),
    to: text(row, 'to_name'),
    relationType: text(row, 'relation_type'),
  }));
}
