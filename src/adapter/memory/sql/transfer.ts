import { AppError } from '../../../core/errors.ts';
import { elementsOf, jsonIn } from '../../../core/foreign.ts';
import { number, text } from '../../../core/sql-row.ts';
import { indexedTurn } from '../chat-index.ts';
import { agentEntityId } from '../ids.ts';
import type {
  AgentRelation,
  Cutoffs,
  Extractable,
  ImportBatch,
  Imported,
  ImportedTurn,
  NewDocument,
  Turn,
} from '../store.ts';
import { changeGraph, createEntities, createRelations, WEIGHTS } from './agent-graph.ts';
import { TURN, turnOf } from './chat.ts';
import { document as documentRecord, putDocument, putEntities } from './documents.ts';
import { EXTRACTED } from './extracted.ts';
import { importReadTexts } from './read-texts.ts';
import { cutoffValues, isAlive, NOTHING_EXPIRED, type Sql } from './sql.ts';

/** A page of the relations between entities of agents, in the order of their ids. */
export async function agentRelations(
  sql: Sql,
  page: { readonly cursor?: string | undefined; readonly limit: number; readonly expired?: Cutoffs },
): Promise<{ relations: (AgentRelation & Extractable)[]; nextCursor: string | null }> {
  const rows = await sql.all(
    `SELECT f.name AS from_name, t.name AS to_name, r.relation_type AS relation_type, r.weight AS weight
     FROM memory_relations AS r JOIN memory_entities AS f ON f.id = r.from_id JOIN memory_entities AS t ON t.id = r.to_id
     WHERE (r.from_id, r.to_id, r.relation_type) > ($1, $2, $3) AND f.type = 'entity' AND t.type = 'entity'
       AND ${isAlive(5, 'f')} AND ${isAlive(5, 't')}
     ORDER BY r.from_id, r.to_id, r.relation_type LIMIT $4`,
    [...placeOf(page.cursor), page.limit, ...cutoffValues(page.expired ?? NOTHING_EXPIRED)],
  );
  const relations = rows.map((row) => ({
    from: text(row, 'from_name'),
    to: text(row, 'to_name'),
    relationType: text(row, 'relation_type'),
    isExtracted: number(row, 'weight') === WEIGHTS[EXTRACTED],
  }));
  const last = relations.at(-1);
  const isLast = last === undefined || relations.length < page.limit;
  return {
    relations,
    nextCursor: isLast
      ? null
      : JSON.stringify([agentEntityId(last.from), agentEntityId(last.to), last.relationType]),
  };
}

/** The ids and the type of the last relation of a page. Throws `memory_invalid` for a cursor of another form. */
function placeOf(cursor: string | undefined): readonly [string, string, string] {
  if (cursor === undefined) return ['', '', ''];
  const [from, to, type] = elementsOf(jsonIn(cursor));
  if (typeof from === 'string' && typeof to === 'string' && typeof type === 'string') return [from, to, type];
  throw new AppError('memory_invalid', { message: 'cursor: expected the nextCursor of the previous page' });
}

export async function storedTimes(sql: Sql, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await sql.all(
    `SELECT id, stored_at FROM memory_entities WHERE ${sql.among('id', '$1')} AND stored_at IS NOT NULL`,
    [sql.list(ids)],
  );
  return new Map(rows.map((row) => [text(row, 'id'), text(row, 'stored_at')]));
}

/** Stores what is not there yet; the caller's transaction makes a batch all or nothing. */
export async function importBatch(sql: Sql, batch: ImportBatch): Promise<Imported> {
  let stored = 0;
  const written = batch.entities.filter(({ isExtracted }) => isExtracted !== true);
  const { entities, relations, observations } = await changeGraph(sql, {
    createEntities: written,
    createRelations: batch.relations.filter(({ isExtracted }) => isExtracted !== true),
    // An entity that exists gets the observations that it does not have.
    addObservations: written.map(({ name, observations: contents }) => ({
      entityName: name,
      contents,
    })),
  });
  const added = new Set(entities.map(({ name }) => name));
  for (const { entityName, addedObservations } of observations)
    if (addedObservations.length > 0) added.add(entityName);
  stored += added.size + relations.length;
  const isExtracted = (one: Extractable): boolean => one.isExtracted === true;
  stored += (await createEntities(sql, batch.entities.filter(isExtracted), EXTRACTED)).length;
  stored += (await createRelations(sql, batch.relations.filter(isExtracted), EXTRACTED)).length;
  const indexed: Turn[] = [];
  for (const turn of batch.turns) {
    const imported = await importTurn(sql, turn);
    if (imported === undefined) continue;
    stored += 1;
    if (turn.isIndexed === true) indexed.push(imported);
  }
  await indexTurns(sql, indexed);
  for (const document of batch.documents) if (await importDocument(sql, document)) stored += 1;
  await importReadTexts(sql, batch.readTexts ?? new Map());
  const total = batch.entities.length + batch.relations.length + batch.turns.length + batch.documents.length;
  return { stored, unchanged: total - stored };
}

/** Their texts are embedded later. */
async function indexTurns(sql: Sql, turns: readonly Turn[]): Promise<void> {
  if (turns.length === 0) return;
  const entities = turns.map((turn) => indexedTurn(turn, undefined));
  const sessions = new Map(entities.map(({ session }) => [session.id, session]));
  await putEntities(
    sql,
    [...sessions.values(), ...entities.map(({ message }) => message)],
    entities.map(({ belongs }) => belongs),
    '',
  );
}

/** Undefined if it is stored already. */
async function importTurn(sql: Sql, turn: ImportedTurn): Promise<Turn | undefined> {
  const [known] = await sql.all('SELECT 1 AS one FROM memory_chat_history WHERE id = $1 LIMIT 1', [turn.id]);
  if (known !== undefined) return undefined;
  const words = sql.turnWords(turn.content, '$7');
  const [row] = await sql.all(
    `INSERT INTO memory_chat_history (id, session_id, agent_id, role, content, created_at${words.columns})
     VALUES ($1, $2, $3, $4, $5, $6${words.values}) RETURNING ${TURN}`,
    [turn.id, turn.sessionId, turn.agentId, turn.role, turn.content, turn.createdAt, ...words.parameters],
  );
  const stored = turnOf(row ?? {});
  await sql.run(
    `INSERT INTO memory_sessions (session_id, turns, first_at, last_at, last_seq) VALUES ($1, 1, $2, $2, $3)
     ON CONFLICT (session_id) DO UPDATE SET turns = memory_sessions.turns + 1, last_seq = excluded.last_seq,
       first_at = CASE WHEN excluded.first_at < memory_sessions.first_at THEN excluded.first_at
         ELSE memory_sessions.first_at END,
       last_at = CASE WHEN excluded.last_at > memory_sessions.last_at THEN excluded.last_at
         ELSE memory_sessions.last_at END`,
    [turn.sessionId, turn.createdAt, stored.seq],
  );
  await sql.run(
    'INSERT INTO memory_session_agents (session_id, agent_id) VALUES ($1, $2) ON CONFLICT DO NOTHING',
    [turn.sessionId, turn.agentId],
  );
  return stored;
}

async function importDocument(sql: Sql, document: NewDocument): Promise<boolean> {
  const known = await documentRecord(sql, document.origin, document.key);
  if (known?.hash === document.hash) return false;
  await putDocument(sql, document);
  return true;
}
