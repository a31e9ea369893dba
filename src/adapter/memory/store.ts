/**
 * The store of the memory backend. Two engines implement it, SQLite and PostgreSQL, and one contract test suite covers
 * both. When a promise resolves, the data is on disk.
 */

import type {
  AgentEntity,
  AgentRelation,
  Entity,
  EntityType,
  Relation,
  Role,
  Session,
  Stats,
  Turn,
} from '../../core/memory-model.ts';

export type {
  AgentEntity,
  AgentRelation,
  Entity,
  EntityType,
  Relation,
  RelationType,
  Role,
  Session,
  Stats,
  Turn,
} from '../../core/memory-model.ts';
export { ENTITY_TYPES, RELATION_TYPES, ROLES } from '../../core/memory-model.ts';

/** Length of the built-in embedder's vectors (spec, Collection `entities`); vectors of others may have any length. */
export const DIMENSIONS = 128;

/** What is searched by words, and what is embedded. An entity with an empty `searchText` is not searched at all. */
export interface SearchFields {
  /** Title of the document. */
  readonly title: string;
  /** Headings above the text, outermost first. */
  readonly heading: string;
  /** The text itself. */
  readonly searchText: string;
  /** What `agentGraph` searches; only for entities of agents. */
  readonly folded?: string;
  /** RFC 3339, UTC; only for entities with a time-to-live. */
  readonly storedAt?: string;
}

/** Changes to the entities that agents write, made in this order and all or none. */
export interface GraphChange {
  /** Where created entities and relations come from: `extracted` by a model from a stored text. Default: `agent`. */
  readonly origin?: 'extracted' | undefined;
  /** Entities whose name is in use are left as they are. */
  readonly createEntities?: readonly AgentEntity[];
  /** Relations that exist are left as they are. */
  readonly createRelations?: readonly AgentRelation[];
  /** Observations that exist are left as they are. An unknown entity fails the change. */
  readonly addObservations?: readonly { readonly entityName: string; readonly contents: readonly string[] }[];
  readonly deleteObservations?: readonly {
    readonly entityName: string;
    readonly observations: readonly string[];
  }[];
  readonly deleteRelations?: readonly AgentRelation[];
  /** Their relations are deleted too. */
  readonly deleteEntities?: readonly string[];
}

/** What a change has added and deleted; what existed before, or did not exist, is not part of it. */
export interface GraphChanged {
  readonly entities: readonly AgentEntity[];
  readonly relations: readonly AgentRelation[];
  readonly observations: readonly {
    readonly entityName: string;
    readonly addedObservations: readonly string[];
  }[];
  readonly deleted: { readonly entities: number; readonly observations: number; readonly relations: number };
}

/** Selects entities of agents: by name, by a text in name, type or observations, or all. */
export interface AgentGraphRequest {
  readonly names?: readonly string[] | undefined;
  readonly query?: string | undefined;
  /** The name behind which the page begins, from the previous page. */
  readonly cursor?: string | undefined;
  readonly expired?: Cutoffs;
}

export interface AgentGraph {
  /** By name. */
  readonly entities: readonly AgentEntity[];
  /** Relations that touch them; of all entities: those that begin at them. By names. */
  readonly relations: readonly AgentRelation[];
  /** Whether there are more relations than a page contains. */
  readonly isCut: boolean;
  readonly nextCursor: string | null;
}

/** An entity to store. Vectors of different embedders are never compared. */
export interface NewEntity extends Entity, Partial<Omit<SearchFields, 'searchText'>> {
  /**
   * A unit vector; undefined for an entity that is not searched, or whose text is embedded later (`unembedded`). Vectors
   * of one embedder have the same length.
   */
  readonly embedding: Float32Array | undefined;
  readonly searchText: string;
}

/** A searched text that one embedder has not embedded yet. */
export interface UnembeddedText extends SearchFields {
  /** Changes when the entity is written again. */
  readonly row: number;
  readonly type: EntityType;
}

/** Selects what is deleted. Several members together select what any of them selects. */
export interface ErasureRequest {
  /** Everything that mentions this name or text: entities, observations, turns, documents. */
  readonly about?: string | undefined;
  /** Names of entities of agents. */
  readonly entities?: readonly string[] | undefined;
  readonly sessions?: readonly string[] | undefined;
  /** Ids of `doc_file`s. */
  readonly documents?: readonly string[] | undefined;
}

export interface ErasureOptions {
  /** Deletes nothing. */
  readonly preview?: boolean | undefined;
  /** From a preview: deletes only if exactly what that showed is selected. */
  readonly token?: string | undefined;
}

/** What is, or would be, deleted. */
export interface Erasure {
  /** Stands for exactly this selection. */
  readonly token: string;
  readonly deleted: boolean;
  readonly counts: Readonly<
    Record<'entities' | 'observations' | 'relations' | 'turns' | 'documents', number>
  >;
  // The first of each kind.
  readonly entities: readonly string[];
  readonly observations: readonly { readonly entityName: string; readonly observation: string }[];
  readonly turns: readonly {
    readonly sessionId: string;
    readonly seq: number;
    readonly role: string;
    readonly createdAt: string;
    readonly excerpt: string;
  }[];
  readonly documents: readonly {
    readonly id: string;
    readonly title: string;
    readonly origin: Origin;
    readonly key: string;
  }[];
  /** Whether more is selected than one call deletes: repeat it. */
  readonly truncated: boolean;
  /** What will come back, and why. */
  readonly note?: string;
}

