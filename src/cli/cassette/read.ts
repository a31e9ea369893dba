import { resolve } from 'node:path';
import { CommandError } from '../../core/exit-codes.ts';
import type { Cassette } from '../../library/cassette/format.ts';
import { CassetteError, readCassette } from '../../library/cassette/read-cassette.ts';

/** Reads the file that a command names. @throws CommandError */
export function read(file: string, cwd: string): Cassette {
  try {
    return readCassette(resolve(cwd, file), file);
  } catch (error) {
    if (error instanceof CassetteError) throw new CommandError('usage', error.message);
    throw error;
  }
}
