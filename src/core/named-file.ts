import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { messageOf } from './errors.ts';
import { CommandError } from './exit-codes.ts';
import { errorCode } from './foreign.ts';
import { escapeControls } from './log.ts';
import { nearest } from './suggest.ts';

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
  if (file === '') throw new CommandError('usage', 'the name of a file is empty', hint);
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
    if (errorCode(error) !== 'ENOENT')
      throw new CommandError('usage', `cannot read ${file}: ${messageOf(error)}`);
    const near = similarFile(resolve(cwd, file));
    throw new CommandError(
      'usage',
      `no such file: ${file}`,
      near === undefined ? undefined : `did you mean ${escapeControls(join(dirname(file), near))}?`,
    );
  }
}

/** A file of the same folder with a similar name. */
function similarFile(path: string): string | undefined {
  try {
    return nearest(basename(path), readdirSync(dirname(path)));
  } catch {
    return undefined;
  }
}
