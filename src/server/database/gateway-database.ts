import { resolve } from 'node:path';
import { AppError, detailOf } from '../../core/errors.ts';
import type { Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type {
  Database,
  DatabaseSchema,
  SqlRow,
  SqlValue,
  Statement,
  StatementResult,
} from '../kernel/database.ts';
import type { Outage } from '../kernel/inspection.ts';
import { ClockWatch } from './clock.ts';
import { DatabaseError, type Driver } from './driver.ts';
import { VERSIONS } from './migrations.ts';
import { type DatabaseConfig, type DatabaseLocation, parseDatabaseUrl } from './settings.ts';

const SCOPE = 'agctl::database';

/**
 * Changes nothing, but fails where nothing can be written. SQLite writes no page that stays the same (`btreeOverwriteContent`), and fills
 * those that it has: only a row that needs further pages fails on a full disk.
 */
const PROBES: Readonly<Record<Database['kind'], readonly Statement[]>> = {
  sqlite: probeWith('zeroblob(16384)'),
  postgres: probeWith('0'),
};

function probeWith(version: string): readonly Statement[] {
  return [
    { sql: `INSERT INTO ${VERSIONS} (feature, version) VALUES ('probe', ${version})` },
    { sql: `DELETE FROM ${VERSIONS} WHERE feature = 'probe'` },
  ];
}

export interface GatewayDatabaseOptions {
  readonly config: DatabaseConfig;
  /** Folder that the path of a SQLite file is relative to. */
  readonly folder: string;
  readonly schemas: readonly DatabaseSchema[];
  readonly log: Log;
  readonly limits: Limits;
}

/**
 * The database of this process. Nothing is opened before `open`, which a gateway calls once before it opens its ports. If
 * the server is not reachable then, the gateway starts without it, and it is opened as soon as it is.
 */
export class GatewayDatabase implements Database {
  readonly kind: Database['kind'];
  readonly #options: GatewayDatabaseOptions;
  readonly #location: DatabaseLocation;
  #driver: Driver | undefined;
  #problem = 'not open yet';
  #retry: NodeJS.Timeout | undefined;
  #outage: Outage | undefined;
  #probe: NodeJS.Timeout | undefined;
  #clock: ClockWatch | undefined;
  #isClosed = false;

  constructor(options: GatewayDatabaseOptions) {
    const location = parseDatabaseUrl(options.config.url);
    if (typeof location === 'string') throw new Error(location);
    this.#options = options;
    this.#location = location;
    this.kind = location.kind;
  }

  /** @throws DatabaseError if it can only be opened after a change by the operator */
  async open(): Promise<void> {
    if (this.#driver !== undefined) return;
    try {
      this.#driver = await this.#openDriver();
      this.#watchClock(this.#driver);
    } catch (error) {
      if (!(error instanceof DatabaseError && error.isTransient)) throw error;
      this.#options.log.warn(SCOPE, 'the database is not available; the gateway starts without it', {
        problem: error.message,
        help: error.help,
      });
      this.#problem = error.message;
      this.#failed(error);
      this.#openLater(this.#options.limits.databaseRetry);
    }
  }

  query(sql: string, values: readonly SqlValue[] = []): Promise<readonly SqlRow[]> {
    const rows = this.#driver?.query(sql, values) ?? this.#unavailable();
    rows.catch((error: unknown) => this.#failed(error));
    return rows;
  }

  transaction(statements: readonly Statement[]): Promise<readonly StatementResult[] | undefined> {
    const results = this.#driver?.transaction(statements) ?? this.#unavailable();
    results.then(
      () => this.#worked(),
      (error: unknown) => this.#failed(error),
    );
    return results;
  }

  /** Since when and why it cannot be used, while it cannot. */
  get outage(): Outage | undefined {
    return this.#outage;
  }

  #failed(error: unknown): void {
    if (this.#isClosed) return;
    this.#outage = {
      at: 'config.database',
      problem: detailOf(error),
      since: this.#outage?.since ?? Date.now(),
    };
    // Nothing else may use the database for a long time.
    this.#probe ??= setTimeout(() => {
      this.#probe = undefined;
      this.transaction(PROBES[this.kind]).catch(() => undefined);
    }, this.#options.limits.databaseRetry).unref();
  }

  /** A read may succeed where nothing can be written: it does not end an outage. */
  #worked(): void {
    this.#outage = undefined;
    clearTimeout(this.#probe);
    this.#probe = undefined;
  }

  /** Calls made before still run. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#clock?.close();
    this.#worked();
    const driver = this.#driver;
    this.#driver = undefined;
    this.#problem = 'closed';
    await driver?.close();
  }

  #unavailable(): Promise<never> {
    return Promise.reject(new AppError('database_unavailable', { detail: this.#problem }));
  }

  /** Each kind is loaded on demand: most gateways have no database. */
  async #openDriver(): Promise<Driver> {
    const { config, folder, schemas, log, limits } = this.#options;
    const location = this.#location;
    if (location.kind === 'sqlite') {
      const { openSqlite } = await import('./sqlite.ts');
      const path = resolve(folder, location.path);
      const { backups } = config;
      return openSqlite({ path, mustExist: location.mustExist, backups, schemas, log, limits });
    }
    const { openPostgres } = await import('./postgres.ts');
    return openPostgres({
      url: location.url,
      connections: config.maxConnections,
      schemas,
      limits,
      onLost: (error) => log.warn(SCOPE, 'a connection to the database was lost', { problem: error.message }),
      onEmptied: () => log.warn(SCOPE, 'the tables of the database are gone: they are created again, empty'),
      onMigrated: ({ feature, from, to }) =>
        log.info(SCOPE, 'tables of the database were migrated', { feature, from, to }),
    });
  }

  /** A SQLite file has the clock of the machine. */
  #watchClock(driver: Driver): void {
    if (this.kind !== 'postgres') return;
    const { log, limits } = this.#options;
    this.#clock = new ClockWatch({ query: (sql) => driver.query(sql), log, limits });
  }

  #openLater(wait: number): void {
    if (this.#isClosed) return;
    this.#retry = setTimeout(() => void this.#openAgain(wait), wait).unref();
  }

  async #openAgain(wait: number): Promise<void> {
    const { log, limits } = this.#options;
    try {
      const driver = await this.#openDriver();
      if (this.#isClosed) return await driver.close();
      this.#driver = driver;
      this.#watchClock(driver);
      this.#worked();
      log.info(SCOPE, 'the database is available now');
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (problem !== this.#problem) log.warn(SCOPE, 'the database is not available', { problem });
      this.#problem = problem;
      this.#failed(error);
      this.#openLater(Math.min(limits.databaseMaxRetry, wait * 2));
    }
  }
}
