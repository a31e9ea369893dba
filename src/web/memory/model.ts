/** What the backend answers: the parts that the pages show. */

export const API = '/api/memory';

export const ENTITY_TYPES = ['workspace', 'doc_file', 'doc_chunk', 'chat_message'] as const;
export type EntityType = (typeof ENTITY_TYPES)[number];
export const RELATION_TYPES = ['BELONGS_TO', 'REFERENCES', 'DEPENDS_ON'] as const;
export type RelationType = (typeof RELATION_TYPES)[number];
export const ROLES = ['user', 'assistant', 'system'] as const;
export type Role = (typeof ROLES)[number];

export interface SyncStatus {
  readonly state: 'idle' | 'running' | 'done' | 'failed';
  readonly scanned: number;
  readonly total: number;
  readonly added: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly removed: number;
  readonly failed: number;
  readonly errors: readonly { readonly path: string; readonly message: string }[];
  readonly embedded: number;
  readonly startedAt: string | null;
  readonly durationMs: number;
}

export interface Stats {
  readonly entities: Readonly<Record<EntityType, number>>;
  readonly relations: Readonly<Record<RelationType, number>>;
  readonly turns: number;
  readonly sessions: number;
  readonly documents: number;
  readonly bytes: number;
  readonly ready: boolean;
  readonly sync: SyncStatus;
  readonly store: string;
  readonly embedder: string;
  readonly version: string;
}

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

export interface SearchResult extends Entity {
  readonly truncated?: true;
  readonly score: number;
  readonly cosine: number;
  readonly lexical?: number;
}

export interface SearchReply {
  readonly results: readonly SearchResult[];
  readonly hint?: string;
  readonly embedder: string;
  readonly tookMs: number;
}

export interface Session {
  readonly sessionId: string;
  readonly turns: number;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly agentIds: readonly string[];
}

export interface Turn {
  readonly id: string;
  readonly seq: number;
  readonly sessionId: string;
  readonly agentId: string;
  readonly role: Role;
  readonly content: string;
  readonly createdAt: string;
}
