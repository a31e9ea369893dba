import { createHash } from 'node:crypto';
import { AppError } from '../../../core/errors.ts';
import { stringIn } from '../../../core/foreign.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { jsonObject, number, type Row, text } from '../../../core/sql-row.ts';
import { docsPlace } from '../docs-folders.ts';
import { agentEntityId, chatMessageId, workspaceId } from '../ids.ts';
import { nameKey } from '../plain-words.ts';
import type { Erasure, ErasureOptions, ErasureRequest } from '../store.ts';
import { changeGraph, deleteAgentEntities, lockGraph, observationsOf } from './agent-graph.ts';
import { removeDocuments } from './documents.ts';
import { deleteExtracted, deleteLost, lostWith } from './extracted.ts';
import type { Sql } from './sql.ts';

/** Entities, turns and documents that one erasure deletes; the rest needs another one. */
const MOST: number = MEMORY_STORE_LIMITS.erased;

/** What an erasure deletes. */
interface Plan {
  readonly entities: Set<string>;
  readonly observations: Map<string, Set<string>>;
  readonly turns: Map<string, Row>;
  /** Ids of entities of type `chat_message`. */
  readonly messages: Set<string>;
  /** By their file's id. */
  readonly documents: Map<string, Row>;
  isCut: boolean;
}

/**
 * Finds what a request selects and, unless it is a preview, deletes it in the caller's transaction.
 *
 * @throws AppError `memory_changed` if a token was given and the selection is no longer the one that it stands for
 */
export async function erase(sql: Sql, request: ErasureRequest, options: ErasureOptions): Promise<Erasure> {
  await lockGraph(sql);
  const plan: Plan = {
    entities: new Set(),
    observations: new Map(),
    turns: new Map(),
    messages: new Set(),
    documents: new Map(),
    isCut: false,
  };
  await planNamed(sql, plan, request);
  if (request.about !== undefined) await planAbout(sql, plan, request.about);
  await planExtracted(sql, plan);
  const erasure = await described(sql, plan);
  if (options.preview === true) return erasure;
  if (options.token !== undefined && options.token !== erasure.token) throw new AppError('memory_changed');
  await carryOut(sql, plan);
  return { ...erasure, deleted: true };
}

async function planNamed(sql: Sql, plan: Plan, request: ErasureRequest): Promise<void> {
  for (const name of request.entities ?? []) await planEntities(sql, plan, 'id = $1', agentEntityId(name));
  for (const id of request.documents ?? []) await planDocuments(sql, plan, 'file_id = $1', id);
  for (const id of request.sessions ?? []) await planTurns(sql, plan, 'session_id = $1', id);
}

/** Texts are about something if they contain its words, next to each other, in any case. */
async function planAbout(sql: Sql, plan: Plan, about: string): Promise<void> {
  const key = nameKey(about);
  if (key === '')
    throw new AppError('memory_invalid', {
      message: 'about: expected a name or text with letters or digits',
    });
  const mentions = (value: string): boolean => ` ${nameKey(value)} `.includes(` ${key} `);
  const phrase = sql.wordQuery(about, 'phrase');
  await planTurns(sql, plan, sql.matches('turns', '$1'), phrase, (row) => mentions(text(row, 'content')));
  // The words of names are searched literally, because names of sessions and of ends of relations are not indexed.
  const [first = ''] = key.split(' ');
  await planEntities(sql, plan, `name_key LIKE $1`, `%${first}%`, (row) => mentions(text(row, 'name')));
  for (const session of await sql.all(
    'SELECT session_id FROM memory_sessions WHERE lower(session_id) LIKE $1 LIMIT $2',
    [`%${first}%`, MOST],
  ))
    if (mentions(text(session, 'session_id')))
      await planTurns(sql, plan, 'session_id = $1', text(session, 'session_id'));
  const found = await sql.all(
    `SELECT id, name, type, title, content, metadata, document FROM memory_entities
     WHERE ${sql.matches('entities', '$1')} ORDER BY row LIMIT $2`,
    [phrase, MOST + 1],
  );
  if (found.length > MOST) plan.isCut = true;
  for (const row of found.slice(0, MOST)) {
    if (text(row, 'type') === 'entity') planObservations(plan, row, mentions);
    else if (!mentions(`${text(row, 'name')} ${text(row, 'title')} ${text(row, 'content')}`)) continue;
    else if (text(row, 'type') === 'chat_message') plan.messages.add(text(row, 'id'));
    else if (row['document'] !== null)
      await planDocuments(sql, plan, 'document = $1', number(row, 'document'));
  }
}

