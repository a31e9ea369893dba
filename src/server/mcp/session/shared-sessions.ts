import { hkdfSync } from 'node:crypto';
import type { Limits } from '../../../core/limits.ts';
import { runOrRefuse, type SharedStore, type StoreScript } from '../../kernel/shared-store.ts';
import { openSession, type SessionState, sealSession } from './session-id.ts';

/** Value of the record of a session that has ended: until it expires, no replica continues the session. */
const ENDED = 'ended';

const READ: StoreScript = {
  lua: `
local value = redis.call('GET', KEYS[1])
if value and value ~= '${ENDED}' then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return value`,
};

const SAVE: StoreScript = {
  lua: `
if redis.call('GET', KEYS[1]) == '${ENDED}' then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
return 1`,
};

const END: StoreScript = { lua: `return redis.call('SET', KEYS[1], '${ENDED}', 'PX', ARGV[1])` };

const TIME_LEFT: StoreScript = { lua: "return redis.call('PTTL', KEYS[1])" };

/** Between the clocks of the server and of this process while a session is idle, in ms: 50 ppm of half an hour. */
const CLOCK_DRIFT = 100;

/** The record of a session in the shared store. */
export interface SessionRecord {
  /** The random part of the session id. */
  readonly id: string;
  /** The sessions at the targets as they were saved last. */
  saved: string;
  /** When the record was last read or written, in ms of `performance.now()`. */
  checkedAt: number;
}

/** What is known of a session: its state, that it has ended, or nothing. */
export type Found = SessionState | 'ended' | undefined;

/**
 * The records of one backend's sessions in the shared store. A record contains what another replica needs to continue the
 * session, encrypted, and lives as long as an idle session. The session id names the record and contains the same state
 * as of its creation, for times without the store.
 */
export class SharedSessions {
  readonly #store: SharedStore;
  /** Not the key of session ids: whoever reads the store must not get ids. */
  readonly #key: Buffer;
  readonly #limits: Limits;
  /** Lifetime of records in ms: sessions are swept at intervals. */
  readonly #lifetime: number;

  /** `sessionKey` is that of session ids; `idle` the time without a request after which sessions end, in ms. */
  constructor(store: SharedStore, sessionKey: Buffer, idle: number, limits: Limits) {
    this.#store = store;
    this.#key = Buffer.from(hkdfSync('sha256', sessionKey, '', 'agctl session record', 32));
    this.#limits = limits;
    this.#lifetime = idle + 2 * limits.sessionSweep;
  }

  /** Writes the record of a session. Returns undefined if the store is not available and sessions go on without it. */
  async save(state: SessionState): Promise<SessionRecord | undefined> {
    const isSaved = await this.#run(SAVE, state.r, sealSession(this.#key, state));
    if (isSaved === undefined) return undefined;
    return { id: state.r, saved: JSON.stringify(state.s), checkedAt: performance.now() };
  }

  /**
   * What the store knows of a session with that state in its id, which is used from now on if the store is not available. An
   * id whose record is gone has expired, unless it was created without a record: by an earlier version, or without the store.
   */
  async find(state: SessionState): Promise<Found> {
    const value = await this.#run(READ, state.r);
    if (value === undefined) return state;
    if (value === ENDED) return 'ended';
    if (value === null) return state.k === undefined ? state : undefined;
    const record = openSession(this.#key, String(value));
    // The caller and the backend are those of the id.
    if (record?.r !== state.r) return undefined;
    const { s, i } = record;
    return { ...state, ...(s !== undefined && { s }), ...(i !== undefined && { i }) };
  }

  /**
   * Whether another replica has ended the session. Looks at most once per `LIMITS.sessionCheckInterval`, and keeps the
   * record up to date, also after the store has lost it. `stateOf` is called if needed.
   */
  async isEnded(record: SessionRecord, stateOf: () => SessionState): Promise<boolean> {
    const now = performance.now();
    if (now - record.checkedAt < this.#limits.sessionCheckInterval) return false;
    record.checkedAt = now;
    const value = await this.#run(READ, record.id);
    record.checkedAt = performance.now();
    if (value === ENDED) return true;
    const state = stateOf();
    if (value === null || (value !== undefined && JSON.stringify(state.s) !== record.saved))
      record.saved = (await this.save(state))?.saved ?? record.saved;
    return false;
  }

  /** Makes all replicas refuse the session. */
  async end({ id }: SessionRecord): Promise<void> {
    // A session can always be ended; without the store, here only.
    await this.#run(END, id).catch(() => undefined);
  }

  /** Whether another replica has used the session since this one has last looked: it ends the session then. */
  async isUsedElsewhere({ id, checkedAt }: SessionRecord): Promise<boolean> {
    const now = performance.now();
    const left = await this.#run(TIME_LEFT, id).catch(() => undefined);
    return Number(left ?? 0) > this.#lifetime - (now - checkedAt) + CLOCK_DRIFT;
  }

  /** Undefined if the store is not available. Throws `overloaded` (503) if sessions need it. */
  #run(script: StoreScript, id: string, value = ''): Promise<unknown> {
    const refusal = 'mcp: sessions are not available';
    const args = [this.#lifetime, value];
    return runOrRefuse(this.#store, { use: 'sessions', refusal, script, key: ['session', id], args });
  }
}
