/**
 * The store of the memory backend. Two engines implement it, SQLite and PostgreSQL, and one contract test suite covers
 * both. When a promise resolves, the data is on disk.
 */

import type {
  AgentRelation,
  Entity,
  EntityType,
  Erasure,
  Origin,
  Relation,
  Session,
  Stats,
  Turn,
} from '../../core/memory-model.ts';
import type {
  AgentGraph,
  AgentGraphRequest,
  ComparedVector,
  Cutoffs,
  DocumentRecord,
  DocumentRename,
  EntityPage,
  EntitySearch,
  ErasureOptions,
  ErasureRequest,
  Extractable,
  Extraction,
  FoundEntity,
  GraphChange,
  GraphChanged,
  ImportBatch,
  Imported,
  NewDocument,
  NewEntity,
  NewTurn,
  ReadText,
  RelatedTurns,
  SearchScope,
  TurnQuery,
  TurnSearch,
  UnembeddedText,
} from './store-values.ts';

export type {
  AgentEntity,
  AgentRelation,
  Entity,
  EntityType,
  Erasure,
  Origin,
  Relation,
  RelationType,
  Role,
  Session,
  Stats,
  Stored,
  Turn,
} from '../../core/memory-model.ts';
export { ENTITY_TYPES, ORIGINS, RELATION_TYPES, ROLES } from '../../core/memory-model.ts';
export type * from './store-values.ts';

/** Length of the built-in embedder's vectors (spec, Collection `entities`); vectors of others may have any length. */
export const DIMENSIONS = 128;

/** Every reading method leaves out what has expired by the given cutoffs; without any, nothing has. */
export interface Store {
  readonly kind: 'sqlite' | 'postgres';

  /** @throws AppError `memory_key_reused` */
  appendTurn(turn: NewTurn): Promise<{ readonly turn: Turn; readonly deduplicated: boolean }>;
  /** Most recent first; `cursor` comes from the previous page. */
  sessions(page: {
    readonly limit: number;
    readonly cursor?: string | undefined;
    readonly expired?: Cutoffs;
  }): Promise<{ readonly sessions: readonly Session[]; readonly nextCursor: string | null }>;
  /** Oldest first; undefined for a session without turns. */
  turns(
    sessionId: string,
    page: { readonly after: number; readonly limit: number; readonly expired?: Cutoffs },
  ): Promise<{ readonly turns: readonly Turn[]; readonly nextAfter: number | null } | undefined>;

  /** A page of turns of any session, of at most `MEMORY_STORE_LIMITS.turnCharacters`. */
  searchTurns(
    request: TurnSearch,
  ): Promise<{ readonly turns: readonly Turn[]; readonly nextCursor: number | null }>;
  /** Turns that contain any of the terms, the best by words, and those with the ids, each with its neighbors in its session. */
  relatedTurns(query: TurnQuery): Promise<RelatedTurns>;
  /** A page of the relations between entities of agents. */
  agentRelations(page: {
    readonly cursor?: string | undefined;
    readonly limit: number;
    readonly expired?: Cutoffs;
  }): Promise<{
    readonly relations: readonly (AgentRelation & Extractable)[];
    readonly nextCursor: string | null;
  }>;
  /** Stores what is not there yet, in one transaction. */
  importBatch(batch: ImportBatch): Promise<Imported>;
  /**
   * Deletes what the request selects, with everything derived from it: vectors, words, relations.
   *
   * @throws AppError `memory_changed`
   */
  erase(request: ErasureRequest, options: ErasureOptions): Promise<Erasure>;
  /** Deletes at most `limit` of each kind that has expired; returns their number. */
  expire(expired: Cutoffs, limit: number): Promise<number>;

