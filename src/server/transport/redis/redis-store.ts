import { messageOf } from '../../../core/errors.ts';
import type { Limits } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { Outage } from '../../kernel/inspection.ts';
import type { CallMeter } from '../../kernel/observer.ts';
import {
  type SharedStore,
  type StoreScript,
  StoreUnavailable,
  type StoreUse,
} from '../../kernel/shared-store.ts';
import { type RedisAddress, RedisConnection } from './connection.ts';

/** Version of the format of all values. A gateway that uses another one does not see these keys. */
const FORMAT = 'v1';

const SCOPE = 'agctl::shared';

/** Errors of a script itself or of one key; all others are about the server. */
const IS_OF_SCRIPT = /^(?:ERR|WRONGTYPE) /;

/**
 * What the server itself says is for an operator to mend, such as a changed password (WRONGPASS). That an attempt to connect
 * fails in another way than the one before is not.
 */
const SAID_BY_SERVER = /^[A-Z]{2,} /;

/** Least time in ms between two further reasons of an outage. */
const REASON_INTERVAL = 60_000;

/** Writes: a server that is full, read-only since a failover, or still loading does not count as available. */
const PROBE: StoreScript = { lua: "return redis.call('SET', KEYS[1], '1', 'PX', 10000)" };

export interface RedisStoreOptions {
  readonly address: RedisAddress;
  readonly prefix: string;
  /** In ms. */
  readonly timeout: number;
  readonly closed: ReadonlySet<StoreUse>;
  readonly limits: Limits;
  readonly log: Log;
  readonly meter: CallMeter;
  missed(use: StoreUse, outcome: string): void;
}

/**
 * The store in Redis or Valkey. Any failure of the server closes the connection; until a new one has passed a write, all
 * calls fail without waiting. So only requests that are in flight when a server fails wait for the timeout.
 */
export class RedisStore implements SharedStore {
  readonly #options: RedisStoreOptions;
  readonly #server: string;
  #connection: RedisConnection | undefined;
  #problem = 'the connection is being opened';
  /** The problem that was logged last. */
  #logged: string | undefined;
  /** Whether the log says that the store is not available. */
  #isLost = false;
  #unavailableSince = performance.now();
  #nextReason = 0;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: RedisStoreOptions) {
    this.#options = options;
    const { host, port, sentinel } = options.address;
    if (sentinel !== undefined) this.#server = `${host} (Sentinel)`;
    else this.#server = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  }

  /** Whether the server is in use. */
  get isAvailable(): boolean {
    return this.#connection !== undefined;
  }

  get outage(): Outage | undefined {
    if (this.isAvailable) return undefined;
    const since = performance.timeOrigin + this.#unavailableSince;
    return { at: 'config.shared', problem: `${this.#server}: ${this.#problem}`, since };
  }

  key(...parts: readonly string[]): string {
    return [this.#options.prefix, FORMAT, ...parts].join(':');
  }

  failsClosed(use: StoreUse): boolean {
    return this.#options.closed.has(use);
  }

  missed(use: StoreUse, outcome: 'rejected' | 'continued'): void {
    this.#options.missed(use, outcome);
  }

  async run(
    script: StoreScript,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const connection = this.#connection;
    if (connection === undefined) throw new StoreUnavailable(this.#problem);
    const startedAt = performance.now();
    try {
      const reply = await connection.run(script, keys, args);
      this.#options.meter.answered(performance.now() - startedAt);
      return reply;
    } catch (error) {
      const problem = shortened(error);
      if (IS_OF_SCRIPT.test(problem)) this.#warnOnce(problem);
      else this.#lost(connection, problem);
      throw new StoreUnavailable(problem);
    }
  }

  async open(): Promise<void> {
    const { address, timeout, limits } = this.#options;
    const connection = new RedisConnection(address, { connectTimeout: limits.storeConnectTimeout, timeout });
    try {
      await connection.open();
      await connection.run(PROBE, [this.key('probe')], []);
      if (this.#isClosed) connection.close();
      else this.#gained(connection);
    } catch (error) {
      connection.close();
      this.#failed(shortened(error));
    }
  }

  #gained(connection: RedisConnection): void {
    connection.onClosed = (problem) => this.#lost(connection, problem);
    this.#connection = connection;
    this.#options.log.info(SCOPE, 'the shared store is available', {
      server: this.#server,
      ...(this.#isLost && {
        'unavailable.ms': Math.round(performance.now() - this.#unavailableSince),
      }),
    });
    this.#logged = undefined;
    this.#isLost = false;
  }

  #lost(connection: RedisConnection, problem: string): void {
    connection.close();
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#unavailableSince = performance.now();
    this.#failed(problem);
  }

  #failed(problem: string): void {
    this.#problem = problem;
    if (this.#isClosed) return;
    if (!this.#isLost) this.#warnOnce(problem);
    else if (!SAID_BY_SERVER.test(problem)) this.#noteOnce(problem);
    else if (performance.now() >= this.#nextReason) {
      this.#nextReason = performance.now() + REASON_INTERVAL;
      this.#warnOnce(problem);
    }
    this.#isLost = true;
    const { storeRetryInterval } = this.#options.limits;
    // Spread, so that all replicas do not connect to a restarted server at once.
    const wait = storeRetryInterval * (0.5 + Math.random());
    this.#retry = setTimeout(() => void this.open(), wait).unref();
  }

  /** Logs a problem, but not again while it stays the same. */
  #warnOnce(problem: string): void {
    if (this.#logged === problem) return;
    this.#logged = problem;
    const { closed } = this.#options;
    this.#options.log.warn(SCOPE, 'the shared store is not available', {
      server: this.#server,
      problem,
      rateLimits: closed.has('rateLimits') ? 'rejected' : 'counted by this gateway only',
      sessions: closed.has('sessions') ? 'rejected' : 'continued by their ids',
    });
  }

  #noteOnce(problem: string): void {
    if (this.#logged === problem) return;
    this.#logged = problem;
    this.#options.log.debug(SCOPE, 'the shared store cannot be reached', { server: this.#server, problem });
  }

  close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#connection?.close();
    this.#connection = undefined;
    this.#problem = 'the gateway is closing';
    return Promise.resolve();
  }
}

/** Errors of the server may quote arguments. */
const shortened = (error: unknown): string => messageOf(error).slice(0, 200);
