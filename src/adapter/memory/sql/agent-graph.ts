import { AppError } from '../../../core/errors.ts';
import { elementsOf, textIn } from '../../../core/foreign.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { jsonObject, number, type Row, text } from '../../../core/sql-row.ts';
import { agentEntityId } from '../ids.ts';
import type { AgentEntity, AgentRelation, Cutoffs, GraphChange, GraphChanged, NewEntity } from '../store.ts';
import { mentionsOf } from './mentions.ts';
import { cutoffValues, isAlive, NOTHING_EXPIRED, type Sql } from './sql.ts';

/** An entity that was stored before it came here. */
type Dated = AgentEntity & { readonly storedAt?: string | undefined };

/** What an agent changes is its own from then on. */
export type GraphOrigin = 'agent' | 'extracted';
/** Of relations: those that a model has extracted come last. */
export const WEIGHTS: Readonly<Record<GraphOrigin, number>> = { agent: 1, extracted: 0.5 };

/** Makes all changes; the caller's transaction makes them atomic. */
export async function changeGraph(
  sql: Sql,
  change: GraphChange,
  expired = NOTHING_EXPIRED,
): Promise<GraphChanged> {
  await lockGraph(sql);
  await deleteExpired(sql, change, expired);
  const entities = await createEntities(sql, change.createEntities ?? [], 'agent');
  const relations = await createRelations(sql, change.createRelations ?? [], 'agent');
  const observations = await addObservations(sql, change.addObservations ?? []);
  const deletedObservations = await deleteObservations(sql, change.deleteObservations ?? []);
  const deletedRelations = await deleteRelations(sql, change.deleteRelations ?? []);
  const deleted = await deleteEntities(sql, change.deleteEntities ?? []);
  return {
    entities,
    relations,
    observations,
    deleted: {
      entities: deleted.entities,
      observations: deletedObservations,
      relations: deletedRelations + deleted.relations,
    },
  };
}

