import { CommandError } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { readNamedFile } from '../../core/named-file.ts';
import type { Cassette } from '../../library/cassette/format.ts';
import { CassetteError, parseCassette } from '../../library/cassette/read-cassette.ts';

/** Reads the file that a command names, or standard input for `-`. @throws CommandError */
export function read(file: string, cwd: string): Cassette {
  const hint = 'name a file of agctl record';
  const text = readNamedFile(file, { cwd, maxBytes: LIMITS.cassetteBytes, hint });
  try {
    return parseCassette(text, file === '-' ? 'standard input' : file);
  } catch (error) {
    if (error instanceof CassetteError) throw new CommandError('usage', error.message);
    throw error;
  }
}
