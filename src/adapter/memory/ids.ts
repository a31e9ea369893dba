import { createHash } from 'node:crypto';
import type { EntityType, Origin } from './store.ts';

/** 24 hex digits derived from the identity of an entity: ids, and relations to them, survive a new sync. */
function idOf(...parts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part.toWellFormed());
  return hash.digest('hex').slice(0, 24);
}

export function documentId(origin: Origin, key: string): string {
  return idOf('doc_file' satisfies EntityType, origin, key);
}

export function chunkId(origin: Origin, key: string, ordinal: number): string {
  return idOf('doc_chunk' satisfies EntityType, origin, key, String(ordinal));
}

/** A folder of documents, or a session of chat turns. */
export type WorkspaceKind = 'folder' | 'session';

/** @param key path in the docs folder, empty for the folder itself; or the id of the session */
export function workspaceId(kind: WorkspaceKind, key: string): string {
  return idOf('workspace' satisfies EntityType, kind, key);
}

export function chatMessageId(turnId: string): string {
  return idOf('chat_message' satisfies EntityType, turnId);
}

/** An entity of agents: its name is its identity. */
export function agentEntityId(name: string): string {
  return idOf('entity' satisfies EntityType, name);
}