/** Entities are read, changed and written again. On PostgreSQL this row makes two backends do that one after another. */
export async function lockGraph(sql: Sql): Promise<void> {
  await sql.run(
    `INSERT INTO memory_notes (key, value) VALUES ('graph-lock', 'null')
     ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
  );
}

/** A name is free again when its entity has expired, even if that is not deleted yet. */
export async function deleteExpired(
  sql: Sql,
  change: Pick<GraphChange, 'createEntities' | 'addObservations'>,
  expired: Cutoffs,
): Promise<void> {
  if (expired.entities === '') return;
  const names = [
    ...(change.createEntities ?? []).map(({ name }) => name),
    ...(change.addObservations ?? []).map(({ entityName }) => entityName),
  ];
  const rows = await sql.all(
    `SELECT name FROM memory_entities WHERE ${sql.among('id', '$1')} AND NOT ${isAlive(2)}`,
    [sql.list(names.map(agentEntityId)), ...cutoffValues(expired)],
  );
  await deleteEntities(
    sql,
    rows.map((row) => text(row, 'name')),
  );
}

export async function createEntities(
  sql: Sql,
  list: readonly Dated[],
  origin: GraphOrigin,
): Promise<AgentEntity[]> {
  const known = await load(
    sql,
    list.map(({ name }) => name),
  );
  const created = new Map<string, Dated>();
  for (const { name, entityType, observations, storedAt } of list) {
    if (known.has(name) || created.has(name)) continue;
    created.set(name, { name, entityType, observations: [...new Set(observations)], storedAt });
  }
  const entities = [...created.values()];
  await save(sql, entities, origin);
  for (const { name } of entities) await mentionsOf(sql, { id: agentEntityId(name), name });
  return entities.map(({ storedAt: _, ...entity }) => entity);
}

/** An end that is not an entity gets a row of its own without content, so that its name is known. */
export async function createRelations(
  sql: Sql,
  list: readonly AgentRelation[],
  origin: GraphOrigin,
): Promise<AgentRelation[]> {
  const ends = new Map(list.flatMap(({ from, to }) => [from, to]).map((name) => [agentEntityId(name), name]));
  const rows = await sql.all(`SELECT id FROM memory_entities WHERE ${sql.among('id', '$1')}`, [
    sql.list([...ends.keys()]),
  ]);
  // An extracted name that an agent relates is the agent's from then on.
  if (origin === 'agent')
    await sql.run(
      `UPDATE memory_entities SET metadata = '{}' WHERE ${sql.among('id', '$1')} AND folded IS NULL AND metadata <> '{}'`,
      [sql.list([...ends.keys()])],
    );
  for (const row of rows) ends.delete(text(row, 'id'));
  const metadata = origin === 'agent' ? {} : { origin };
  await insert(
    sql,
    [...ends].map(([id, name]) => ({ ...nothing, id, name, metadata })),
  );
  const created: AgentRelation[] = [];
  for (const relation of list) {
    const count = await sql.run(
      `INSERT INTO memory_relations (from_id, to_id, relation_type, weight) VALUES ($1, $2, $3, $4)
       ON CONFLICT DO NOTHING`,
      [...keysOf(relation), WEIGHTS[origin]],
    );
    if (count > 0) created.push(relation);
  }
  return created;
}

async function addObservations(
  sql: Sql,
  list: NonNullable<GraphChange['addObservations']>,
): Promise<GraphChanged['observations']> {
  const known = await load(
    sql,
    list.map(({ entityName }) => entityName),
  );
  const added = list.map(({ entityName, contents }) => {
    const entity = known.get(entityName);
    if (entity === undefined)
      throw new AppError('memory_not_found', { message: `Entity with name ${entityName} not found` });
    const addedObservations = [...new Set(contents)].filter((text) => !entity.observations.includes(text));
    known.set(entityName, { ...entity, observations: [...entity.observations, ...addedObservations] });
    return { entityName, addedObservations };
  });
  const changed = new Set(
    added.filter(({ addedObservations: texts }) => texts.length > 0).map((one) => one.entityName),
  );
  await save(
    sql,
    [...known.values()].filter(({ name }) => changed.has(name)),
  );
  return added;
}

async function deleteObservations(
  sql: Sql,
  list: NonNullable<GraphChange['deleteObservations']>,
): Promise<number> {
  const known = await load(
    sql,
    list.map(({ entityName }) => entityName),
  );
  const changed = new Map<string, AgentEntity>();
  let count = 0;
  for (const { entityName, observations } of list) {
    const entity = changed.get(entityName) ?? known.get(entityName);
    if (entity === undefined) continue;
    const kept = entity.observations.filter((observation) => !observations.includes(observation));
    if (kept.length === entity.observations.length) continue;
    count += entity.observations.length - kept.length;
    changed.set(entityName, { ...entity, observations: kept });
  }
  await save(sql, [...changed.values()]);
  return count;
}

async function deleteRelations(sql: Sql, list: readonly AgentRelation[]): Promise<number> {
  let count = 0;
  for (const relation of list)
    count += await sql.run(
      'DELETE FROM memory_relations WHERE from_id = $1 AND to_id = $2 AND relation_type = $3',
      keysOf(relation),
    );
  await dropLooseEnds(
    sql,
    list.flatMap(({ from, to }) => [agentEntityId(from), agentEntityId(to)]),
  );
  return count;
}

function deleteEntities(
  sql: Sql,
  names: readonly string[],
): Promise<{ entities: number; relations: number }> {
  return deleteAgentEntities(sql, names.map(agentEntityId));
}

/** Deletes entities by id, their relations, and what is only known as an end of those. */
export async function deleteAgentEntities(
  sql: Sql,
  entities: readonly string[],
): Promise<{ entities: number; relations: number }> {
  if (entities.length === 0) return { entities: 0, relations: 0 };
  const ids = sql.list(entities);
  const touching = `${sql.among('from_id', '$1')} OR ${sql.among('to_id', '$1')}`;
  const rows = await sql.all(`DELETE FROM memory_relations WHERE ${touching} RETURNING from_id, to_id`, [
    ids,
  ]);
  const [counted] = await sql.all(
    `SELECT count(*) AS n FROM memory_entities WHERE ${sql.among('id', '$1')} AND folded IS NOT NULL`,
    [ids],
  );
  await sql.run(`DELETE FROM memory_entities WHERE ${sql.among('id', '$1')}`, [ids]);
  await dropLooseEnds(
    sql,
    rows.flatMap((row) => [text(row, 'from_id'), text(row, 'to_id')]),
  );
  return { entities: counted === undefined ? 0 : number(counted, 'n'), relations: rows.length };
}

async function dropLooseEnds(sql: Sql, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  // A relation to the text that it was extracted from does not count.
  const loose = await sql.all(
    `DELETE FROM memory_entities WHERE type = 'entity' AND folded IS NULL AND ${sql.among('id', '$1')}
     AND NOT EXISTS (SELECT 1 FROM memory_relations WHERE to_id = memory_entities.id)
     AND NOT EXISTS (SELECT 1 FROM memory_relations AS r JOIN memory_entities AS t ON t.id = r.to_id
                     WHERE r.from_id = memory_entities.id AND t.type = 'entity') RETURNING id`,
    [sql.list([...new Set(ids)])],
  );
  await sql.run(`DELETE FROM memory_relations WHERE ${sql.among('from_id', '$1')}`, [
    sql.list(loose.map((row) => text(row, 'id'))),
  ]);
}

/** The columns of `entityOf`. */
export const ENTITY = 'name, metadata';

async function load(sql: Sql, names: readonly string[]): Promise<Map<string, AgentEntity>> {
  const rows = await sql.all(
    `SELECT ${ENTITY} FROM memory_entities WHERE ${sql.among('id', '$1')} AND folded IS NOT NULL`,
    [sql.list(names.map(agentEntityId))],
  );
  return new Map(rows.map(entityOf).map((entity) => [entity.name, entity]));
}

const nothing = { type: 'entity', content: '', metadata: {}, embedding: undefined, searchText: '' } as const;

export async function save(
  sql: Sql,
  entities: readonly Dated[],
  origin: GraphOrigin = 'agent',
): Promise<void> {
  const now = new Date().toISOString();
  await insert(
    sql,
    entities.map(({ name, entityType, observations, storedAt = now }): NewEntity => {
      const content = observations.join('\n');
      if (content.length > MEMORY_STORE_LIMITS.observationsLength)
        throw new AppError('memory_invalid', {
          message:
            `entity ${JSON.stringify(name.slice(0, 100))}: its observations would have ${content.length} characters, the ` +
            `maximum is ${MEMORY_STORE_LIMITS.observationsLength}: delete some, or use a second entity and a relation`,
        });
      return {
        ...nothing,
        id: agentEntityId(name),
        name,
        content,
        metadata: { entityType, observations, origin },
        title: name,
        heading: entityType,
        searchText: content === '' ? name : content,
        folded: foldedOf([name, entityType, ...observations]),
        // A time in the future would keep it for ever.
        storedAt: storedAt < now ? storedAt : now,
      };
    }),
  );
}

/** The row is new, because caches of vectors and of embeddings only follow new rows. */
async function insert(sql: Sql, entities: readonly NewEntity[]): Promise<void> {
  if (entities.length === 0) return;
  await sql.run(`DELETE FROM memory_entities WHERE ${sql.among('id', '$1')}`, [
    sql.list(entities.map(({ id }) => id)),
  ]);
  await sql.insertEntities(entities, '', null);
}

/** Separated by a control character, so that no query matches across two texts. */
function foldedOf(texts: readonly string[]): string {
  return texts.map((one) => one.toLowerCase()).join('\u001f');
}

function keysOf({ from, to, relationType }: AgentRelation): string[] {
  return [agentEntityId(from), agentEntityId(to), relationType];
}

export function entityOf(row: Row): AgentEntity {
  const { entityType } = jsonObject(row, 'metadata');
  return { name: text(row, 'name'), entityType: textIn(entityType), observations: observationsOf(row) };
}

/** What an entity of an agent keeps in its metadata. */
export function observationsOf(row: Row): string[] {
  const { observations } = jsonObject(row, 'metadata');
  return elementsOf(observations).filter((one) => typeof one === 'string');
}
