import { LIMITS } from '../../../core/limits.ts';
import { runOrRefuse, type SharedStore, type StoreScript } from '../../kernel/shared-store.ts';
import { Slot } from '../../kernel/slot.ts';

/** Ids of sessions that their users have ended. Times are Unix times in seconds. */
export interface EndedSessions {
  /** `expires`: when the session would have ended anyway. Never rejects. */
  end(id: string, expires: number): unknown;
  has(id: string): boolean | undefined | Promise<boolean | undefined>;
}

/**
 * Those of a process, also after a reload. Their cookies still open, because the gateway keeps no list of sessions: of more than
 * `LIMITS.oidcEndedSessions`, the first ones are forgotten.
 */
export class OwnEndedSessions implements EndedSessions {
  readonly #expiries = new Map<string, number>();

  get size(): number {
    return this.#expiries.size;
  }

  end(id: string, expires: number): void {
    const now = Date.now() / 1000;
    for (const [known, time] of this.#expiries) {
      if (time > now && this.#expiries.size < LIMITS.oidcEndedSessions) break;
      this.#expiries.delete(known);
    }
    this.#expiries.set(id, expires);
  }

  has(id: string): boolean {
    return this.#expiries.has(id);
  }
}

/** That of a process, in the settings that compiled components share. */
export const ownEndedSessions = new Slot<OwnEndedSessions>();

const END: StoreScript = { lua: "return redis.call('SET', KEYS[1], '', 'EX', ARGV[1])" };
const HAS: StoreScript = { lua: "return redis.call('EXISTS', KEYS[1])" };

/** Those of all replicas, in Redis or Valkey. Without the server, those of this replica, unless `failureMode` refuses sessions then. */
export class SharedEndedSessions implements EndedSessions {
  readonly #store: SharedStore;
  readonly #own: EndedSessions;

  constructor(store: SharedStore, own: EndedSessions) {
    this.#store = store;
    this.#own = own;
  }

  async end(id: string, expires: number): Promise<void> {
    await this.#own.end(id, expires);
    const left = Math.max(1, Math.ceil(expires - Date.now() / 1000));
    // The sessions of this replica end in any case, and the answer cannot wait for the server.
    await this.#run(END, id, left).catch(() => undefined);
  }

  async has(id: string): Promise<boolean> {
    return (await this.#own.has(id)) === true || (await this.#run(HAS, id)) === 1;
  }

  #run(script: StoreScript, id: string, ...args: readonly number[]): Promise<unknown> {
    const refusal = 'oidc: sessions cannot be checked';
    return runOrRefuse(this.#store, { use: 'sessions', refusal, script, key: ['oidc-ended', id], args });
  }
}
