import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { parseJson as parsed } from '../../../core/foreign.ts';

/**
 * Reads a JSON file that a configuration names, of at most `maxBytes` bytes. Errors say what is wrong and where, but
 * never quote the file: a user who may validate a configuration need not be allowed to read every file of this machine.
 * Only regular files are accepted, since reading a pipe or device may block or never end.
 *
 * @throws Error when the file cannot be read, is too large or is not valid JSON
 */
export function readJsonFile(file: string, maxBytes: number): unknown {
  return parseJson(readRegularFile(file, maxBytes), file);
}

/**
 * Reads the text of a regular file that a configuration names, of at most `maxBytes` bytes.
 *
 * @throws Error when the file cannot be read, is too large or is not a regular file, as for `readJsonFile`
 */
export function readRegularFile(file: string, maxBytes: number): string {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const descriptor = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) throw new Error(`${file} is not a regular file`);
    if (found.size > maxBytes) throw new Error(`${file} is larger than ${maxBytes} bytes`);
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

/**
 * `JSON.parse` with an error that gives the position of the mistake without quoting the text. `name` describes the text
 * in that error.
 */
export function parseJson(text: string, name: string): unknown {
  try {
    return parsed(text);
  } catch (error) {
    throw new Error(`${name} is not valid JSON${placeOf(error, text)}`);
  }
}

/** V8 reports the position of most mistakes, but also quotes the surrounding text. */
function placeOf(error: unknown, text: string): string {
  const [, digits] = / at position (\d+)/.exec(error instanceof Error ? error.message : '') ?? [];
  if (digits === undefined) return '';
  const before = text.slice(0, Number(digits)).split('\n');
  return ` (line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1})`;
}
