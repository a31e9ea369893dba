import { type Row, text } from '../../../core/sql-row.ts';
import {
  checkDocument,
  checkGraph,
  checkGraphChange,
  checkImport,
  checkLimit,
  checkLookups,
  checkName,
  checkText,
  checkTurn,
  checkVector,
} from '../check-input.ts';
import type { Cutoffs, NewDocument, Store } from '../store.ts';
import { changeGraph, deleteAgentEntities, lockGraph } from './agent-graph.ts';
import { agentGraph } from './agent-graph-pages.ts';
import { appendTurn, sessions, turns } from './chat.ts';
import {
  document,
  documents,
  putDocument,
  putEntities,
  removeDocuments,
  removeEntities,
  renameDocuments,
} from './documents.ts';
import { searchEntities } from './entity-search.ts';
import { dropEntities, dropTurns, erase } from './erasure.ts';
import { putExtraction } from './extracted.ts';
import { byName, edges, entities, similarNames, topology } from './graph.ts';
import { note, setNote, stats } from './overview.ts';
import { readTexts } from './read-texts.ts';
import { relatedTurns } from './related-turns.ts';
import type { Engine, Sql } from './sql.ts';
import { agentRelations, importBatch, storedTimes } from './transfer.ts';
import { searchTurns } from './turn-search.ts';
import { keepVectorsOf, putVectors, textCount, unembedded, unembeddedCount } from './vectors.ts';

/** The methods of a store that consist of SQL statements. */
export type Operations = Omit<Store, 'kind' | 'exclusively' | 'close'>;
export type Operation = keyof Operations;

type Run<Name extends Operation> = (
  engine: Engine,
  ...args: Parameters<Operations[Name]>
) => ReturnType<Operations[Name]>;

export interface EmbeddedVectors {
  readonly embedder: string;
  readonly vectors: readonly { readonly embedding: Float32Array | undefined }[];
}

interface Entry<Name extends Operation> {
  /** Whether it runs in a transaction and waits for the disk. */
  readonly writes: boolean;
  /** Whether what it deletes must be gone from the disk before it is acknowledged (docs/decisions/0053). */
  readonly erases?: (...args: Parameters<Operations[Name]>) => boolean;
  /** Whether it brings the namespace into being; other writes have nothing to change in a namespace without data. */
  readonly creates: boolean;
  /** The vectors that it stores, for engines that prepare an index for those of each embedder. */
  readonly embeds?: (...args: Parameters<Operations[Name]>) => readonly EmbeddedVectors[];
  /** Name of an argument that is a text or a list of texts, for errors. Default: that of the operation. */
  readonly lookup?: string;
  /** Throws `memory_invalid` before anything is sent. */
  readonly check: (...args: Parameters<Operations[Name]>) => void;
  readonly run: Run<Name>;
}

const read = <Name extends Operation>(check: Entry<Name>['check'], run: Run<Name>): Entry<Name> => ({
  writes: false,
  creates: false,
  check,
  run,
});
const write = <Name extends Operation>(check: Entry<Name>['check'], run: Run<Name>): Entry<Name> => ({
  writes: true,
  creates: true,
  check,
  run,
});
/** A write that only changes or removes what is there. */
const change = <Name extends Operation>(check: Entry<Name>['check'], run: Run<Name>): Entry<Name> => ({
  ...write(check, run),
  creates: false,
});
const nothing = (): void => undefined;
const vectorsOf = ({ embedder, entities: vectors }: NewDocument): EmbeddedVectors => ({ embedder, vectors });

