/** A file that a component of the configuration reads again itself. */
export interface ReloadedFile {
  /** Absolute path. */
  readonly file: string;
  /** Called after the file has changed. Why it cannot be used, so that the previous content stays in use; undefined if it is. */
  changed(): RereadProblem | Promise<RereadProblem>;
}

export type RereadProblem = string | undefined;
