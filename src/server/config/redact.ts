import { Lexer } from 'yaml';
import { isCredentialName, isCredentialVariable, REDACTED } from '../../core/credentials.ts';
import type { Path, Range } from '../../core/diagnostic.ts';
import { credentialsIn, Redactor, withoutAssigned } from '../../core/redact.ts';
import { secretPaths, secretRanges } from '../../core/schema/secrets.ts';
import { valueAt } from '../../core/schema/walk.ts';
import { type Environment, variablesIn } from '../../core/yaml/env.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import { foundSecrets } from './found-secrets.ts';
import { type Config, configSchema } from './schema.ts';

/** A copy of the configuration in which every secret is `<redacted>`: what the schema marks, and `foundSecrets`. */
export function redactConfig(config: Config, source: YamlSource, env: Environment): Config {
  const copy = structuredClone(config);
  for (const path of secretPaths(configSchema, config)) replaceAt(copy, path, REDACTED);
  for (const { path } of foundSecrets(source, env)) {
    const value = valueAt(copy, path);
    if (typeof value === 'string') replaceAt(copy, path, withoutAssigned(value));
  }
  return copy;
}

function replaceAt(root: object, path: Path, shown: string): void {
  const parent = valueAt(root, path.slice(0, -1));
  const key = path.at(-1);
  if (typeof parent === 'object' && parent !== null && key !== undefined) Reflect.set(parent, key, shown);
}

/**
 * A redactor for the secrets of a configuration: values marked as secret, `foundSecrets`, and environment variables it
 * uses with secret names. `more`: credentials from files.
 */
export function redactorOf(source: YamlSource, env: Environment, more: Iterable<string> = []): Redactor {
  const secrets = secretPaths(configSchema, source.value)
    .filter((path) => !isHarmlessVariable(path, source))
    .map((path) => String(valueAt(source.value, path)));
  secrets.push(...credentialsIn(source.value));
  for (const { values } of foundSecrets(source, env)) secrets.push(...values);
  for (const name of variablesIn(source.text)) {
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value !== undefined && isCredentialVariable(name)) secrets.push(value);
  }
  return new Redactor([...secrets, ...more]);
}

/** `NODE_ENV: production` of a server is redacted in place, but the word `production` is not a secret elsewhere. */
function isHarmlessVariable(path: Path, source: YamlSource): boolean {
  return (
    path.at(-2) === 'env' &&
    !isCredentialVariable(String(path.at(-1))) &&
    !source.isFromEnvironment(path) &&
    !/\d/.test(String(valueAt(source.value, path)))
  );
}

/** Ranges of secrets that are written in the text. References to variables stay readable. */
function literalSecrets(source: YamlSource): Range[] {
  const found = foundSecrets(source, {}).filter(({ path }) => !source.isFromEnvironment(path));
  return [...secretRanges(configSchema, source), ...found.map(({ path }) => source.valueRange(path))];
}

/** The text of the configuration without secrets: marked values, and comments that name a credential, are `<redacted>`. */
export function redactedText(source: YamlSource, redactor: Redactor): string {
  const ranges = literalSecrets(source)
    .map(({ start, end }) => ({ start: start.offset, end: end.offset }))
    .sort((a, b) => a.start - b.start);
  let text = '';
  let at = 0;
  for (const { start, end } of ranges) {
    // An alias refers to the same range again.
    if (start < at) continue;
    text += `${source.text.slice(at, start)}${REDACTED}`;
    at = end;
  }
  return redactor.text(withoutComments(text + source.text.slice(at)));
}

/**
 * All ranges of the text that `redactedText` hides, as half-open offsets in ascending order without overlap. Undefined if
 * the text without them would still contain secrets.
 */
export function secretPlaces(
  source: YamlSource,
  redactor: Redactor,
): (readonly [number, number])[] | undefined {
  const { text } = source;
  const all = [
    ...literalSecrets(source).map(({ start, end }) => [start.offset, end.offset] as const),
    ...tellingComments(text).map(([start, end]) => [start + 1, end] as const),
    ...redactor.places(text),
  ].sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const places: [number, number][] = [];
  for (const [start, end] of all) {
    const last = places.at(-1);
    if (last !== undefined && start < last[1]) last[1] = Math.max(last[1], end);
    else if (end > start) places.push([start, end]);
  }
  let rest = '';
  let at = 0;
  for (const [start, end] of places) {
    rest += `${text.slice(at, start)}${REDACTED}`;
    at = end;
  }
  rest += text.slice(at);
  return withoutComments(redactor.text(rest)) === withoutComments(rest) ? places : undefined;
}

/** Replaces comments that name a credential, because they may contain old keys. */
function withoutComments(text: string): string {
  let out = '';
  let at = 0;
  for (const [start, end] of tellingComments(text)) {
    out += `${text.slice(at, start)}# ${REDACTED}`;
    at = end;
  }
  return out + text.slice(at);
}

/** Ranges of comments that name a credential, as half-open offsets. */
function tellingComments(text: string): (readonly [number, number])[] {
  const found: (readonly [number, number])[] = [];
  let at = 0;
  for (const lexeme of new Lexer().lex(text)) {
    // The lexer inserts control characters to mark documents and scalars.
    if (lexeme === '\u0002' || lexeme === '\u001f' || lexeme === '\u0018') continue;
    at += lexeme.length;
    if (!lexeme.startsWith('#') || lexeme.includes('yaml-language-server')) continue;
    if (/\bkeys?\b|token|secret|passw|bearer/i.test(lexeme) || isCredentialName(lexeme))
      found.push([at - lexeme.length, at]);
  }
  return found;
}
