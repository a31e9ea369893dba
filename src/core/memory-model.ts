/** What the memory keeps, in the words of its API: for the stores, the backend and the dashboard. */

export const ENTITY_TYPES = ['workspace', 'doc_file', 'doc_chunk', 'chat_message'] as const;
export type EntityType = (typeof ENTITY_TYPES)[number];
export const RELATION_TYPES = ['BELONGS_TO', 'REFERENCES', 'DEPENDS_ON'] as const;
export type RelationType = (typeof RELATION_TYPES)[number];
export const ROLES = ['user', 'assistant', 'system'] as const;
export type Role = (typeof ROLES)[number];

export interface Entity {
  readonly id: string;
  readonly name: string;
  readonly type: EntityType;
  readonly content: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface Relation {
  readonly fromId: string;
  readonly toId: string;
  readonly relationType: RelationType;
  readonly weight: number;
}

export interface Turn {
  readonly id: string;
  /** Grows with every turn of the store; pages are keyed by it. */
  readonly seq: number;
  readonly sessionId: string;
  readonly agentId: string;
  readonly role: Role;
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
  readonly relations: Readonly<Record<RelationType, number>>;
  readonly turns: number;
  readonly sessions: number;
  readonly documents: number;
  /** Bytes on disk. */
  readonly bytes: number;
}

export interface SyncError {
  /** In the docs folder; empty for what concerns all of it. */
  readonly path: string;
  readonly message: string;
}

export interface SyncStatus {
  /** `idle` before the first one. `failed`: it could not go on; single documents that fail are counted only. */
  readonly state: 'idle' | 'running' | 'done' | 'failed';
  /** Documents looked at, of `total`. */
  readonly scanned: number;
  /** Documents in the folder; 0 until it was listed. */
  readonly total: number;
  readonly added: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly removed: number;
  readonly failed: number;
  /** The first 50. */
  readonly errors: readonly SyncError[];
  /** Texts embedded so far. */
  readonly embedded: number;
  readonly startedAt: string | null;
  readonly durationMs: number;
}
