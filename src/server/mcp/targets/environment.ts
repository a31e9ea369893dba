import { Redactor } from '../../../core/redact.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** What a child's environment is made of, as the configuration says. */
export interface EnvironmentSettings {
  readonly env: Readonly<Record<string, string>>;
  readonly inheritEnv: boolean;
  readonly clear_env: boolean;
}

// What programs need to find their files and their language, and nothing that could be a credential.
const SYSTEM =
  'PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TMPDIR|TMP|TEMP|USER|LOGNAME|SHELL|TERM|TZ|XDG_[A-Z_]+|SYSTEMROOT|WINDIR|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE|PROGRAMFILES';
// What they need to reach the network from inside a company. A proxy URL may hold a password: whoever sets it for a
// process sets it for the programs that the process starts.
const NETWORK = 'NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|(?:HTTPS?|ALL|NO)_PROXY';
// Settings of npx, uvx and pipx: where packages come from. `npm exec` exports its own `--call` and `--package`, too: a
// gateway started by `npx` would hand them to its children, whose npx would run the gateway's package again.
const PACKAGES = 'npm_config_(?!(?:call|package)$).+|UV_.+|PIP_.+';
const INHERITED = new RegExp(`^(?:${SYSTEM}|${NETWORK}|${PACKAGES})$`, 'i');

/** The environment of a child: the allow-list of the gateway's own, all of it, or none, and what is configured. */
export function childEnvironment(
  { env, inheritEnv, clear_env }: EnvironmentSettings,
  own: Variables,
): Record<string, string> {
  if (clear_env) return { ...env };
  const entries = Object.entries(own).filter((pair): pair is [string, string] => pair[1] !== undefined);
  const inherited = inheritEnv ? entries : entries.filter(([name]) => INHERITED.test(name));
  return { ...Object.fromEntries(inherited), ...env };
}

/** Names of variables whose values a server may print, and logs must not show. */
const SECRET_VARIABLE = /key|secret|token|passw|credential|auth/i;

/** Finds the credentials of an environment in what a child prints. */
export function environmentRedactor(env: Readonly<Record<string, string>>): Redactor {
  return new Redactor(
    Object.entries(env).flatMap(([name, value]) => [
      ...(SECRET_VARIABLE.test(name) ? [value] : []),
      ...passwordsIn(value),
    ]),
  );
}

/** The password of a URL such as `http://user:password@proxy:3128`, as it is written and as it is meant. */
function passwordsIn(value: string): string[] {
  const written = /^[a-z][a-z0-9+.-]*:\/\/[^\s/@:]*:([^\s/@]+)@/i.exec(value)?.[1];
  if (written === undefined) return [];
  try {
    return [written, decodeURIComponent(written)];
  } catch {
    return [written];
  }
}
