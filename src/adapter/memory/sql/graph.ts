import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { jsonObject, number, type Row, text } from '../../../core/sql-row.ts';
import { editDistance } from '../../../core/suggest.ts';
import { nameKey } from '../plain-words.ts';
import type { Cutoffs, Entity, EntityType, FoundEntity, Relation } from '../store.ts';
import { cutoffValues, isAlive, NOTHING_EXPIRED, SEARCH_FIELDS, type Sql } from './sql.ts';

const ENTITY = 'id, name, type, content, metadata';
/** Columns of `foundEntityOf`, of the table `e`. The searched text is null if it is the content: most of a row is sent once. */
export const FOUND_ENTITY = `e.id, e.name, e.type, e.content, e.metadata, e.title, e.heading,
  NULLIF(e.search_text, e.content) AS search_text`;
const RELATION = 'from_id, to_id, relation_type, weight';
/** The type that is most likely meant by a name comes first. */
const BY_TYPE = `CASE type WHEN 'entity' THEN 0 WHEN 'workspace' THEN 1 WHEN 'doc_file' THEN 2
  WHEN 'doc_chunk' THEN 3 ELSE 4 END`;

export async function entities(
  sql: Sql,
  ids: readonly string[],
  expired = NOTHING_EXPIRED,
): Promise<FoundEntity[]> {
  const rows = await sql.all(
    `SELECT ${ENTITY}, ${SEARCH_FIELDS} FROM memory_entities WHERE ${sql.among('id', '$1')} AND ${isAlive(2)}`,
    [sql.list(ids), ...cutoffValues(expired)],
  );
  return inOrder(ids, rows.map(foundEntityOf));
}

function inOrder<T extends { readonly id: string }>(ids: readonly string[], entities: readonly T[]): T[] {
  const known = new Map(entities.map((entity) => [entity.id, entity]));
  return ids.flatMap((id) => known.get(id) ?? []);
}

export async function byName(
  sql: Sql,
  name: string,
  limit: number,
  expired = NOTHING_EXPIRED,
): Promise<Entity[]> {
  const exact = await sql.all(
    `SELECT ${ENTITY} FROM memory_entities WHERE name = $1 AND ${isAlive(3)} ORDER BY ${BY_TYPE}, id LIMIT $2`,
    [name, limit, ...cutoffValues(expired)],
  );
  const key = nameKey(name);
  if (exact.length > 0 || key === '') return exact.map(entityOf);
  const rows = await sql.all(
    `SELECT ${ENTITY} FROM memory_entities WHERE name_key = $1 AND ${isAlive(3)} ORDER BY ${BY_TYPE}, id LIMIT $2`,
    [key, limit, ...cutoffValues(expired)],
  );
  return rows.map(entityOf);
}

/**
 * Names that share the most trigrams with the requested one, then those with the smallest edit distance. Chunks are
 * excluded: there are many, and they are named after their document.
 */
export async function similarNames(
  sql: Sql,
  name: string,
  limit: number,
  expired = NOTHING_EXPIRED,
): Promise<string[]> {
  const wanted = name.toLowerCase().slice(0, 64);
  const pieces = new Set<string>();
  for (let at = 0; at + 3 <= wanted.length; at++) pieces.add(wanted.slice(at, at + 3));
  if (pieces.size === 0) pieces.add(wanted);
  const patterns = [...pieces].map((piece) => `%${piece.replace(/[\\%_]/g, '\\$&')}%`);
  const hits = patterns
    .map((_, index) => `CASE WHEN lower(name) LIKE $${index + 2} ESCAPE '\\' THEN 1 ELSE 0 END`)
    .join(' + ');
  const rows = await sql.all(
    `SELECT name, max(hits) AS likeness FROM
       (SELECT name, ${hits} AS hits FROM memory_entities WHERE type IN ('workspace', 'doc_file', 'entity')
         AND ${isAlive(patterns.length + 2)}) AS counted
     WHERE hits > 0 GROUP BY name ORDER BY likeness DESC, name LIMIT $1`,
    [MEMORY_STORE_LIMITS.similarNames, ...patterns, ...cutoffValues(expired)],
  );
  return rows
    .map((row) => ({ name: text(row, 'name'), likeness: number(row, 'likeness') }))
    .filter((near) => near.likeness * 3 >= pieces.size)
    .map((near) => ({ ...near, distance: editDistance(wanted, near.name.toLowerCase().slice(0, 64)) }))
    .sort((a, b) => a.distance - b.distance || b.likeness - a.likeness || (a.name < b.name ? -1 : 1))
    .slice(0, limit)
    .map((near) => near.name);
}

export async function edges(
  sql: Sql,
  ids: readonly string[],
  direction: 'out' | 'in' | 'both',
  limit: number,
): Promise<Relation[]> {
  const leaving = `SELECT ${RELATION} FROM memory_relations WHERE ${sql.among('from_id', '$1')}`;
  const entering = `SELECT ${RELATION} FROM memory_relations WHERE ${sql.among('to_id', '$1')}`;
  // UNION instead of OR: each half uses its index on both engines, and an edge within the set is returned once.
  const touching = { out: leaving, in: entering, both: `${leaving} UNION ${entering}` }[direction];
  const rows = await sql.all(`${touching} ORDER BY weight DESC, from_id, to_id, relation_type LIMIT $2`, [
    sql.list(ids),
    limit,
  ]);
  return rows.map((row) => ({
    fromId: text(row, 'from_id'),
    toId: text(row, 'to_id'),
    relationType: text(row, 'relation_type'),
    weight: number(row, 'weight'),
  }));
}

export async function topology(
  sql: Sql,
  page: {
    types?: readonly EntityType[] | undefined;
    limit: number;
    cursor?: string | undefined;
    expired?: Cutoffs;
  },
): Promise<{ nodes: Pick<Entity, 'id' | 'name' | 'type'>[]; nextCursor: string | null }> {
  const parameters = [page.cursor ?? '', page.limit + 1, ...cutoffValues(page.expired ?? NOTHING_EXPIRED)];
  const rows = await sql.all(
    `SELECT id, name, type FROM memory_entities WHERE id > $1 AND ${isAlive(3)}
     ${page.types === undefined ? '' : `AND ${sql.among('type', '$5')}`} ORDER BY id LIMIT $2`,
    page.types === undefined ? parameters : [...parameters, sql.list(page.types)],
  );
  const nodes = rows.slice(0, page.limit).map((row) => ({
    id: text(row, 'id'),
    name: text(row, 'name'),
    type: text(row, 'type'),
  }));
  return { nodes, nextCursor: rows.length > nodes.length ? (nodes.at(-1)?.id ?? null) : null };
}

export function foundEntityOf(row: Row): FoundEntity {
  const entity = entityOf(row);
  return {
    ...entity,
    title: text(row, 'title'),
    heading: text(row, 'heading'),
    searchText: row['search_text'] === null ? entity.content : text(row, 'search_text'),
  };
}

function entityOf(row: Row): Entity {
  return {
    id: text(row, 'id'),
    name: text(row, 'name'),
    type: text(row, 'type'),
    content: text(row, 'content'),
    metadata: jsonObject(row, 'metadata'),
  };
}
