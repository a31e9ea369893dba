import { credentialOf, isCredentialVariable } from '../../core/credentials.ts';
import type { Path } from '../../core/diagnostic.ts';
import { credentialArgument } from '../../core/redact.ts';
import { valueAt } from '../../core/schema/walk.ts';
import type { Environment } from '../../core/yaml/env.ts';
import type { YamlSource } from '../../core/yaml/source.ts';

/** A text that is a secret although neither the schema nor its key says so. */
export interface FoundSecret {
  readonly path: Path;
  /** What to search for in other texts, too. */
  readonly values: readonly string[];
}

/**
 * The texts of a configuration that are secrets by where they come from or by their form: from a variable whose name
 * suggests a secret; `Bearer x` and `Basic x` in headers; arguments of commands after options such as `--token`; and
 * what variables hand to a header or to the arguments of a command, unless it is an ordinary word, number or address.
 */
export function foundSecrets(source: YamlSource, env: Environment): FoundSecret[] {
  return textPaths(source.value).flatMap((path) => foundAt(path, source, env) ?? []);
}

function foundAt(path: Path, source: YamlSource, env: Environment): FoundSecret | undefined {
  const text = String(valueAt(source.value, path));
  const isHandedOn = isInHeaders(path) || isArgument(path);
  const credential = isInHeaders(path) ? credentialOf(text) : argumentAt(path, source);
  const variables = source
    .variablesAt(path)
    .map((name) => ({ isNamed: isCredentialVariable(name), value: ownValue(env, name) ?? '' }))
    .filter(({ isNamed, value }) => (isNamed ? !isSwitch(value) : isHandedOn && !isOrdinary(value)));
  if (credential === undefined && variables.length === 0) return undefined;
  // A word such as `production` is not a secret elsewhere.
  const telling = variables.filter(({ isNamed, value }) => isNamed || /\d/.test(value));
  return { path, values: [credential ?? [], telling.map(({ value }) => value)].flat() };
}

const ownValue = (env: Environment, name: string): string | undefined =>
  Object.hasOwn(env, name) ? env[name] : undefined;

const isSwitch = (value: string): boolean => /^(?:|true|false|yes|no|on|off)$/i.test(value);

/** Numbers, durations, dates, versions, switches, paths, hosts, and URLs without parameters. */
const isOrdinary = (value: string): boolean =>
  isSwitch(value) ||
  /^(?:[v-]?[\d.:-]{1,12}[a-z%]{0,2}|[.~]{0,2}\/[\w./-]*|(?:https?:\/\/)?[a-z\d.-]+(?:\.[a-z\d-]+|:\d{1,5})(?:\/[\w.-]{0,16})*)$/.test(
    value,
  );

export const isInHeaders = (path: Path): boolean => /^(?:set|add|headers)$/.test(String(path.at(-2)));

const isArgument = (path: Path): boolean => path.at(-2) === 'args';

function argumentAt(path: Path, source: YamlSource): string | undefined {
  const args = isArgument(path) ? valueAt(source.value, path.slice(0, -1)) : undefined;
  return Array.isArray(args) ? credentialArgument(args, Number(path.at(-1))) : undefined;
}

/** The paths of all texts in a value. */
export function textPaths(value: unknown, path: Path = []): Path[] {
  if (typeof value === 'string') return [path];
  if (value === null || typeof value !== 'object') return [];
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : Object.entries(value);
  return entries.flatMap(([key, child]) => textPaths(child, [...path, key]));
}
