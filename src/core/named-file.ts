import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { messageOf } from './errors.ts';
import { CommandError } from './exit-codes.ts';

interface Wanted {
  /** What `file` is relative to; the folder of the process when absent. */
  readonly cwd?: string;
  readonly maxBytes?: number;
  /** What to give instead of a folder. */
  readonly hint?: string;
}

/** Text of a file that a user named; `-` is standard input. Throws `CommandError` (usage) when it cannot be read. */
export function readNamedFile(file: string, { cwd = '', maxBytes = Infinity, hint }: Wanted = {}): string {
  const tooLarge = (): CommandError => new CommandError('usage', `${file} is larger than ${maxBytes} bytes`);
  try {
    const path = file === '-' ? undefined : resolve(cwd, file);
    if (path !== undefined) {
      const found = statSync(path);
      if (found.isDirectory()) throw new CommandError('usage', `${file} is a directory`, hint);
      if (found.size > maxBytes) throw tooLarge();
    }
    const bytes = readFileSync(path ?? 0);
    if (bytes.length > maxBytes) throw tooLarge();
    return bytes.toString('utf8');
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new CommandError(
      'usage',
      missing ? `no such file: ${file}` : `cannot read ${file}: ${messageOf(error)}`,
    );
  }
}