/** Every statement-based method of a store, for both engines. */
export const OPERATIONS: { readonly [Name in Operation]: Entry<Name> } = {
  appendTurn: write<'appendTurn'>(checkTurn, appendTurn),
  sessions: read<'sessions'>((page) => checkLimit(page.limit), sessions),
  turns: { ...read<'turns'>((_, page) => checkLimit(page.limit), turns), lookup: 'sessionId' },
  searchTurns: read<'searchTurns'>((request) => checkLimit(request.limit), searchTurns),
  relatedTurns: read<'relatedTurns'>((query) => checkLimit(query.limit), relatedTurns),
  agentRelations: read<'agentRelations'>((page) => checkLimit(page.limit), agentRelations),
  importBatch: {
    ...write<'importBatch'>(checkImport, importBatch),
    embeds: ({ documents: imported }) => imported.map(vectorsOf),
  },
  erase: {
    ...change<'erase'>((...args) => checkLookups(args, 'erase'), erase),
    erases: (_, options) => options.preview !== true,
  },
  expire: { ...change<'expire'>(nothing, expire), erases: () => true },
  putEntities: {
    ...write<'putEntities'>((list, relations, embedder) => {
      checkGraph(list, relations);
      checkText(embedder, 'embedder');
    }, putEntities),
    embeds: (vectors, _, embedder) => [{ embedder, vectors }],
  },
  changeGraph: {
    ...write<'changeGraph'>(checkGraphChange, changeGraph),
    erases: (changes) => Object.keys(changes).some((kind) => kind.startsWith('delete')),
  },
  putExtraction: change<'putExtraction'>(
    ({ entities: createEntities, relations: createRelations }) =>
      checkGraphChange({ createEntities, createRelations }),
    putExtraction,
  ),
  readTexts: { ...read<'readTexts'>(nothing, readTexts), lookup: 'id' },
  storedTimes: { ...read<'storedTimes'>(nothing, storedTimes), lookup: 'id' },
  agentGraph: read<'agentGraph'>(nothing, agentGraph),
  putDocument: {
    ...write<'putDocument'>(checkDocument, putDocument),
    embeds: (document) => [vectorsOf(document)],
  },
  document: read<'document'>(nothing, document),
  documents: read<'documents'>(nothing, documents),
  removeEntities: {
    ...change<'removeEntities'>((...args) => checkLookups(args, 'removeEntities'), removeEntities),
    erases: () => true,
  },
  renameDocuments: change<'renameDocuments'>((_, renames) => {
    for (const [index, { to }] of renames.entries()) checkName(to, `renames[${index}].to`);
  }, renameDocuments),
  removeDocuments: {
    ...change<'removeDocuments'>((...args) => checkLookups(args, 'removeDocuments'), removeDocuments),
    erases: () => true,
  },
  nearest: read<'nearest'>(
    (vector, _, scope) => {
      checkVector(vector, 'vector');
      checkLimit(scope.limit);
    },
    (engine, ...args) => engine.nearest(...args),
  ),
  lexical: read<'lexical'>(
    (_, scope, compared) => {
      checkLimit(scope.limit);
      if (compared !== undefined) checkVector(compared.vector, 'vector');
    },
    (engine, ...args) => engine.lexical(...args),
  ),
  frequencies: read<'frequencies'>(nothing, (engine, terms) => engine.frequencies(terms)),
  unembedded: read<'unembedded'>((_, page) => checkLimit(page.limit), unembedded),
  unembeddedCount: read<'unembeddedCount'>(nothing, unembeddedCount),
  textCount: read<'textCount'>(nothing, textCount),
  putVectors: {
    ...change<'putVectors'>((embedder, vectors) => {
      checkName(embedder, 'embedder');
      for (const [index, { embedding }] of vectors.entries())
        if (embedding !== undefined) checkVector(embedding, `vectors[${index}]`);
    }, putVectors),
    embeds: (embedder, vectors) => [{ embedder, vectors }],
  },
  keepVectorsOf: change<'keepVectorsOf'>((embedder) => checkName(embedder, 'embedder'), keepVectorsOf),
  entities: { ...read<'entities'>(nothing, entities), lookup: 'id' },
  byName: { ...read<'byName'>((_, limit) => checkLimit(limit), byName), lookup: 'name' },
  similarNames: read<'similarNames'>((_, limit) => checkLimit(limit), similarNames),
  edges: read<'edges'>((_ids, _direction, limit) => checkLimit(limit), edges),
  searchEntities: read<'searchEntities'>((request) => checkLimit(request.limit), searchEntities),
  topology: read<'topology'>((page) => checkLimit(page.limit), topology),
  stats: read<'stats'>(nothing, stats),
  setNote: change<'setNote'>((key) => checkName(key, 'key'), setNote),
  note: read<'note'>(nothing, note),
};

export type Call = (name: Operation, args: readonly unknown[]) => Promise<unknown>;

/** Creates a store's methods from one function that runs operations. Validates the arguments first. */
export function operationsOver(call: Call): Operations {
  const methods = NAMES.map((name) => [
    name,
    async (...args: readonly unknown[]) => {
      const { check, writes, lookup = name } = entryOf(name);
      check(...args);
      if (!writes) checkLookups(args, lookup);
      return call(name, args);
    },
  ]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a method for each name
  return Object.fromEntries(methods) as Operations;
}

/** An entry whose arguments were checked for its name before: `operationsOver` has their types. */
interface AnyEntry extends Pick<Entry<Operation>, 'writes' | 'creates' | 'lookup'> {
  check(...args: readonly unknown[]): void;
  run(engine: Engine, ...args: readonly unknown[]): Promise<unknown>;
  embeds?(...args: readonly unknown[]): readonly EmbeddedVectors[];
  erases?(...args: readonly unknown[]): boolean;
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the compiler relates no name to its arguments
export const entryOf = (name: Operation): AnyEntry => OPERATIONS[name] as unknown as AnyEntry;

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
const NAMES = Object.keys(OPERATIONS) as readonly Operation[];

/** Runs one operation by the name that `operationsOver` passes on. */
export function runOperation(engine: Engine, name: Operation, args: readonly unknown[]): Promise<unknown> {
  return entryOf(name).run(engine, ...args);
}

/** The vectors that an operation stores. */
export function vectorsStoredBy(name: Operation, args: readonly unknown[]): readonly EmbeddedVectors[] {
  return entryOf(name).embeds?.(...args) ?? [];
}

/** Deletes some of what has expired, the oldest first; returns the number of turns, entities and documents. */
async function expire(sql: Sql, cutoffs: Cutoffs, limit: number): Promise<number> {
  await lockGraph(sql);
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
