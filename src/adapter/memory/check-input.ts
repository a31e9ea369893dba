import { AppError } from '../../core/errors.ts';
import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import {
  type AgentRelation,
  ENTITY_TYPES,
  type GraphChange,
  type ImportBatch,
  type NewDocument,
  type NewEntity,
  type NewTurn,
  RELATION_TYPES,
  type Relation,
  ROLES,
  type Turn,
} from './store.ts';

/** Tolerance for the length of a unit vector: the rounding error of Float32 is far smaller. */
const UNIT_TOLERANCE = 1e-3;

/**
 * Refuses input that a store cannot keep, before anything is sent: both engines then accept the same input, and
 * accepted text is returned unchanged. Every function throws `memory_invalid` with the field, the problem and its
 * solution.
 */
function refuse(where: string, problem: string): never {
  throw new AppError('memory_invalid', { message: `${where}: ${problem}` });
}

/** PostgreSQL cannot store NUL, and UTF-8 cannot encode half of a surrogate pair. */
export function checkText(value: string, where: string): void {
  if (typeof value !== 'string') refuse(where, 'expected a text');
  if (value.includes('\0')) refuse(where, 'contains a NUL character, which cannot be stored: remove it');
  if (!value.isWellFormed())
    refuse(where, 'contains half of a surrogate pair, which cannot be stored: remove or replace it');
}

/**
 * Checks all texts in the arguments of a lookup, however deeply they are nested. Errors name the member; `where` is the
 * name of an argument that is not an object.
 */
export function checkLookups(args: readonly unknown[], where: string): void {
  for (const arg of args)
    if (arg?.constructor === Object)
      for (const [member, value] of Object.entries(arg)) checkTexts(value, member);
    else checkTexts(arg, where);
}

function checkTexts(value: unknown, where: string): void {
  if (typeof value === 'string') checkText(value, where);
  else if (Array.isArray(value))
    for (const [index, one] of value.entries()) checkTexts(one, `${where}[${index}]`);
  else if (value?.constructor === Object)
    for (const [member, one] of Object.entries(value)) checkTexts(one, `${where}.${member}`);
}

export function checkName(value: string, where: string, most: number = MEMORY_STORE_LIMITS.nameBytes): void {
  checkText(value, where);
  if (value === '') refuse(where, 'is empty');
  if (Buffer.byteLength(value) > most) refuse(where, `is longer than ${most} bytes of UTF-8: shorten it`);
}

function checkId(value: string, where: string): void {
  checkName(value, where, MEMORY_STORE_LIMITS.idBytes);
}

function checkOneOf(value: string, allowed: readonly string[], where: string): void {
  if (!allowed.includes(value)) refuse(where, `expected one of ${allowed.join(', ')}`);
}

export function checkVector(vector: Float32Array, where: string): void {
  const most = MEMORY_STORE_LIMITS.dimensions;
  if (vector.length === 0 || vector.length > most)
    refuse(where, `has ${vector.length} numbers, expected 1 to ${most}: use an embedder of that size`);
  let square = 0;
  for (const value of vector) square += value * value;
  // NaN fails this comparison too.
  if (!(Math.abs(Math.sqrt(square) - 1) <= UNIT_TOLERANCE))
    refuse(where, 'is not of length 1: divide it by its length');
}

export function checkLimit(limit: number, where = 'limit'): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > MEMORY_STORE_LIMITS.page)
    refuse(where, `expected a whole number from 1 to ${MEMORY_STORE_LIMITS.page}`);
}

export function checkTurn(turn: Omit<NewTurn, 'role'> & Pick<Turn, 'role'>): void {
  checkId(turn.sessionId, 'sessionId');
  checkId(turn.agentId, 'agentId');
  checkOneOf(turn.role, ROLES, 'role');
  checkText(turn.content, 'content');
  if (turn.idempotencyKey !== undefined) checkId(turn.idempotencyKey, 'idempotencyKey');
}

