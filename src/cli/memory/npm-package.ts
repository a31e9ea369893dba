import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import type { Context } from '../context.ts';

/** `name`, `@scope/name`, with `@version` or `@tag`. Not what npm would clone or run, such as `owner/repository`. */
const SPEC = /^((?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*)(?:@([\w.^~<>=*+-]+))?$/;
/** What npm says at the end explains a failure. */
const SAID = 2_000;

export interface PackageSpec {
  readonly name: string;
  readonly version: string | undefined;
}

/** A text that names a package of npm. */
export function packageSpecIn(text: string): PackageSpec | undefined {
  const [, name, version] = SPEC.exec(text) ?? [];
  return name === undefined || text.startsWith('-') ? undefined : { name, version };
}

/** The folder of a package that is installed for `folder` or one above it. */
export function installedPackage(name: string, folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const found = join(at, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return found;
    if (dirname(at) === at) return undefined;
  }
}

/**
 * Fetches a package with the user's npm, which runs none of its scripts. Returns the path of the archive in `folder`.
 *
 * @throws CommandError with what npm says
 */
export async function packedPackage(
  { name, version }: PackageSpec,
  folder: string,
  { env, cwd }: Context,
): Promise<string> {
  const spec = version === undefined ? name : `${name}@${version}`;
  const args = ['pack', '--ignore-scripts', '--pack-destination', folder, spec];
  // npm is a script on Windows, which a shell has to run; the characters of SPEC mean nothing inside quotes.
  const isWindows = process.platform === 'win32';
  const [command, given] = isWindows ? [`npm ${args.map((arg) => `"${arg}"`).join(' ')}`, []] : ['npm', args];
  const npm = spawn(command, given, {
    cwd,
    env: { ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    shell: isWindows,
  });
  let said = '';
  npm.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-SAID);
  });
  const [code] = await once(npm, 'close').catch((error: unknown) => {
    throw new CommandError(
      'not_ok',
      `npm cannot be started: ${messageOf(error)}`,
      'fetch the package in another way, and name its folder or archive',
    );
  });
  const [archive] = readdirSync(folder).filter((file) => file.endsWith('.tgz'));
  if (code === 0 && archive !== undefined) return join(folder, archive);
  throw new CommandError(
    'not_ok',
    `npm pack ${spec} failed: ${escapeControls(reason(said))}`,
    'npm uses its own registry and credentials (npm config list); or name a folder or an archive',
  );
}

/** The lines of npm that say something. */
function reason(said: string): string {
  const lines = said.split('\n').flatMap((line) => /^npm (?:error|ERR!) (.+)$/.exec(line)?.[1] ?? []);
  const useful = lines.filter((line) => !/^(?:A complete log|code )/.test(line));
  return useful.slice(0, 4).join(' ') || said.trim() || 'it says nothing';
}
