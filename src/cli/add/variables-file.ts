import { readFileSync, unlinkSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { parseEnv } from 'node:util';
import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { errorCode } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { replaceFile } from '../../core/replace-file.ts';
import { envFileLines, envFileText, writeNew } from '../init/files.ts';
import type { Variable } from '../init/variables.ts';

/**
 * Adds variables at the end of the file beside a configuration, which only its owner can read if it is new. What the file has
 * stays as it is. One without a value is a comment: a running gateway would start the server with a placeholder. Returns a function that undoes it.
 *
 * @throws CommandError with exit name `not_ok` if the file cannot be written
 */
export function addVariables(path: string, variables: readonly Variable[], config: string): () => void {
  const before = textOf(path);
  if (before === undefined) {
    writeNew(path, envFileText(variables, 'values only', basename(config)), dirname(path), true);
    return () => unlinkSync(path);
  }
  const text = `${before}${before === '' || before.endsWith('\n') ? '' : '\n'}\n${envFileLines(variables, 'values only')}`;
  const [old, added] = [parseEnv(before), parseEnv(text)];
  // An open quotation mark at the end of the file would take in what follows.
  const isKept = Object.entries(old).every(([name, value]) => added[name] === value);
  const isMissing = ({ name, value, placeholder }: Variable): boolean =>
    added[name] === undefined && (value !== undefined || placeholder === '');
  if (!isKept || variables.some((each) => isMissing(each) || old[each.name] !== undefined))
    throw new CommandError('not_ok', `${path} cannot be added to`, 'close the quotation marks in it');
  if (Buffer.byteLength(text) > LIMITS.envFileBytes)
    throw new CommandError('not_ok', `${path} would be larger than ${LIMITS.envFileBytes} bytes`);
  replace(path, text, before);
  return () => replace(path, before, text);
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new CommandError('not_ok', `cannot read ${path}: ${messageOf(error)}`);
  }
}

function replace(path: string, text: string, before: string): void {
  try {
    if (replaceFile(path, Buffer.from(text), () => readFileSync(path, 'utf8') === before)) return;
  } catch (error) {
    throw new CommandError('not_ok', `cannot write ${path}: ${messageOf(error)}`);
  }
  throw new CommandError('not_ok', `another program has just changed ${path}`, 'try again');
}
