import { messageOf } from '../../core/errors.ts';

/**
 * A failure of a target with different texts for clients and the log. `message` is sent to clients. `detail` is for logs and
 * the admin server: it may contain the command and its output on stderr, and must not contain secrets.
 */
export class TargetFailure extends Error {
  readonly detail: string;
  /** Whether `message` is a predicate with the target as its subject, such as `exited with code 3`. */
  readonly isPredicate: boolean;

  constructor(message: string, detail: string, isPredicate = false) {
    super(message);
    this.name = 'TargetFailure';
    this.detail = detail;
    this.isPredicate = isPredicate;
  }
}

/** Text of a failure for the log. */
export const detailOf = (error: unknown): string =>
  error instanceof TargetFailure ? error.detail : messageOf(error);

/** Text of a failure for clients, with its target: `target "a" exited with code 3`, `target "a": no answer`. */
export function publicProblem(target: string, error: unknown, otherwise = ':'): string {
  const joint = error instanceof TargetFailure && error.isPredicate ? '' : otherwise;
  return `target "${target}"${joint} ${messageOf(error)}`;
}
