import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { membersOf, parseJson, textIn } from '../core/foreign.ts';
import { PACKAGE_ROOT } from '../core/package-root.ts';
import { PACKAGE_NAME, VERSION } from '../core/version.ts';
import type { Context } from './context.ts';

const PROGRAM = fileURLToPath(new URL('bin/agctl.js', PACKAGE_ROOT));
const INSTALLED = join('node_modules', '.bin');

/** How this program was started. */
export interface Start {
  readonly env: Context['env'];
  readonly cwd: string;
  /** The path that Node.js was given: of this program, or of a link to it. */
  readonly script?: string | undefined;
  /** This program, without links. */
  readonly program?: string;
}

/**
 * How the user can call this program again from a folder, for commands that are printed to be copied. Never by a name that
 * could run another program: npm has a package `agctl` of somebody else.
 */
export function invocation(start: Start, folder: string): string {
  const { env, cwd, script = PROGRAM, program = PROGRAM } = start;
  if (isOnPath(start)) return 'agctl';
  if (isInNpxCache(program)) return `npx -y ${quoted(packageInNpxCache(program))}`;
  if (isInstalledFor(folder, program)) return 'npx agctl';
  const inFolder = relative(folder, script);
  const path = quoted(inFolder.startsWith('..') ? script : inFolder);
  // The shell sets `_` to the command as it was typed: `./bin/agctl.js`, or `node`.
  const isCommand = env['_']?.includes(sep) === true && resolve(cwd, env['_']) === resolve(cwd, script);
  if (!isCommand) return `node ${path}`;
  return path.includes(sep) && !inFolder.startsWith('..') ? `./${path}` : path;
}

/**
 * Whether `agctl` runs this program in the user's shell. npx and scripts of npm put folders on the PATH that this shell does
 * not have.
 */
function isOnPath({ env, program = PROGRAM }: Start): boolean {
  const folders = (env['PATH'] ?? '').split(delimiter);
  const file = folders
    .filter((folder) => folder !== '' && !folder.endsWith(INSTALLED))
    .map((folder) => join(folder, 'agctl'))
    .find((path) => existsSync(path));
  return file !== undefined && (isSame(file, program) || isWrapper(file, program));
}

/** Whether a script starts this program, as those of package managers and administrators do. */
function isWrapper(file: string, program: string): boolean {
  try {
    return readFileSync(file, 'utf8').includes(program);
  } catch {
    return false;
  }
}

/** Whether `npx agctl` runs this program in a folder: in the nearest folder above that has an `agctl` installed. */
function isInstalledFor(folder: string, program: string): boolean {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const file = join(at, INSTALLED, 'agctl');
    if (existsSync(file)) return isSame(file, program);
    if (dirname(at) === at) return false;
  }
}

function isSame(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return false;
  }
}

/** Quotes a path for a shell if necessary. */
const quoted = (text: string): string =>
  /^[\w@%+=:,./\\-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** Whether a path is in the cache of npx, which npx may empty. */
export const isInNpxCache = (path: string): boolean => path.includes('_npx');

/** What npx installed into its cache, as an argument of npx that works in any folder and always runs this version. */
function packageInNpxCache(program: string): string {
  const [folder = ''] = /^.*[\\/]_npx[\\/][^\\/]+/.exec(program) ?? [];
  const given = textIn(membersOf(dependenciesOf(folder))[PACKAGE_NAME]);
  if (given.startsWith('file:')) return `file:${resolve(folder, given.slice('file:'.length))}`;
  return given.includes('/') ? given : `${PACKAGE_NAME}@${VERSION}`;
}

function dependenciesOf(folder: string): unknown {
  try {
    return membersOf(parseJson(readFileSync(join(folder, 'package.json'), 'utf8')))['dependencies'];
  } catch {
    return undefined;
  }
}

/** How a configuration starts this program: name or path of an executable, then its first arguments. */
export function startCommand(start: Start): readonly [string, ...string[]] {
  const { program = PROGRAM } = start;
  if (isOnPath(start)) return ['agctl'];
  return isInNpxCache(program) ? ['npx', '-y', packageInNpxCache(program)] : [process.execPath, program];
}

/** Commands of this program in a text, wherever a word follows that it has as a command. */
const COMMANDS =
  /(?<![\w./@-])agctl (?=(?:add|init|connect|serve|gateway serve|memory|memory-adapter|memory-backend|check|record|replay|verify|config|auth|costs|proxy|keys|users|database|usage|audit|logs|top|completion|version|help|--help|\[options\])(?![\w-]))/g;

/** A text that says `agctl COMMAND`, with what the user can type instead. */
export function asCalled(text: string, { invocation: called, cwd }: Context): string {
  if (called === undefined) return text;
  const name = called(cwd);
  return name === 'agctl' ? text : text.replaceAll(COMMANDS, () => `${name} `);
}
