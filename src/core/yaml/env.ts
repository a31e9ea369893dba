import { parse } from 'node:path';

/** A snapshot of environment variables, taken by the caller. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Name of the file with variables beside a configuration, such as `gateway.env` beside `gateway.yaml`; undefined for a
 * configuration from standard input.
 */
export const envFileName = (file: string): string | undefined =>
  file === '-' ? undefined : `${parse(file).name}.env`;

/** A reference without a value; `start` and `end` are offsets in the unexpanded text. */
export interface UndefinedReference {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

export interface Expansion {
  readonly text: string;
  readonly undefinedReferences: readonly UndefinedReference[];
  /** The variables exceed the limit together; some are missing from `text`. */
  readonly isTooLong: boolean;
}

type ReferenceMatch = [
  whole: string,
  dollar: string | undefined,
  bare: string | undefined,
  braced: string | undefined,
  fallback: string | undefined,
  start: number,
];

const REFERENCE = /\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::-([^}]*))?\})/g;

/**
 * Replaces `$NAME`, `${NAME}` and `${NAME:-fallback}`, and `$$` by one dollar sign; any other `$` is kept. As in a
 * POSIX shell (XCU 2.6.2), the `:-` fallback also replaces an empty variable. Values of variables are not expanded
 * again, and a reference without a value is kept as written and reported. `limit` is in UTF-16 units.
 */
export function expandEnvironment(text: string, env: Environment, limit: number): Expansion {
  const undefinedReferences: UndefinedReference[] = [];
  let added = 0;
  const take = (value: string): string => {
    added += value.length;
    return added > limit ? '' : value;
  };
  const replace = (...[whole, dollar, bare, braced, fallback, start]: ReferenceMatch): string => {
    if (dollar !== undefined) return '$';
    const name = bare ?? braced ?? '';
    // Own properties only: a plain object would otherwise resolve `$constructor`.
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (fallback !== undefined) return value === undefined || value === '' ? fallback : take(value);
    if (value !== undefined) return take(value);
    undefinedReferences.push({ name, start, end: start + whole.length });
    return whole;
  };
  const expanded = text.replace(REFERENCE, replace);
  return { text: expanded, undefinedReferences, isTooLong: added > limit };
}

/** The variables that `text` refers to. */
export const variablesIn = (text: string): string[] =>
  [...text.matchAll(REFERENCE)].flatMap(([, , bare, braced]) => bare ?? braced ?? []);

/** The variable that `text` refers to, if it is a single reference without a fallback, and therefore reveals no secret. */
export const variableIn = (text: string): string | undefined =>
  /^\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})$/
    .exec(text)
    ?.slice(1)
    .find((name) => name !== undefined);