async function planEntities(
  sql: Sql,
  plan: Plan,
  condition: string,
  value: string,
  fits: (row: Row) => boolean = () => true,
): Promise<void> {
  const rows = await sql.all(
    `SELECT name FROM memory_entities WHERE type = 'entity' AND ${condition} ORDER BY id LIMIT $2`,
    [value, MOST + 1],
  );
  if (rows.length > MOST) plan.isCut = true;
  for (const row of rows.slice(0, MOST).filter(fits)) plan.entities.add(text(row, 'name'));
}

function planObservations(plan: Plan, row: Row, mentions: (text: string) => boolean): void {
  const name = text(row, 'name');
  const found = observationsOf(row).filter(mentions);
  if (found.length > 0 && !plan.entities.has(name)) plan.observations.set(name, new Set(found));
}

async function planTurns(
  sql: Sql,
  plan: Plan,
  condition: string,
  value: ReturnType<Sql['wordQuery']>,
  fits: (row: Row) => boolean = () => true,
): Promise<void> {
  const rows = await sql.all(
    `SELECT seq, id, session_id, role, content, created_at FROM memory_chat_history
     WHERE ${condition} ORDER BY seq LIMIT $2`,
    [value, MOST + 1],
  );
  if (rows.length > MOST) plan.isCut = true;
  for (const row of rows.slice(0, MOST).filter(fits)) {
    plan.turns.set(text(row, 'id'), row);
    plan.messages.add(chatMessageId(text(row, 'id')));
  }
}

async function planDocuments(sql: Sql, plan: Plan, condition: string, value: string | number): Promise<void> {
  const rows = await sql.all(
    `SELECT d.origin AS origin, d.key AS key, d.file_id AS file_id, e.name AS name, e.metadata AS metadata
     FROM memory_documents AS d JOIN memory_entities AS e ON e.id = d.file_id WHERE d.${condition}`,
    [value],
  );
  for (const row of rows) plan.documents.set(text(row, 'file_id'), row);
}

/** What was extracted from the texts of the plan. */
async function planExtracted(sql: Sql, plan: Plan): Promise<void> {
  const chunks = await sql.all(
    `SELECT c.id AS id FROM memory_documents AS d JOIN memory_entities AS c ON c.document = d.document
     WHERE ${sql.among('d.file_id', '$1')}`,
    [sql.list([...plan.documents.keys()])],
  );
  const lost = await lostWith(sql, [...plan.messages, ...chunks.map((row) => text(row, 'id'))]);
  for (const { name } of lost.entities) plan.entities.add(name);
  for (const { name, observations } of lost.emptied)
    if (observations.length > 0 && !plan.entities.has(name))
      plan.observations.set(name, new Set(observations));
  for (const name of plan.entities) plan.observations.delete(name);
}

async function described(sql: Sql, plan: Plan): Promise<Erasure> {
  const ids = sql.list([...plan.entities].map(agentEntityId));
  const [counted] = await sql.all(
    `SELECT count(*) AS n FROM memory_relations WHERE ${sql.among('from_id', '$1')} OR ${sql.among('to_id', '$1')}`,
    [ids],
  );
  const observations = [...plan.observations].flatMap(([entityName, texts]) =>
    [...texts].map((observation) => ({ entityName, observation })),
  );
  const documents = [...plan.documents.values()].map((row) => ({
    id: text(row, 'file_id'),
    title: text(row, 'name'),
    origin: text(row, 'origin'),
    key: shownKey(row),
  }));
  const turns = [...plan.turns.values()].sort((a, b) => number(a, 'seq') - number(b, 'seq'));
  const files = documents.filter(({ origin }) => origin === 'docs_dir').map(({ key }) => key);
  const { erasedShown } = MEMORY_STORE_LIMITS;
  return {
    token: tokenOf(plan),
    deleted: false,
    counts: {
      entities: plan.entities.size,
      observations: observations.length,
      relations: counted === undefined ? 0 : number(counted, 'n'),
      turns: turns.length,
      documents: documents.length,
    },
    entities: [...plan.entities].slice(0, erasedShown),
    observations: observations.slice(0, erasedShown),
    turns: turns.slice(0, erasedShown).map((row) => ({
      sessionId: text(row, 'session_id'),
      seq: number(row, 'seq'),
      role: text(row, 'role'),
      createdAt: text(row, 'created_at'),
      excerpt: text(row, 'content').slice(0, EXCERPT).toWellFormed(),
    })),
    documents: documents.slice(0, erasedShown),
    truncated: plan.isCut,
    ...(files.length === 0 ? {} : { note: noteOn(files) }),
  };
}

