import { AppError, type ErrorCode } from '../../core/errors.ts';
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
 * What a task with the store returns. If the store is not available, that is counted, and the result is undefined: the use goes on without
 * it. One that does not (`failureMode`) is refused with an error of `refusal`, if there is one: with status 503 and `Retry-After`.
 */
export async function withStore<T>(
  store: SharedStore,
  use: StoreUse,
  task: () => Promise<T>,
  refusal?: { readonly code: ErrorCode; readonly message?: string },
): Promise<T | undefined> {
  try {
    return await task();
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    const isRefused = refusal !== undefined && store.failsClosed(use);
    store.missed(use, isRefused ? 'rejected' : 'continued');
    if (!isRefused) return undefined;
    throw new AppError(refusal.code, {
      ...(refusal.message !== undefined && { message: refusal.message }),
      status: 503,
      detail: `config.shared: ${error.message}`,
      headers: ['retry-after', '1'],
    });
  }
}

/** Runs a script, as `withStore` does; refuses with `overloaded`. */
export const runOrRefuse = (
  store: SharedStore,
  { use, refusal, script, key, args }: UseOfStore,
): Promise<unknown> =>
  withStore(store, use, () => store.run(script, [store.key(...key)], args), {
    code: 'overloaded',
    message: `${refusal}; try again later`,
  });
