/** What a store takes and returns. */
import type {
  AgentEntity,
  AgentRelation,
  Entity,
  EntityType,
  Origin,
  Relation,
  Role,
  Turn,
} from '../../core/memory-model.ts';

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
  /** Entities whose name is in use are left as they are. */
  readonly createEntities?: readonly (AgentEntity & { readonly storedAt?: string | undefined })[];
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

/** What a model has extracted from a stored text. Entities and relations that exist are left as they are. */
export interface Extraction {
  /** Row of the text. */
  readonly row: number;
  readonly entities: readonly AgentEntity[];
  readonly relations: readonly AgentRelation[];
  /** Ids of the `chat_message`s that the text, another one, makes outdated. */
  readonly outdated: readonly string[];
}

/** What a model has extracted from a text that it has read. */
export interface ReadText {
  /** Names that the text has, and whether the entity was created from it. */
  readonly entities: readonly { readonly name: string; readonly created: boolean }[];
  /** Ids of the turns that the text, another one, makes outdated. */
  readonly outdated: readonly string[];
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
export interface NewEntity extends Omit<Entity, 'type'>, Partial<Omit<SearchFields, 'searchText'>> {
  readonly type: EntityType;
  /**
   * A unit vector; undefined for an entity that is not searched, or whose text is embedded later (`unembedded`). Vectors
   * of one embedder have the same length.
   */
  readonly embedding: Float32Array | undefined;
  readonly searchText: string;
}

/** A searched text that one embedder has not embedded yet. */
export interface UnembeddedText extends SearchFields {
  readonly id: string;
  /** Changes when the entity is written again. */
  readonly row: number;
  readonly type: Entity['type'];
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

/** Which turns may answer a question; see `Store.relatedTurns`. */
export interface TurnQuery extends Pick<TurnSearch, 'sessionId' | 'agentId' | 'from' | 'to' | 'expired'> {
  /** Plain words, any of which a turn must contain. */
  readonly terms: readonly string[];
  /** Ids of further turns. */
  readonly ids: readonly string[];
  /** Turns that are found by words. */
  readonly limit: number;
}

/** Turns in the order of time, with the number of all turns, and of those that contain each term. */
export interface RelatedTurns {
  readonly turns: readonly Turn[];
  readonly total: number;
  readonly counts: ReadonlyMap<string, number>;
}

/** Whether a model has written it, and no agent. */
export interface Extractable {
  readonly isExtracted?: boolean;
}

export interface ImportedTurn extends Omit<Turn, 'seq'> {
  /** Whether it is stored as an entity too, to be searched and marked. */
  readonly isIndexed?: boolean;
}

/** Lines of an export. */
export interface ImportBatch {
  /** With the time from which their time-to-live counts; without one, from now. */
  readonly entities: readonly (AgentEntity & Extractable & { readonly storedAt?: string | undefined })[];
  readonly relations: readonly (AgentRelation & Extractable)[];
  readonly turns: readonly ImportedTurn[];
  readonly documents: readonly NewDocument[];
  /** By the ids of the entities of texts, which are in this batch or stored already. */
  readonly readTexts?: ReadonlyMap<string, ReadText>;
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
  readonly expired?: Cutoffs;
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
  /** A repeated call with the same key stores nothing and returns the first turn, which must be the same in this session. */
  readonly idempotencyKey?: string | undefined;
}

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

export interface DocumentRename {
  readonly from: string;
  readonly to: string;
}

export interface SearchScope {
  readonly types?: readonly EntityType[] | undefined;
  /** Entities that are found, of which those that have expired are left out. */
  readonly limit: number;
  readonly expired?: Cutoffs;
}

/** An entity with what a search compares. */
export type FoundEntity = Entity & SearchFields;

/** A vector of an embedder, with which entities are compared. */
export interface ComparedVector {
  readonly vector: Float32Array;
  readonly embedder: string;
}

/**
 * Times, RFC 3339 in UTC: turns, and entities with a time-to-live, that were stored at or before them have expired. Empty:
 * nothing has.
 */
export interface Cutoffs {
  readonly turns: string;
  readonly entities: string;
}
