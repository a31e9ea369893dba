import { randomBytes } from 'node:crypto';
import { detailOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import type { KeySettings } from '../../core/virtual-key.ts';
import type { KeyTable } from './key-table.ts';
import { hashOfKey, isUsable, type RefusedKey, type VirtualKey, whyUnusable } from './virtual-key.ts';

/**
 * The virtual keys of a gateway, all of them in memory. Changes of other gateways at the same database are seen within
 * `interval` ms; if the database is gone, the keys that are known stay valid.
 */
export class KeyList {
  readonly #table: KeyTable;
  readonly #log: Log;
  readonly #interval: number;
  #byHash = new Map<string, VirtualKey>();
  #version = -1;
  #loaded: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasFailed = false;

  constructor(table: KeyTable, log: Log, interval: number) {
    this.#table = table;
    this.#log = log;
    this.#interval = interval;
  }

  /** Resolves when the keys are in memory. Rejects if the database cannot be read; the next call tries again. */
  loaded(): Promise<void> {
    this.#loaded ??= this.#load().catch((error: unknown) => {
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  /** The key with this hash, if it may be used. A promise until the keys are in memory. */
  find(hash: string): VirtualKey | undefined | Promise<VirtualKey | undefined> {
    if (this.#version < 0) return this.loaded().then(() => this.find(hash));
    const key = this.#byHash.get(hash);
    return key !== undefined && isUsable(key, Date.now()) ? key : undefined;
  }

  /** The key with this hash, if it is known but may not be used, of the keys in memory. */
  refused(hash: string): RefusedKey | undefined {
    const key = this.#byHash.get(hash);
    const why = key && whyUnusable(key, Date.now());
    return key && why && { id: key.id, name: key.name, why };
  }

  /** All keys, also revoked ones, in the order of their creation. */
  async list(): Promise<readonly VirtualKey[]> {
    await this.loaded();
    await this.#refresh();
    return [...this.#byHash.values()].sort((a, b) => a.createdAt - b.createdAt);
  }

  /** Creates a key. The result has the key itself, which nothing else ever returns. Undefined if the name is taken. */
  async create(
    settings: KeySettings,
  ): Promise<{ readonly secret: string; readonly key: VirtualKey } | undefined> {
    await this.loaded();
    const secret = `sk-agctl-${randomBytes(32).toString('base64url')}`;
    const key: VirtualKey = {
      ...settings,
      id: randomBytes(8).toString('hex'),
      hash: hashOfKey(secret),
      hint: secret.slice(-4),
      createdAt: Date.now(),
    };
    const version = await this.#table.add(key);
    if (version === undefined) return undefined;
    this.#set(key, version);
    return { secret, key };
  }

  /**
   * Revokes the key with this id or name. Returns it, and whether it was not revoked before; undefined if there is none. Calls of models that have begun go on:
   * they have reserved what they use. `StandingWork` ends the rest.
   */
  async revoke(idOrName: string): Promise<{ readonly key: VirtualKey; readonly isNew: boolean } | undefined> {
    const all = await this.list();
    const key =
      all.find(({ id }) => id === idOrName) ??
      all.findLast(({ name, revokedAt }) => name === idOrName && revokedAt === undefined) ??
      all.findLast(({ name }) => name === idOrName);
    if (key === undefined) return undefined;
    if (key.revokedAt !== undefined) return { key, isNew: false };
    const revoked = { ...key, revokedAt: Date.now() };
    const version = await this.#table.revoke(key.id, revoked.revokedAt);
    // Another gateway has revoked it at the same time.
    if (version === undefined) return { key: revoked, isNew: false };
    this.#set(revoked, version);
    return { key: revoked, isNew: true };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Changes of others in between are read with the next refresh. */
  #set(key: VirtualKey, version: number): void {
    this.#byHash.set(key.hash, key);
    if (version === this.#version + 1) this.#version = version;
  }

  async #load(): Promise<void> {
    await this.#readAll();
    this.#timer ??= setInterval(() => void this.#refreshed(), this.#interval).unref();
  }

  async #readAll(): Promise<void> {
    const { keys, unreadable, version } = await this.#table.all();
    if (unreadable.length > 0)
      this.#log.warn('proxy::budgets', 'virtual keys are not as agctl writes them: they are refused', {
        count: unreadable.length,
        first: unreadable[0],
      });
    this.#byHash = new Map(keys.map((key) => [key.hash, key]));
    this.#version = version;
  }

  async #refresh(): Promise<void> {
    if ((await this.#table.version()) !== this.#version) await this.#readAll();
  }

  async #refreshed(): Promise<void> {
    try {
      await this.#refresh();
      if (this.#hasFailed) this.#log.info('proxy::budgets', 'virtual keys can be read again');
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed)
        this.#log.warn('proxy::budgets', 'virtual keys cannot be read: those that are known stay valid', {
          problem: detailOf(error),
        });
      this.#hasFailed = true;
    }
  }
}
