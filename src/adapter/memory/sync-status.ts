import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import type { SyncError, SyncStatus } from '../../core/memory-model.ts';

export type { SyncError, SyncStatus } from '../../core/memory-model.ts';

/** The state of a sync while it runs. */
export type SyncCounts = { -readonly [Key in keyof SyncStatus]: SyncStatus[Key] } & { errors: SyncError[] };

export function noSync(): SyncCounts {
  return {
    state: 'idle',
    scanned: 0,
    total: 0,
    added: 0,
    updated: 0,
    unchanged: 0,
    removed: 0,
    failed: 0,
    errors: [],
    embedded: 0,
    startedAt: null,
    durationMs: 0,
  };
}

/** Keeps the first errors; further ones are only counted. */
export function noteError(counts: SyncCounts, path: string, message: string): void {
  if (counts.errors.length < MEMORY_STORE_LIMITS.syncErrors) counts.errors.push({ path, message });
}
