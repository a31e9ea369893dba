import { AppError } from '../../core/errors.ts';
import type { Outage } from './inspection.ts';
import { Slot } from './slot.ts';

/** A Lua script that the store runs atomically. */
export interface StoreScript {
  readonly lua: string;
}

/** What the store is used for: a metric label. */
export type StoreUse = 'rateLimits' | 'sessions' | 'answers' | 'batches';

/** Redis or Valkey, which the replicas of a gateway share (`config.shared`). */
export interface SharedStore {
  /** The key with these parts, after the prefix of the configuration and the version of the format of all values. */
  key(...parts: readonly string[]): string;
  /**
   * Runs a script. Keys that one script uses have the same `{hash tag}`. Rejects with `StoreUnavailable`, at the latest
   * after `config.shared.timeout`; at once while the store is known to be unavailable.
   */
  run(script: StoreScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /** Whether a request is rejected while the store is not available (`config.shared.failureMode`). */
  failsClosed(use: StoreUse): boolean;
  /** Counts what was done without the store, for the metrics. */
  missed(use: StoreUse, outcome: 'rejected' | 'continued'): void;
  /** Connects. Resolves after the first attempt, whatever its outcome; further attempts follow until `close`. */
  open(): Promise<void>;
  /** Since when and why it cannot be used, while it cannot. */
  readonly outage: Outage | undefined;
  close(): Promise<void>;
}

/** The store cannot be used at present. The message says why and contains no credential. */
export class StoreUnavailable extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'StoreUnavailable';
  }
}

/** The store of the process, in the settings that compiled components share. Undefined without `config.shared`. */
export const sharedStore = new Slot<SharedStore>();

/** A script to run, for `use`, with one key. */
interface UseOfStore {
  readonly use: StoreUse;
  /** What the caller is told if the use needs the store and it is not available. */
  readonly refusal: string;
  readonly script: StoreScript;
  readonly key: readonly string[];
  readonly args: readonly (string | number)[];
}

/**
 * Runs a script, and counts if that is not possible. Undefined if the store is not available and the use goes on without it; throws
 * `overloaded` (503) if it does not (`failureMode`).
 */
export async function runOrRefuse(
  store: SharedStore,
  { use, refusal, script, key, args }: UseOfStore,
): Promise<unknown> {
  try {
    return await store.run(script, [store.key(...key)], args);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    const isRefused = store.failsClosed(use);
    store.missed(use, isRefused ? 'rejected' : 'continued');
    if (!isRefused) return undefined;
    throw new AppError('overloaded', {
      message: `${refusal}; try again later`,
      detail: `config.shared: ${error.message}`,
      headers: ['retry-after', '1'],
    });
  }
}