function checkEntity(entity: NewEntity, where: string): void {
  checkId(entity.id, `${where}.id`);
  checkName(entity.name, `${where}.name`);
  checkOneOf(entity.type, ENTITY_TYPES, `${where}.type`);
  checkText(entity.content, `${where}.content`);
  checkText(entity.title ?? '', `${where}.title`);
  checkText(entity.heading ?? '', `${where}.heading`);
  checkText(entity.searchText, `${where}.searchText`);
  if (entity.embedding !== undefined) checkVector(entity.embedding, `${where}.embedding`);
}

function checkRelation(relation: Relation, where: string): void {
  checkId(relation.fromId, `${where}.fromId`);
  checkId(relation.toId, `${where}.toId`);
  checkOneOf(relation.relationType, RELATION_TYPES, `${where}.relationType`);
  if (!Number.isFinite(relation.weight)) refuse(`${where}.weight`, 'expected a finite number');
}

/** Checks the entities and relations of one write. If an id occurred twice, the result would depend on the order. */
export function checkGraph(entities: readonly NewEntity[], relations: readonly Relation[]): void {
  const ids = new Set<string>();
  for (const [index, entity] of entities.entries()) {
    checkEntity(entity, `entities[${index}]`);
    if (ids.has(entity.id)) refuse(`entities[${index}].id`, 'is also the id of another entity in this call');
    ids.add(entity.id);
  }
  for (const [index, relation] of relations.entries()) checkRelation(relation, `relations[${index}]`);
}

/** Checks every text of a change, and its bounds. */
export function checkGraphChange(change: GraphChange): void {
  const { createEntities = [], createRelations = [], addObservations = [] } = change;
  const { deleteEntities = [], deleteRelations = [], deleteObservations = [] } = change;
  for (const [member, list] of Object.entries(change))
    if (list.length > MEMORY_STORE_LIMITS.graphChanges)
      refuse(
        member,
        `has ${list.length} items, the maximum is ${MEMORY_STORE_LIMITS.graphChanges}: use several calls`,
      );
  for (const [index, { name, entityType, observations }] of createEntities.entries()) {
    checkName(name, `entities[${index}].name`);
    checkLength(entityType, MEMORY_STORE_LIMITS.entityTypeLength, `entities[${index}].entityType`);
    checkObservations(observations, `entities[${index}].observations`);
  }
  for (const [index, relation] of createRelations.entries())
    checkAgentRelation(relation, `relations[${index}]`);
  for (const [index, { entityName, contents }] of addObservations.entries()) {
    checkName(entityName, `observations[${index}].entityName`);
    checkObservations(contents, `observations[${index}].contents`);
  }
  checkLookups([{ deleteEntities, deleteRelations, deleteObservations }], 'delete');
}

function checkAgentRelation({ from, to, relationType }: AgentRelation, where: string): void {
  checkName(from, `${where}.from`);
  checkName(to, `${where}.to`);
  checkName(relationType, `${where}.relationType`);
  checkLength(relationType, MEMORY_STORE_LIMITS.relationTypeLength, `${where}.relationType`);
}

function checkObservations(list: readonly string[], where: string): void {
  for (const [index, one] of list.entries())
    checkLength(one, MEMORY_STORE_LIMITS.observationLength, `${where}[${index}]`);
}

function checkLength(value: string, most: number, where: string): void {
  checkText(value, where);
  if (value.length > most)
    refuse(where, `has ${value.length} characters, the maximum is ${most}: shorten it`);
}

export function checkImport({ entities, relations, turns, documents }: ImportBatch): void {
  checkGraphChange({ createEntities: entities, createRelations: relations });
  for (const [index, { id, createdAt, ...turn }] of turns.entries()) {
    checkId(id, `turns[${index}].id`);
    checkText(createdAt, `turns[${index}].createdAt`);
    checkTurn(turn);
  }
  for (const document of documents) checkDocument(document);
}

export function checkDocument(document: NewDocument): void {
  checkName(document.key, 'key');
  checkOneOf(document.origin, ['docs_dir', 'ingest'], 'origin');
  checkName(document.hash, 'hash');
  checkName(document.embedder, 'embedder');
  if (document.entities[0]?.type !== 'doc_file') refuse('entities[0].type', 'expected doc_file');
  checkGraph(document.entities, document.relations);
}
