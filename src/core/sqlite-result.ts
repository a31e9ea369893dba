import { membersOf } from './foreign.ts';

/** Primary result codes of SQLite (https://sqlite.org/rescode.html). */
export const RESULT = {
  busy: 5,
  locked: 6,
  readonly: 8,
  ioerr: 10,
  corrupt: 11,
  full: 13,
  cantopen: 14,
  notadb: 26,
} as const;

/** The primary result code of an error of `node:sqlite`, or undefined for any other error. */
export function resultCode(error: unknown): number | undefined {
  const { errcode: code } = membersOf(error);
  return typeof code === 'number' ? code & 0xff : undefined;
}
