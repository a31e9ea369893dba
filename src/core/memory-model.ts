/** The data model of the memory API, shared by the stores, the backend and the dashboard. */

/** The types of the specification, then `entity`: what agents write with `create_entities`. */
export const ENTITY_TYPES = ['workspace', 'doc_file', 'doc_chunk', 'chat_message', 'entity'] as const;
export type EntityType = (typeof ENTITY_TYPES)[number];
export const RELATION_TYPES = ['BELONGS_TO', 'REFERENCES', 'DEPENDS_ON'] as const;
export type RelationType = (typeof RELATION_TYPES)[number];
/** Besides those of the specification, from a turn to an earlier one that a language model found to be outdated by it. */
export const SUPERSEDES = 'SUPERSEDES';
/** From what a language model has extracted to its text. Weight 1: it was created from that text. */
export const EXTRACTED_FROM = 'EXTRACTED_FROM';
export const ROLES = ['user', 'assistant', 'system'] as const;
export type Role = (typeof ROLES)[number];

/** What is read from a store: a later version, whose tables are the same, may have written a value that this one does not know. */
export type Stored<T extends string> = T | (string & {});

export interface Entity {
  readonly id: string;
  readonly name: string;
  readonly type: Stored<EntityType>;
  readonly content: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface Relation {
  readonly fromId: string;
  readonly toId: string;
  /** Between two entities of agents, any name of at most 100 characters. */
  readonly relationType: Stored<RelationType>;
  readonly weight: number;
}

/** An entity that agents write, as in the server @modelcontextprotocol/server-memory. Its name identifies it. */
export interface AgentEntity {
  readonly name: string;
  readonly entityType: string;
  readonly observations: readonly string[];
}

/** A directed relation by the names of its ends, which need not be entities. */
export interface AgentRelation {
  readonly from: string;
  readonly to: string;
  readonly relationType: string;
}

export interface Turn {
  readonly id: string;
  /** Increases with every turn of the store; pages use it as cursor. */
  readonly seq: number;
  readonly sessionId: string;
  readonly agentId: string;
  readonly role: Stored<Role>;
  readonly content: string;
  /** RFC 3339, UTC. */
  readonly createdAt: string;
}

export interface Session {
  readonly sessionId: string;
  readonly turns: number;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly agentIds: readonly string[];
}

export interface Stats {
  readonly entities: Readonly<Record<EntityType, number>>;
  /** `other`: relations of agents with any other name. */
  readonly relations: Readonly<Record<RelationType | 'other', number>>;
  readonly turns: number;
  readonly sessions: number;
  readonly documents: number;
  /** Bytes on disk. */
  readonly bytes: number;
}

export interface SyncError {
  /** Path in the docs folder; empty for an error of the whole sync. */
  readonly path: string;
  readonly message: string;
}

export interface SyncStatus {
  /**
   * `idle` before the first sync. `failed`: the sync was aborted; documents that fail individually are only counted.
   */
  readonly state: 'idle' | 'running' | 'done' | 'failed';
  /** Documents processed so far, of `total`. */
  readonly scanned: number;
  /** Documents in the folder; 0 until the folder has been listed. */
  readonly total: number;
  readonly added: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly removed: number;
  readonly failed: number;
  /** The first 50 errors. */
  readonly errors: readonly SyncError[];
  /** Texts embedded so far. */
  readonly embedded: number;
  readonly startedAt: string | null;
  readonly durationMs: number;
}

/** Progress of stored texts through the embedder, or the model that extracts entities: both may be services that fail. */
export interface QueueStatus {
  /** `waiting`: the service failed and is called again at `retryAt`; until then, texts are found by words only, or have no entities. */
  readonly state: 'idle' | 'running' | 'waiting';
  /** Stored texts without a vector of the current embedder, or that were not read. */
  readonly pending: number;
  /** All stored texts that have vectors; set while some are pending, for the embedder only. */
  readonly total?: number;
  readonly problem?: string;
  readonly retryAt?: string;
}

export const ORIGINS = ['docs_dir', 'ingest'] as const;
/** Where a document came from: the docs folder, from which a sync may remove it again, or a call. */
export type Origin = (typeof ORIGINS)[number];

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
    readonly origin: Stored<Origin>;
    readonly key: string;
  }[];
  /** Whether more is selected than one call deletes: repeat it. */
  readonly truncated: boolean;
  /** What will come back, and why. */
  readonly note?: string;
}
