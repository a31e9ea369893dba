import { LIMITS } from '../../core/limits.ts';

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

/** Keeps the first errors; more are counted only. */
export function noteError(counts: SyncCounts, path: string, message: string): void {
  if (counts.errors.length < LIMITS.memorySyncErrors) counts.errors.push({ path, message });
}
