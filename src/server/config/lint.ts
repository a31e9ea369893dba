import { isCredentialName, isCredentialOption } from '../../core/credentials.ts';
import type { Diagnostic, Path } from '../../core/diagnostic.ts';
import { secretPaths } from '../../core/schema/secrets.ts';
import { valueAt } from '../../core/schema/walk.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import { textPaths } from './found-secrets.ts';
import { configSchema } from './schema.ts';

/** Warnings about secrets that are written in the configuration file, or whose value is the placeholder of `agctl init`. */
export function lint(source: YamlSource): Diagnostic[] {
  return [...literalKeys(source), ...literalArguments(source), ...placeholders(source)];
}

/** The beginning of values that `agctl init` writes for secrets which it does not know. */
export const PLACEHOLDER = 'change-me';

/** Wherever a variable is the whole value: ids of keys, such as AWS_ACCESS_KEY_ID, are no secrets but have to be filled in too. */
function placeholders(source: YamlSource): Diagnostic[] {
  const isPlaceholder = (path: Path): boolean => String(valueAt(source.value, path)).startsWith(PLACEHOLDER);
  const secrets = secretPaths(configSchema, source.value).filter(isPlaceholder);
  const known = new Set(secrets.map((path) => JSON.stringify(path)));
  const variables = textPaths(source.value)
    .filter((path) => isPlaceholder(path) && source.variableAt(path) !== undefined)
    .filter((path) => !known.has(JSON.stringify(path)));
  return [...secrets, ...variables].map((path) => {
    const variable = source.variableAt(path);
    return {
      severity: 'warning',
      code: 'AGW0317',
      file: source.file,
      path,
      range: source.valueRange(path),
      message: `${variable ?? 'the secret'} still has the placeholder \`${PLACEHOLDER}\``,
      label: 'not filled in',
      help: `give ${variable ?? 'the variable'} its value, in the environment or in \`gateway.env\` beside the file`,
    };
  });
}

const KEY_NAMES = new Set(['key', 'apiKey']);

/** Keys of external services. A variable in `env` of a stdio server counts only by its name or the form of its value. */
function literalKeys(source: YamlSource): Diagnostic[] {
  return secretPaths(configSchema, source.value)
    .filter((path) => (path.at(-2) === 'env' ? isCredential(source, path) : isKey(path)))
    .filter((path) => !source.isFromEnvironment(path) && !isNoKey(valueAt(source.value, path)))
    .map((path) => literal(source, path, `read it from the environment: \`${nameOf(path)}: $NAME\``));
}

/** What servers that check no key are given in its place, by the documentation of Ollama and vLLM. */
const isNoKey = (value: unknown): boolean =>
  typeof value === 'string' && /^(?:none|ollama|empty)$/i.test(value);

/** `key: …`, or upstream's `key: { value: … }`. */
const isKey = (path: Path): boolean =>
  KEY_NAMES.has(nameOf(path)) || (nameOf(path) === 'value' && path.at(-2) === 'key');

const nameOf = (path: Path): string => String(path.at(-1));

function isCredential(source: YamlSource, path: Path): boolean {
  const value = valueAt(source.value, path);
  if (value === '') return false;
  return isSecretName(nameOf(path)) || hasPassword(value);
}

/** `API_KEY_FILE` has the path of a key, not the key. */
const isOfFile = (name: string): boolean => /(?:file|path|dir)$/i.test(name);

const isSecretName = (name: string): boolean => isCredentialName(name) && !isOfFile(name);

const isSecretOption = (name: string): boolean => isCredentialOption(name) && !isOfFile(name);

const hasPassword = (value: unknown): boolean =>
  typeof value === 'string' && /:\/\/[^\s/:@]{0,512}:[^\s/@]{1,512}@/.test(value);

/** Arguments of commands: every user of the machine can read the arguments of a running process. */
function literalArguments(source: YamlSource): Diagnostic[] {
  return secretArguments(source).map((path) =>
    literal(source, path, 'set it in `env` of the server, or read it from the environment: `$NAME`'),
  );
}

/** Paths of command arguments that contain a literal secret. */
export function secretArguments(source: YamlSource): Path[] {
  return argumentPaths(source.value, []).filter((path) => !source.isFromEnvironment(path));
}

function argumentPaths(value: unknown, path: Path): Path[] {
  // Some configurations have the arguments in `cmd`, where they are visible too.
  if (path.at(-1) === 'cmd' && typeof value === 'string') {
    const words = value.split(/\s+/);
    return words.some((_, index) => isSecretArgument(words, index)) ? [path] : [];
  }
  if (value === null || typeof value !== 'object') return [];
  if (path.at(-1) === 'args' && Array.isArray(value))
    return value.flatMap((_, index) => (isSecretArgument(value, index) ? [[...path, index]] : []));
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : Object.entries(value);
  return entries.flatMap(([key, child]) => argumentPaths(child, [...path, key]));
}

/** `x` of `--token x`, `--token=x`, `https://user:password@host`. */
function isSecretArgument(args: readonly unknown[], index: number): boolean {
  const [before, arg] = [args[index - 1], args[index]];
  if (typeof arg !== 'string') return false;
  if (hasPassword(arg)) return true;
  const [, option] = /^(--?[\w-]{1,64})=./s.exec(arg) ?? [];
  if (option !== undefined) return isSecretOption(option);
  const isValue = typeof before === 'string' && /^--?[\w-]{1,64}$/.test(before) && !arg.startsWith('-');
  return isValue && arg !== '' && isSecretOption(before);
}

function literal(source: YamlSource, path: Path, help: string): Diagnostic {
  return {
    severity: 'warning',
    code: 'AGW0302',
    file: source.file,
    path,
    range: source.valueRange(path),
    message: 'literal secret in the configuration file',
    label: 'anyone who can read the file can read it',
    help,
  };
}
