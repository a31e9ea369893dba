import { MIB, SECOND } from './units.ts';

/** Limits of `config.database`. Times are in ms and sizes in bytes unless a comment says otherwise. */
export const DATABASE_LIMITS = {
  /** Calls of one process that wait for the database, and bytes that they carry; further ones fail. */
  databaseQueue: 4_096,
  databaseQueueBytes: 64 * MIB,
  /** Connections of one process to PostgreSQL (upstream). */
  databaseConnections: 5,
  /** Copies of a SQLite file from before migrations. */
  databaseBackups: 3,
  /** Timeouts of a connection to PostgreSQL, and of one statement. */
  databaseConnect: 5 * SECOND,
  databaseStatement: 30 * SECOND,
  /** How long a transaction waits for other processes that write to the same SQLite file. */
  databaseLock: 5 * SECOND,
  /** Prepared statements that are kept. */
  databaseStatements: 256,
  /** Wait before a database that is not reachable is opened again, doubled each time up to the second value. */
  databaseRetry: SECOND,
  databaseMaxRetry: 30 * SECOND,
  /** By how much the clock of the gateway may differ from that of PostgreSQL without a warning, and how often they are compared. */
  databaseClock: 30 * SECOND,
  databaseClockCheck: 60 * SECOND,
} as const;
