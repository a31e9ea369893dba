import { AppError, messageOf } from '../../../core/errors.ts';
import { sqlState } from '../../../core/postgres-errors.ts';
import { RowError } from '../../../core/sql-row.ts';

const FAILED = 'the memory store failed: nothing was changed';
const UNREACHABLE = 'the memory store cannot be reached: nothing was changed';

/** Whether two backends wrote the same rows concurrently; the transaction was rolled back and may be retried. */
export function isConflict(error: unknown): boolean {
  return ['40001', '40P01', '23505'].includes(sqlState(error));
}

/** Whether a statement names a schema or table that does not exist. */
export function isMissing(error: unknown): boolean {
  return ['3F000', '42P01'].includes(sqlState(error));
}

/** Converts the failure of a call, which writes or only reads, to an error for its caller. */
export function callError(error: unknown, writes = true): AppError {
  // Thrown before the commit: the transaction is rolled back.
  if (error instanceof RowError)
    return new AppError('memory_unavailable', { message: FAILED, detail: error.detail, cause: error });
  if (error instanceof AppError) return error;
  const code = sqlState(error);
  const options = { detail: `${code} ${messageOf(error)}`.trim(), cause: error };
  if (code === '53100') return new AppError('memory_full', options);
  const message = CALL_MESSAGES.get(code);
  if (message !== undefined) return new AppError('memory_unavailable', { ...options, message });
  if (/^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E') && !code.startsWith('08'))
    return new AppError('memory_unavailable', { ...options, message: FAILED });
  // No SQLSTATE: the connection failed, with a write perhaps between its commit and the acknowledgment.
  return new AppError('memory_unavailable', {
    ...options,
    message: writes
      ? 'the memory store cannot be reached; it is unknown whether the write was stored'
      : UNREACHABLE,
  });
}

/** No connection was available, so nothing was sent. */
export function connectError(error: unknown): AppError {
  return new AppError('memory_unavailable', {
    message: UNREACHABLE,
    detail: `${sqlState(error)} ${messageOf(error)}`.trim(),
    cause: error,
  });
}

const CALL_MESSAGES = new Map([
  ['25006', 'the memory store is read-only: nothing was changed'],
  [
    '42501',
    'the user of the memory store lacks a privilege, such as CREATE on the database, which new namespaces need: nothing was changed',
  ],
  ['57014', 'the memory store took too long: nothing was changed'],
  ['53300', 'the memory store has no connection left: nothing was changed'],
  [
    '42P01',
    'the memory store was emptied, its tables are gone: nothing was changed; start the memory again, which creates them',
  ],
]);

/** Converts a failure to open the store to an error for the operator: which server, what is wrong, what to do. */
export function openError(server: string, error: unknown): AppError {
  if (error instanceof RowError)
    return new AppError('memory_not_opened', {
      message: `${server}: ${error.detail}: is MEMORY_DATABASE_URL the database of a memory?`,
      cause: error,
    });
  if (error instanceof AppError) return error;
  const hint = OPEN_HINTS.get(sqlState(error));
  return new AppError('memory_not_opened', {
    message: `${server}: ${hint ?? `${messageOf(error)}: check MEMORY_DATABASE_URL and the server's log`}`,
    cause: error,
  });
}

const OPEN_HINTS = new Map([
  ['ECONNREFUSED', 'refuses connections: is it running, and are host and port correct?'],
  ['ENOTFOUND', 'unknown host: check its name in MEMORY_DATABASE_URL'],
  [
    'EAI_AGAIN',
    'its host name cannot be resolved at the moment: check the name in MEMORY_DATABASE_URL, and DNS',
  ],
  ['28P01', 'the password is wrong: check user and password in MEMORY_DATABASE_URL'],
  ['28000', 'rejects this user: check MEMORY_DATABASE_URL and pg_hba.conf'],
  ['3D000', 'the database does not exist: create it (createdb)'],
  ['42501', 'the user lacks a privilege: it must be able to create tables in its schema'],
  ['42P07', 'has tables named memory_… that belong to another program: use another database or schema'],
  ['57P03', 'is starting up: try again in a moment'],
  ['53300', 'has no connection left: raise max_connections or use fewer backends'],
]);
