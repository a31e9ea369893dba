import { membersOf } from './foreign.ts';

/** Whether an error is an answer of the server: otherwise the state of its connection is unknown. */
export const isAnswer = (error: unknown): boolean => /^(?!E[A-Z])[0-9A-Z]{5}$/.test(sqlState(error));

/** Whether the server has not answered in time (`query_timeout` of pg, which gives the error no code). */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof Error && error.message === 'Query read timeout';

/** The SQLSTATE of an error (postgresql.org/docs/current/errcodes-appendix.html) or the code of a system call; '' if it has none. */
export function sqlState(error: unknown): string {
  const code = membersOf(error)['code'];
  return typeof code === 'string' ? code : '';
}
