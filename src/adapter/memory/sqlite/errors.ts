import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';
import { AppError, messageOf } from '../../../core/errors.ts';
import { errorCode } from '../../../core/foreign.ts';
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
        message: 'the memory store is read-only: nothing was changed',
      });
    case RESULT.ioerr:
      return new AppError('memory_unavailable', {
        ...options,
        message: 'the disk of the memory store failed: nothing was changed',
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
      return say(NOT_WRITABLE);
    case RESULT.cantopen:
      return say('cannot be opened: the folder must exist and this user must be able to read and write it');
    case RESULT.notadb:
      return say('is not a database of agctl: move the file away, or use another folder with --data');
    case RESULT.corrupt:
      return damaged(path, messageOf(error));
    case RESULT.ioerr:
      // SQLite says the same of a folder in which it may not make its log.
      return say(
        isWritable(dirname(path))
          ? `the disk failed (${messageOf(error)}): check it, then start again`
          : NOT_WRITABLE,
      );
    default:
      return say(FOLDER_PROBLEMS.get(errorCode(error)) ?? messageOf(error));
  }
}

const NOT_WRITABLE = 'cannot be written: allow this user to write the file and its folder';

/** What is wrong with the folder, by the code of Node.js. */
const FOLDER_PROBLEMS: ReadonlyMap<string, string> = new Map([
  ['EEXIST', 'its folder is a file, or below one: name a folder with --data'],
  ['ENOTDIR', 'its folder is a file, or below one: name a folder with --data'],
  ['ENOENT', 'its folder cannot be created there: name another folder with --data'],
  ['EACCES', NOT_WRITABLE],
  ['EROFS', NOT_WRITABLE],
]);

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

export function damaged(path: string, finding: string): AppError {
  return new AppError('memory_not_opened', {
    message:
      `${path}: the file is damaged (${finding}). It was left unchanged: restore it from a backup, or move it and the ` +
      'accompanying files (-wal) away to start with an empty store',
  });
}
