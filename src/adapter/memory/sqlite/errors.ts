import { AppError, messageOf } from '../../../core/errors.ts';
import { RowError } from '../../../core/sql-row.ts';
import { RESULT, resultCode } from '../../../core/sqlite-result.ts';

/** Converts the failure of a call to an error for its caller. */
export function callError(error: unknown): AppError {
  if (error instanceof RowError)
    return new AppError('memory_unavailable', {
      message: 'the memory store is damaged',
      detail: error.detail,
      cause: error,
    });
  if (error instanceof AppError) return error;
  const detail = messageOf(error);
  const options = { detail, cause: error };
  switch (resultCode(error)) {
    case RESULT.full:
      return new AppError('memory_full', options);
    case RESULT.readonly:
      return new AppError('memory_unavailable', {
        ...options,
        message: 'the memory store is read-only: nothing was stored',
      });
    case RESULT.ioerr:
      return new AppError('memory_unavailable', {
        ...options,
        message: 'the disk of the memory store failed: nothing was stored',
      });
    case RESULT.corrupt:
    case RESULT.notadb:
      return new AppError('memory_unavailable', { ...options, message: 'the memory store is damaged' });
    default:
      return new AppError('memory_unavailable', options);
  }
}

/** Converts a failure to open a file to an error for the operator: which file, what is wrong, what to do. */
export function openError(path: string, error: unknown): AppError {
  if (error instanceof AppError) return error;
  const say = (message: string): AppError =>
    new AppError('memory_not_opened', { message: `${path}: ${message}`, cause: error });
  switch (resultCode(error)) {
    case RESULT.full:
      return say('the disk is full: free space on it and start again');
    case RESULT.readonly:
      return say('cannot be written: allow this user to write the file and its folder');
    case RESULT.cantopen:
      return say('cannot be opened: the folder must exist and this user must be able to read and write it');
    case RESULT.notadb:
      return say('is not a database of agctl: move the file away, or use another folder with --data');
    case RESULT.corrupt:
      return damaged(path, messageOf(error));
    case RESULT.ioerr:
      return say(`the disk failed (${messageOf(error)}): check it, then start again`);
    default:
      return say(messageOf(error));
  }
}

export function damaged(path: string, finding: string): AppError {
  return new AppError('memory_not_opened', {
    message:
      `${path}: the file is damaged (${finding}). It was left unchanged: restore it from a backup, or move it and the ` +
      'accompanying files (-wal) away to start with an empty store',
  });
}
