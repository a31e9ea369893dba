import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { messageOf } from './errors.ts';
import { CommandError } from './exit-codes.ts';

interface ReadOptions {
  /** Folder that `file` is relative to. Default: the working directory. */
  readonly cwd?: string;
  readonly maxBytes?: number;
  /** Help text for when `file` is a folder. */
  readonly hint?: string;
}

/**
 * Reads a file that the user named; `-` is standard input.
 *
 * @throws CommandError with exit name `usage` when the file cannot be read or has more than `maxBytes` bytes
 */
export function readNamedFile(
  file: string,
  { cwd = '', maxBytes = Infinity, hint }: ReadOptions = {},
): string {
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
