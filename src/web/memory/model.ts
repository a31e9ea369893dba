/** Responses of the backend, reduced to what the pages display. */

import type { Entity, Stats as StoreStats, SyncStatus } from '../../core/memory-model.ts';

export const API = '/api/memory';

export type {
  Entity,
  EntityType,
  Relation,
  RelationType,
  Role,
  Session,
  SyncStatus,
  Turn,
} from '../../core/memory-model.ts';
export { ENTITY_TYPES, RELATION_TYPES, ROLES } from '../../core/memory-model.ts';

export interface Stats extends StoreStats {
  readonly ready: boolean;
  readonly sync: SyncStatus;
  readonly store: string;
  readonly embedder: string;
  readonly version: string;
}

export interface SearchResult extends Entity {
  readonly truncated?: true;
  readonly score: number;
  readonly cosine: number | null;
  readonly debug?: { readonly words: number; readonly vector: number | null; readonly fused: number };
}

export interface SearchReply {
  readonly results: readonly SearchResult[];
  readonly hint?: string;
  readonly embedder: string;
  readonly tookMs: number;
}
