import { messageOf } from '../../core/errors.ts';

/**
 * A target that failed in a way of which clients are told less than the log. `message` is for clients; `detail`, which
 * may hold the command and what it wrote on stderr, must be free of secrets: it goes to logs, and to the admin server.
 */
export class TargetFailure extends Error {
  readonly detail: string;
  /** `message` continues a sentence that begins with the target: `exited with code 3`. */
  readonly isPredicate: boolean;

  constructor(message: string, detail: string, isPredicate = false) {
    super(message);
    this.name = 'TargetFailure';
    this.detail = detail;
    this.isPredicate = isPredicate;
  }
}

/** What the log is told of a failure. */
export const detailOf = (error: unknown): string =>
  error instanceof TargetFailure ? error.detail : messageOf(error);

/** A failure for clients, with the name of its target: `target "a" exited with code 3`, `target "a": no answer`. */
export function publicProblem(target: string, error: unknown, otherwise = ':'): string {
  const joint = error instanceof TargetFailure && error.isPredicate ? '' : otherwise;
  return `target "${target}"${joint} ${messageOf(error)}`;
}
