import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { Redactor } from '../../../../core/redact.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** Settings of a stdio target that determine the environment of its process. */
export interface EnvironmentSettings {
  readonly env: Readonly<Record<string, string>>;
  readonly inheritEnv: boolean;
  readonly clear_env: boolean;
}

// Variables that programs need to find files and the language. None of them can contain a credential.
const SYSTEM =
  'PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TMPDIR|TMP|TEMP|USER|LOGNAME|SHELL|TERM|TZ|XDG_[A-Z_]+|SYSTEMROOT|WINDIR|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE|PROGRAMFILES';
// Variables for network access from inside a company. A proxy URL may contain a password, which is meant for all programs
// that the process starts.
const NETWORK = 'NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|(?:HTTPS?|ALL|NO)_PROXY';
// Settings of npx, uvx and pipx for package sources. `npm exec` also exports its own `--call` and `--package`: with them,
// the npx of a child of a gateway that was started by `npx` would run the gateway's package again.
const PACKAGES = 'npm_config_(?!(?:call|package)$).+|UV_.+|PIP_.+';
const INHERITED = new RegExp(`^(?:${SYSTEM}|${NETWORK}|${PACKAGES})$`, 'i');

/**
 * Returns the environment of a child: allow-listed variables of `own` (or all with `inheritEnv`, none with `clear_env`), and
 * the configured ones.
 */
export function childEnvironment(
  { env, inheritEnv, clear_env }: EnvironmentSettings,
  own: Variables,
): Record<string, string> {
  if (clear_env) return { ...env };
  const entries = Object.entries(own).filter((pair): pair is [string, string] => pair[1] !== undefined);
  const inherited = inheritEnv ? entries : entries.filter(([name]) => INHERITED.test(name));
  return { ...Object.fromEntries(inherited), ...env };
}

/** Names of variables whose values logs must not contain, even if the server prints them. */
const SECRET_VARIABLE = /key|secret|token|passw|credential|auth/i;

/** Creates a redactor for the credentials of an environment, for the output of a child. */
export function environmentRedactor(env: Readonly<Record<string, string>>): Redactor {
  return new Redactor(
    Object.entries(env).flatMap(([name, value]) => [
      ...(SECRET_VARIABLE.test(name) ? [value] : []),
      ...passwordsIn(value),
    ]),
  );
}

/** The password of a URL such as `http://user:password@proxy:3128`, encoded and decoded. */
function passwordsIn(value: string): string[] {
  const written = /^[a-z][a-z0-9+.-]*:\/\/[^\s/@:]*:([^\s/@]+)@/i.exec(value)?.[1];
  if (written === undefined) return [];
  try {
    return [written, decodeURIComponent(written)];
  } catch {
    return [written];
  }
}

/** Working folder of a stdio target; `folder` is that of the configuration file. */
export const workingFolder = ({ cwd = '.' }: { readonly cwd?: string | undefined }, folder: string): string =>
  resolve(folder, cwd);

export const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Directories that the system searches without PATH (POSIX confstr `_CS_PATH`). */
const DEFAULT_PATH = ['/bin', '/usr/bin'].join(delimiter);

/** Finds the executable of a command as a child with this environment and working folder would; undefined if there is none. */
export function findCommand(
  cmd: string,
  env: Readonly<Record<string, string | undefined>>,
  folder: string,
): string | undefined {
  const candidates =
    cmd.includes('/') || cmd.includes('\\')
      ? [resolve(folder, cmd)]
      : (env['PATH'] ?? DEFAULT_PATH).split(delimiter).map((entry) => resolve(folder, join(entry, cmd)));
  return candidates.find((candidate) => {
    try {
      accessSync(candidate, constants.X_OK);
      return statSync(candidate).isFile();
    } catch {
      return false;
    }
  });
}
