import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import { makeFolder } from '../../core/make-folder.ts';
import { PACKAGE_ROOT } from '../../core/package-root.ts';
import { DEFAULT_CONFIG_FILE } from '../config-file.ts';
import { isInNpxCache } from '../invocation.ts';
import { UNKNOWN_VALUE, type Variable } from './variables.ts';

/** The file with the variables that the configuration needs, which commands read beside it. */
export const ENV_FILE = 'gateway.env';

/**
 * The paths of the files in a folder.
 *
 * @throws CommandError with exit name `not_ok` if there is one already
 */
export function newFiles(folder: string, shown: (path: string) => string): { config: string; env: string } {
  const files = { config: join(folder, DEFAULT_CONFIG_FILE), env: join(folder, ENV_FILE) };
  const taken = Object.values(files).find((path) => existsSync(path));
  if (taken !== undefined)
    throw new CommandError(
      'not_ok',
      `${shown(taken)} exists already, and nothing is overwritten`,
      'name another folder: agctl init <folder>',
    );
  return files;
}

/** Writes a file that does not exist; with `isPrivate`, nobody else can read it. @throws CommandError */
export function writeNew(path: string, text: string, folder: string, isPrivate = false): void {
  try {
    makeFolder(folder);
    writeFileSync(path, text, { flag: 'wx', mode: isPrivate ? 0o600 : 0o644 });
    if (isPrivate) chmodSync(path, 0o600);
  } catch (error) {
    throw new CommandError('not_ok', `cannot write ${path}: ${messageOf(error)}`);
  }
}

/** Whether values are written, and what stands for one that is not known: a placeholder, or no value at all. */
type Written = boolean | 'values only';

/** The file of variables beside a configuration. */
export function envFileText(
  variables: readonly Variable[],
  withValues: Written,
  config = DEFAULT_CONFIG_FILE,
): string {
  return `# Variables of ${config}, which agctl reads from this file when it starts; those of the environment take precedence.\n# Keep this file out of version control.\n\n${envFileLines(variables, withValues)}`;
}

/** The lines for variables. Names of servers and files in comments write no lines of their own. Values are quoted as `node --env-file` reads them. */
export function envFileLines(variables: readonly Variable[], withValues: Written): string {
  const lines = variables.map(({ name, value, from, placeholder = UNKNOWN_VALUE }) => {
    const shown = withValues !== false && value !== undefined ? quoted(value) : undefined;
    if (shown === undefined && withValues === 'values only' && placeholder !== '')
      return `# ${escapeControls(from)}\n# ${name}=\n`;
    return `# ${escapeControls(from)}\n${name}=${shown ?? placeholder}\n`;
  });
  return lines.join('\n');
}

/** What is to be filled in, in the file of variables. */
export function openLines(variables: readonly Variable[]): string[] {
  const line = (title: string, isOptional: boolean): string[] => {
    const names = variables.filter(({ placeholder }) => (placeholder === '') === isOptional);
    return names.length === 0 ? [] : [`${title}: ${names.map(({ name }) => name).join(', ')}`];
  };
  return [...line('fill in', false), ...line('fill in if it is needed', true)];
}

function quoted(value: string): string {
  if (/^[\w./:@%+,=-]*$/.test(value)) return value;
  const quote = [`'`, '"', '`'].find((each) => !value.includes(each));
  // Double quotes expand `\n`; no form has all three quotation marks.
  return quote === undefined ? UNKNOWN_VALUE : `${quote}${value}${quote}`;
}

/** Path of the JSON Schema for editors; undefined if this program is in a cache that npx may empty. */
export function schemaPath(folder: string): string | undefined {
  const path = fileURLToPath(new URL('man/config.schema.json', PACKAGE_ROOT));
  if (isInNpxCache(path)) return undefined;
  const inFolder = relative(folder, path);
  return inFolder.startsWith('..') ? path : `./${inFolder.replaceAll('\\', '/')}`;
}