/** The path of a document in the docs folder; in a further docs folder, its absolute one. */
function shownKey(row: Row): string {
  const key = text(row, 'key');
  const source = docsPlace(key).path === key ? undefined : jsonObject(row, 'metadata')['source'];
  return stringIn(source) ?? key;
}

const EXCERPT = 120;

function noteOn(files: readonly string[]): string {
  const named = files.slice(0, 5).join(', ');
  const more = files.length > 5 ? ` and ${files.length - 5} more` : '';
  return (
    `${named}${more}: stored again by the next sync unless the file is removed from the docs folder or no longer ` +
    'contains the text'
  );
}

function tokenOf({ entities, observations, turns, messages, documents, isCut }: Plan): string {
  const parts = [
    [...entities].sort(),
    [...observations].map(([name, texts]) => [name, [...texts].sort()]).sort(),
    [...turns.keys()].sort(),
    [...messages].sort(),
    [...documents.keys()].sort(),
    isCut,
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}

async function carryOut(sql: Sql, plan: Plan): Promise<void> {
  await dropEntities(sql, [...plan.messages]);
  const sessions = new Set([...plan.turns.values()].map((row) => text(row, 'session_id')));
  await dropTurns(sql, [...plan.turns.keys()], [...sessions]);
  for (const row of plan.documents.values())
    await removeDocuments(sql, text(row, 'origin'), [text(row, 'key')]);
  // What was extracted from those texts is gone or empty already.
  await deleteExtracted(sql, plan.observations);
  await changeGraph(sql, {
    deleteObservations: [...plan.observations].map(([entityName, texts]) => ({
      entityName,
      observations: [...texts],
    })),
  });
  await deleteAgentEntities(sql, [...plan.entities].map(agentEntityId));
}

/** Deletes entities that belong to no document, with their relations and what was extracted from them. The graph is locked. */
export async function dropEntities(sql: Sql, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const list = sql.list(ids);
  const lost = await lostWith(sql, ids);
  await sql.run(`DELETE FROM memory_relations WHERE ${sql.among('from_id', '$1')}`, [list]);
  await sql.run(`DELETE FROM memory_relations WHERE ${sql.among('to_id', '$1')}`, [list]);
  await sql.run(`DELETE FROM memory_entities WHERE ${sql.among('id', '$1')}`, [list]);
  await deleteLost(sql, lost);
}

/** Deletes turns by id; a session without turns is deleted with everything that names it. */
export async function dropTurns(
  sql: Sql,
  ids: readonly string[],
  sessions: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await sql.run(`DELETE FROM memory_chat_history WHERE ${sql.among('id', '$1')}`, [sql.list(ids)]);
  const list = sql.list(sessions);
  const left = (column: string): string =>
    `(SELECT ${column} FROM memory_chat_history AS t WHERE t.session_id = memory_sessions.session_id)`;
  await sql.run(
    `UPDATE memory_sessions SET turns = ${left('count(*)')}, first_at = coalesce(${left('min(created_at)')}, first_at),
       last_at = coalesce(${left('max(created_at)')}, last_at), last_seq = coalesce(${left('max(seq)')}, last_seq)
     WHERE ${sql.among('session_id', '$1')}`,
    [list],
  );
  const emptied = await sql.all(
    `DELETE FROM memory_sessions WHERE ${sql.among('session_id', '$1')} AND turns = 0 RETURNING session_id`,
    [list],
  );
  const gone = emptied.map((row) => text(row, 'session_id'));
  await sql.run(
    `DELETE FROM memory_session_agents WHERE ${sql.among('session_id', '$1')} AND NOT EXISTS
       (SELECT 1 FROM memory_chat_history AS t
        WHERE t.session_id = memory_session_agents.session_id AND t.agent_id = memory_session_agents.agent_id)`,
    [list],
  );
  await dropEntities(
    sql,
    gone.map((id) => workspaceId('session', id)),
  );
}
