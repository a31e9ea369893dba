import type { Database } from '../kernel/database.ts';

/** An open database of one kind. Its calls reject as those of `Database`. */
export interface Driver extends Omit<Database, 'kind'> {
  /** Calls made before still run. */
  close(): Promise<void>;
}

/** The database cannot be opened. The message names it and says why, without secrets. */
export class DatabaseError extends Error {
  /** What to do about it. */
  readonly help: string;
  /** Whether it may succeed later without a change here: the server is not reachable or starting. */
  readonly isTransient: boolean;

  constructor(message: string, help: string, options: { isTransient?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'DatabaseError';
    this.help = help;
    this.isTransient = options.isTransient ?? false;
  }
}