/** Selects turns; without any condition, all. */
export interface TurnSearch {
  readonly sessionId?: string | undefined;
  readonly agentId?: string | undefined;
  /** RFC 3339, UTC: not before. */
  readonly from?: string | undefined;
  /** RFC 3339, UTC: before. */
  readonly to?: string | undefined;
  /** Words that the content must contain, all of them, in any form. */
  readonly query?: string | undefined;
  readonly order: 'newest' | 'oldest';
  /** `seq` of the last turn of the previous page. */
  readonly cursor?: number | undefined;
  readonly limit: number;
  readonly expired?: Cutoffs;
}

/** Lines of an export. */
export interface ImportBatch {
  readonly entities: readonly AgentEntity[];
  readonly relations: readonly AgentRelation[];
  readonly turns: readonly Omit<Turn, 'seq'>[];
  readonly documents: readonly NewDocument[];
}

/** How many lines were stored, and how many had been there before. */
export interface Imported {
  readonly stored: number;
  readonly unchanged: number;
}

/** Selects entities; without any condition, all. */
export interface EntitySearch {
  /** A text that the name contains, in any case and punctuation, or words that the searched text contains, all of them. */
  readonly query?: string | undefined;
  readonly types?: readonly EntityType[] | undefined;
  /** `next` of the previous page. */
  readonly after?: EntityPlace | undefined;
  readonly limit: number;
}

/** A place in the order of entities by name, then id. */
export interface EntityPlace {
  readonly name: string;
  readonly id: string;
}

export interface EntityPage {
  readonly entities: readonly Pick<Entity, 'id' | 'name' | 'type'>[];
  readonly next: EntityPlace | null;
}

export interface NewTurn {
  readonly sessionId: string;
  readonly agentId: string;
  readonly role: Role;
  readonly content: string;
  /** A repeated call with the same key stores nothing and returns the first turn. */
  readonly idempotencyKey?: string | undefined;
}

/** Where a document came from: the docs folder, from which a sync may remove it again, or a call. */
export type Origin = 'docs_dir' | 'ingest';

/** A document with its chunks, replaced as a whole. */
export interface NewDocument {
  /** Identity of the document: source or title, or the path in the docs folder. Unique per origin. */
  readonly key: string;
  readonly origin: Origin;
  /** Hash of its bytes, the chunker's version and the embedder; if unchanged, nothing has to be done. */
  readonly hash: string;
  readonly embedder: string;
  /** The `doc_file` first, then its `doc_chunk`s in order. */
  readonly entities: readonly NewEntity[];
  readonly relations: readonly Relation[];
}

export interface DocumentRecord {
  readonly key: string;
  readonly origin: Origin;
  readonly hash: string;
  /** Id of its `doc_file`. */
  readonly id: string;
  readonly chunks: number;
}

export interface SearchScope {
  readonly types?: readonly EntityType[] | undefined;
  readonly limit: number;
}

/**
 * Times, RFC 3339 in UTC: turns, and entities with a time-to-live, that were stored at or before them have expired. Empty:
 * nothing has.
 */
export interface Cutoffs {
  readonly turns: string;
  readonly entities: string;
}

/** Every reading method leaves out what has expired by the given cutoffs; without any, nothing has. */
export interface Store {
  readonly kind: 'sqlite' | 'postgres';

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
  /** A page of the relations between entities of agents. */
  agentRelations(page: {
    readonly cursor?: string | undefined;
    readonly limit: number;
    readonly expired?: Cutoffs;
  }): Promise<{ readonly relations: readonly AgentRelation[]; readonly nextCursor: string | null }>;
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
   * transaction.
   */
  putEntities(
    entities: readonly NewEntity[],
    relations: readonly Relation[],
    embedder: string,
  ): Promise<void>;
  /**
   * Changes entities and relations of agents in one transaction.
   *
   * @throws AppError `memory_not_found` for observations of an unknown entity, `memory_invalid` for one that gets too large
   */
  changeGraph(change: GraphChange, expired?: Cutoffs): Promise<GraphChanged>;
  /** A page of the entities of agents, of at most `MEMORY_STORE_LIMITS.graphCharacters`, with their relations. */
  agentGraph(request: AgentGraphRequest): Promise<AgentGraph>;
  /** Replaces a whole document in one transaction; relations of others to its `doc_file` are kept. */
  putDocument(document: NewDocument): Promise<void>;
  /** One document, or undefined. */
  document(origin: Origin, key: string): Promise<DocumentRecord | undefined>;
  documents(origin: Origin): Promise<readonly DocumentRecord[]>;
  /** Removes documents with their chunks and relations; returns their number. */
  removeDocuments(origin: Origin, keys: readonly string[]): Promise<number>;

  /** Best first. Compares only vectors of this embedder; cosine in -1..1. */
  nearest(
    vector: Float32Array,
    embedder: string,
    scope: SearchScope,
  ): Promise<readonly { readonly id: string; readonly cosine: number }[]>;
  /**
   * Best first, by words; `rank` is specific to the engine and only orders. Terms are plain words, never query syntax.
   */
  lexical(
    terms: readonly string[],
    scope: SearchScope,
  ): Promise<readonly { readonly id: string; readonly rank: number }[]>;
  /** Number of searchable entities that contain each term, and of all searchable entities. */
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
  entities(ids: readonly string[], expired?: Cutoffs): Promise<readonly (Entity & SearchFields)[]>;
  /** Cosine of these entities to the vector, for candidates that were found by words only. */
  cosines(
    vector: Float32Array,
    embedder: string,
    ids: readonly string[],
  ): Promise<ReadonlyMap<string, number>>;
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
