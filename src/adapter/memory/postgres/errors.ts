import { AppError, messageOf } from '../../../core/errors.ts';

// SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html) or the code of a system call.
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : '';
}

/** Two backends wrote the same at once; the transaction left nothing behind and may be tried again. */
export function isConflict(error: unknown): boolean {
  return ['40001', '40P01', '23505'].includes(codeOf(error));
}

/** A failure of a call, as its caller may see it. */
export function callError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const code = codeOf(error);
  const options = { detail: `${code} ${messageOf(error)}`.trim(), cause: error };
  if (code === '53100') return new AppError('memory_full', options);
  const message = CALL_MESSAGES.get(code);
  if (message !== undefined) return new AppError('memory_unavailable', { ...options, message });
  // No SQLSTATE: the connection failed, perhaps between a commit and its answer.
  const known = /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E') && !code.startsWith('08');
  return new AppError('memory_unavailable', {
    ...options,
    message: known
      ? 'the memory store failed: nothing was stored'
      : 'the memory store cannot be reached; whether a write arrived is not known',
  });
}

/** No connection could be had, so nothing was sent. */
export function connectError(error: unknown): AppError {
  return new AppError('memory_unavailable', {
    message: 'the memory store cannot be reached: nothing was stored',
    detail: `${codeOf(error)} ${messageOf(error)}`.trim(),
    cause: error,
  });
}

const CALL_MESSAGES = new Map([
  ['25006', 'the memory store is read-only: nothing was stored'],
  ['57014', 'the memory store took too long: nothing was stored'],
  ['53300', 'the memory store has no connection left: nothing was stored'],
]);

/** A failure to open, for the operator: which server, what is wrong, what to do. */
export function openError(server: string, error: unknown): AppError {
  if (error instanceof AppError) return error;
  const hint = OPEN_HINTS.get(codeOf(error));
  return new AppError('memory_not_opened', {
    message: `${server}: ${hint ?? `${messageOf(error)}: check MEMORY_DATABASE_URL and the server's log`}`,
    cause: error,
  });
}

const OPEN_HINTS = new Map([
  ['ECONNREFUSED', 'refuses connections: is it running, and are host and port right?'],
  ['ENOTFOUND', 'the host is not known: check its name in MEMORY_DATABASE_URL'],
  ['28P01', 'the password is wrong: check user and password in MEMORY_DATABASE_URL'],
  ['28000', 'does not let this user in: check MEMORY_DATABASE_URL and pg_hba.conf'],
  ['3D000', 'the database does not exist: create it (createdb)'],
  ['42501', 'the user lacks a right: it must be able to create tables in its schema'],
  ['42P07', 'has tables named memory_… that are not ours: use another database or schema'],
  ['57P03', 'is starting up: try again in a moment'],
  ['53300', 'has no connection left: raise max_connections or use fewer backends'],
]);
