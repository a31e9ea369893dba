/** Responses of the backend, reduced to what the pages display. */

import type {
  Entity,
  QueueStatus,
  Relation,
  Stats as StoreStats,
  SyncStatus,
} from '../../core/memory-model.ts';

export const API = '/api/memory';

export type {
  Entity,
  EntityType,
  Erasure,
  QueueStatus,
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
  readonly embedding: QueueStatus;
  /** Undefined if no model extracts entities. */
  readonly extraction?: QueueStatus;
  readonly version: string;
}

export interface SearchResult extends Entity {
  readonly truncated?: true;
  readonly score: number;
  readonly cosine: number | null;
  /** Where almost the same text stands. */
  readonly alsoIn?: readonly {
    readonly id: string;
    readonly name: string;
    readonly path?: string;
    readonly source?: string;
  }[];
  readonly copies?: number;
  readonly debug?: { readonly words: number; readonly vector: number | null; readonly fused: number };
}

export interface SearchReply {
  readonly results: readonly SearchResult[];
  readonly hint?: string;
  readonly embedder: string;
  readonly tookMs: number;
}

export interface EntityPage {
  readonly entities: readonly Pick<Entity, 'id' | 'name' | 'type'>[];
  readonly nextCursor: string | null;
}

export interface NamespacePage {
  readonly namespaces: readonly { readonly name: string; readonly bytes: number }[];
  readonly nextCursor: string | null;
}

/** An entity and those that it has relations with. */
export interface Surroundings {
  readonly nodes: readonly Pick<Entity, 'id' | 'name' | 'type'>[];
  readonly edges: readonly Relation[];
  readonly truncated: boolean;
}
