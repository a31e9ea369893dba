import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Redis, RedisOptions } from 'ioredis';
import { messageOf } from '../../../core/errors.ts';
import type { StoreScript } from '../../kernel/shared-store.ts';
import type { TlsOptions } from '../tls/backend-tls.ts';

/** Where the server is. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
  /** Undefined without TLS. */
  readonly tls: TlsOptions | undefined;
  /** The servers that are asked for the address. `host` is then the name of the primary, and `port` has no meaning. */
  readonly sentinel?:
    | {
        readonly servers: readonly { readonly host: string; readonly port: number }[];
        readonly password: string | undefined;
      }
    | undefined;
}

export interface ConnectionTimes {
  /** Until the server has accepted the connection and the password, in ms. */
  readonly connectTimeout: number;
  /** Until a command is answered, in ms. */
  readonly timeout: number;
}

type Library = typeof import('ioredis');

const TIMEOUT_PARTS = 5;

/**
 * One connection. It is never opened again after a failure: what is in flight on it has an unknown outcome, and after a
 * failover its name may belong to another server.
 */
export class RedisConnection {
  readonly #client: Redis;
  readonly #timeout: number;
  readonly #hashes = new Map<string, string>();
  /** What the library has reported last, which says more than the rejections that follow. */
  #problem: string | undefined;
  /** Called once when the server has closed the connection. */
  onClosed: ((problem: string) => void) | undefined;

  constructor(address: RedisAddress, { connectTimeout, timeout }: ConnectionTimes) {
    const { username, password, database, tls } = address;
    this.#timeout = timeout;
    // Loaded with the first connection: it takes 100 ms.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package.
    const library = createRequire(import.meta.url)('ioredis') as Library;
    this.#client = new library.Redis({
      ...serverOptions(address, connectTimeout),
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      ...(tls !== undefined && { tls }),
      db: database,
      connectionName: 'agctl',
      connectTimeout,
      lazyConnect: true,
      // The store decides when to connect again, and no command waits for it.
      retryStrategy: null,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      // Needs a permission for INFO; the first write of the store fails as well while the server is loading.
      enableReadyCheck: false,
      disableClientInfo: true,
    });
    this.#client.on('error', (error: Error) => {
      this.#problem ??= error.message;
    });
    this.#client.on('close', () => this.onClosed?.(this.#problem ?? 'the server has closed the connection'));
  }

  /** Connects. Rejects with the reason, such as a wrong password. */
  async open(): Promise<void> {
    try {
      await this.#client.connect();
    } catch (error) {
      throw new Error(this.#problem ?? messageOf(error));
    }
    // Of a database that does not exist, the library only reports an event, and uses database 0.
    if (this.#problem !== undefined) throw new Error(this.#problem);
  }

  /** Runs a script. Rejects with the error of the server, or when it has not answered in time. */
  async run(
    { lua }: StoreScript,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args];
    const run = async (): Promise<unknown> => {
      try {
        return await this.#client.call('EVALSHA', this.#hashOf(lua), ...rest);
      } catch (error) {
        if (!messageOf(error).startsWith('NOSCRIPT')) throw error;
        return this.#client.call('EVAL', lua, ...rest);
      }
    };
    return this.#inTime(run());
  }

  /**
   * A server that hangs keeps the connection: without this limit, requests would wait for TCP. The time is waited for in
   * parts, so that time in which this process was too busy to read the answer counts as one part only.
   */
  async #inTime<T>(answer: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      let parts = TIMEOUT_PARTS;
      const wait = (): void => {
        timer = setTimeout(() => {
          parts -= 1;
          if (parts > 0) wait();
          // Timers run before what the socket has received meanwhile.
          else setImmediate(reject, new Error(`no answer within ${this.#timeout} ms`));
        }, this.#timeout / TIMEOUT_PARTS);
      };
      wait();
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #hashOf(lua: string): string {
    const known = this.#hashes.get(lua);
    if (known !== undefined) return known;
    const hash = createHash('sha1').update(lua).digest('hex');
    this.#hashes.set(lua, hash);
    return hash;
  }

  /** Closes the connection. What is in flight is rejected. */
  close(): void {
    this.onClosed = undefined;
    this.#client.disconnect();
  }
}

type ServerOptions = Pick<
  RedisOptions,
  | 'host'
  | 'port'
  | 'name'
  | 'sentinels'
  | 'sentinelRetryStrategy'
  | 'sentinelCommandTimeout'
  | 'sentinelPassword'
  | 'sentinelTLS'
  | 'enableTLSForSentinelMode'
>;

/** Every connection asks Sentinel again, so the next one after a failover goes to the new primary. */
function serverOptions({ host, port, tls, sentinel }: RedisAddress, timeout: number): ServerOptions {
  if (sentinel === undefined) return { host, port };
  return {
    name: host,
    sentinels: [...sentinel.servers],
    sentinelRetryStrategy: () => null,
    sentinelCommandTimeout: timeout,
    ...(sentinel.password !== undefined && { sentinelPassword: sentinel.password }),
    ...(tls !== undefined && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
  };
}
