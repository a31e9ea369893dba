import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/**
 * The JSON value in a file that a configuration names, of at most `maxBytes`. Errors say what is wrong and where, and
 * never quote the file: who may have a configuration checked need not be allowed to read every file of this machine.
 * What is no regular file is refused, since a pipe or device may block, or never end.
 *
 * @throws Error
 */
export function readJsonFile(file: string, maxBytes: number): unknown {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const descriptor = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) throw new Error(`${file} is not a regular file`);
    if (found.size > maxBytes) throw new Error(`${file} is larger than ${maxBytes} bytes`);
    return parseJson(readFileSync(descriptor, 'utf8'), file);
  } finally {
    closeSync(descriptor);
  }
}

/** `JSON.parse`, with an error that says where the text is wrong without quoting it. `name`: what the text is. */
export function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${name} is not valid JSON${placeOf(error, text)}`);
  }
}

/** V8 names the position of most mistakes, and quotes the text round it. */
function placeOf(error: unknown, text: string): string {
  const [, digits] = / at position (\d+)/.exec(error instanceof Error ? error.message : '') ?? [];
  if (digits === undefined) return '';
  const before = text.slice(0, Number(digits)).split('\n');
  return ` (line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1})`;
}