  /**
   * Creates or updates entities outside of documents (workspaces, chat messages) and their relations, in one
   * transaction; nothing if they are of a turn, given by its id, that was deleted in the meantime.
   */
  putEntities(
    entities: readonly NewEntity[],
    relations: readonly Relation[],
    embedder: string,
    ofTurn?: string,
  ): Promise<void>;
  /**
   * Changes entities and relations of agents in one transaction.
   *
   * @throws AppError `memory_not_found` for observations of an unknown entity, `memory_invalid` for one that gets too large
   */
  changeGraph(change: GraphChange, expired?: Cutoffs): Promise<GraphChanged>;
  /** Stores it, to be deleted with its text; nothing if the text was deleted or written again in the meantime. */
  putExtraction(extraction: Extraction, expired?: Cutoffs): Promise<void>;
  /** Of the texts with these ids, those that a model has read. */
  readTexts(ids: readonly string[], expired?: Cutoffs): Promise<ReadonlyMap<string, ReadText>>;
  /** When entities with a time-to-live were stored, by id; RFC 3339, UTC. */
  storedTimes(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** A page of the entities of agents, of at most `MEMORY_STORE_LIMITS.graphCharacters`, with their relations. */
  agentGraph(request: AgentGraphRequest): Promise<AgentGraph>;
  /**
   * Replaces a whole document in one transaction; relations of others to its `doc_file` are kept, and so are vectors of texts that have
   * not changed.
   */
  putDocument(document: NewDocument): Promise<void>;
  /** One document, or undefined. */
  document(origin: Origin, key: string): Promise<DocumentRecord | undefined>;
  documents(origin: Origin): Promise<readonly DocumentRecord[]>;
  /** Removes entities outside of documents with their relations; returns their number. */
  removeEntities(ids: readonly string[]): Promise<number>;
  /** Gives documents other keys, all or none; their entities stay as they are. The new keys must be free. Returns their number. */
  renameDocuments(origin: Origin, renames: readonly DocumentRename[]): Promise<number>;
  /** Removes documents with their chunks and relations; returns their number. */
  removeDocuments(origin: Origin, keys: readonly string[]): Promise<number>;

  /** Best first. Compares only vectors of this embedder; cosine in -1..1. */
  nearest(
    vector: Float32Array,
    embedder: string,
    scope: SearchScope,
  ): Promise<readonly (FoundEntity & { readonly cosine: number })[]>;
  /**
   * Best first, by words; `rank` is specific to the engine and only orders. Terms are plain words, never query syntax.
   * With the cosine of each to a vector, if one is given; undefined for an entity without a vector of its embedder.
   */
  lexical(
    terms: readonly string[],
    scope: SearchScope,
    compared?: ComparedVector,
  ): Promise<readonly (FoundEntity & { readonly rank: number; readonly cosine: number | undefined })[]>;
  /**
   * Number of searchable entities that contain each term, and of all searchable entities. On PostgreSQL, the number of
   * entities with a common word is estimated in a large memory.
   */
  frequencies(
    terms: readonly string[],
  ): Promise<{ readonly total: number; readonly counts: ReadonlyMap<string, number> }>;

  /**
   * Searched texts without a vector of this embedder, in the order in which they were stored: the durable queue of what
   * remains to be embedded. `after` is the row of the last one that was returned; 0 at first.
   */
  unembedded(
    embedder: string,
    page: { readonly after: number; readonly limit: number },
  ): Promise<readonly UnembeddedText[]>;
  /** Number of those texts. */
  unembeddedCount(embedder: string): Promise<number>;
  /** Number of all searched texts. */
  textCount(): Promise<number>;
  /**
   * Stores vectors of texts from `unembedded`; undefined for a text without meaning. Rows that were written again or
   * removed in the meantime are ignored.
   */
  putVectors(
    embedder: string,
    vectors: readonly { readonly row: number; readonly embedding: Float32Array | undefined }[],
  ): Promise<void>;
  /** Removes the vectors of all other embedders; returns their number. */
  keepVectorsOf(embedder: string): Promise<number>;

  /** In the order of the ids, without unknown ones. */
  entities(ids: readonly string[], expired?: Cutoffs): Promise<readonly FoundEntity[]>;
  /** Entities of this name; if there is none, those whose name has the same words, in any case and punctuation. */
  byName(name: string, limit: number, expired?: Cutoffs): Promise<readonly Entity[]>;
  /** Names similar to the requested one, best first. */
  similarNames(name: string, limit: number, expired?: Cutoffs): Promise<readonly string[]>;
  /** Edges that leave (`out`), enter (`in`) or touch (`both`) any of the ids, highest weight first. */
  edges(
    ids: readonly string[],
    direction: 'out' | 'in' | 'both',
    limit: number,
  ): Promise<readonly Relation[]>;
  /** A page of entities by name, without content. */
  searchEntities(request: EntitySearch): Promise<EntityPage>;
  /** A page of all entities by id, without content, for the overview of the graph. */
  topology(page: {
    readonly types?: readonly EntityType[] | undefined;
    readonly limit: number;
    readonly cursor?: string | undefined;
    readonly expired?: Cutoffs;
  }): Promise<{
    readonly nodes: readonly Pick<Entity, 'id' | 'name' | 'type'>[];
    readonly nextCursor: string | null;
  }>;
  stats(): Promise<Stats>;

  /** Runs the task, or resolves to undefined if another process is running a task of the same name. */
  exclusively<T>(name: string, task: () => Promise<T>): Promise<T | undefined>;
  /** Stores a small value that survives restarts, such as the result of the last sync. */
  setNote(key: string, value: unknown): Promise<void>;
  note(key: string): Promise<unknown>;
  close(): Promise<void>;
}

/** A namespace as it is listed. */
export interface NamespaceSize {
  readonly name: string;
  /** Bytes on disk. */
  readonly bytes: number;
}

/** A consistent copy of a namespace in a temporary file of the store. */
export interface Backup {
  readonly path: string;
  readonly bytes: number;
  /** Deletes the file. */
  discard(): Promise<void>;
}

/**
 * An open store: itself the namespace `default`, and the others through `namespace`. Namespaces share nothing but the
 * process: each has a file (SQLite) or a schema (PostgreSQL) of its own, so no statement can reach another one's data.
 * A namespace comes into being with its first write; until then it reads as empty.
 */
export interface NamespacedStore extends Store {
  /** The store of a namespace; its `close` does nothing. */
  namespace(name: string): Store;
  /** All namespaces by name, including `default`; `cursor` is the last name of the previous page. */
  namespaces(page: {
    readonly limit: number;
    readonly cursor?: string | undefined;
  }): Promise<{ readonly namespaces: readonly NamespaceSize[]; readonly nextCursor: string | null }>;
  /** Deletes a namespace other than `default` with everything in it; false if there is none. */
  removeNamespace(name: string): Promise<boolean>;
  /** Copies a namespace while it is in use. Throws `memory_not_found` or, on PostgreSQL, `memory_invalid`. */
  backup(namespace: string): Promise<Backup>;
}
