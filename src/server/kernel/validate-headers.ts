import { LIMITS } from '../../core/limits.ts';
import { connectionOptions, type HeaderList, HOP_BY_HOP, keepFields } from './header-list.ts';
import { validationError } from './validation-error.ts';

/** What happens to request headers with an underscore in their name: `config.http.headersWithUnderscores`. */
export const UNDERSCORE_MODES = ['drop', 'reject', 'allow'] as const;
export type UnderscoreMode = (typeof UNDERSCORE_MODES)[number];

/** Fields whose first, last or joined value different servers would take (RFC 9110 §5.3, §7.2; RFC 6454 §7.3). */
const SINGLE = new Set([
  'host',
  'authorization',
  'content-type',
  'content-length',
  'origin',
  'mcp-session-id',
  'mcp-protocol-version',
]);

/**
 * Fields that decide what a request is and who may send it. `Connection` must not name fields that are meant for every
 * recipient (RFC 9110 §7.6.1); to remove one of these would let a client choose which server gets to see it.
 */
const NEVER_IN_CONNECTION = new Set([...SINGLE, 'cookie', 'content-encoding', 'transfer-encoding']);

// Lengths first: lower-casing the name of every field costs more than all that is done with it.
const LOOKED_AT: readonly boolean[] = Array.from({ length: 32 }, (_, length) =>
  [...SINGLE, ...HOP_BY_HOP].some((name) => name.length === length),
);

/**
 * Leaves in `headers` what policies and the backend may see: hop-by-hop fields, those that `Connection` names, and names with
 * an underscore are removed here and nowhere else. Returns the value of Host. Throws what is ambiguous as `AppError`.
 */
export function validateHeaders(headers: HeaderList, underscores: UnderscoreMode): string | undefined {
  const { raw } = headers;
  if (raw.length > LIMITS.headerCount * 2)
    throw validationError(
      'headers_too_large',
      `${raw.length / 2} header lines`,
      `more than ${LIMITS.headerCount} header lines`,
    );
  let host: string | undefined;
  let seen: string[] | undefined;
  let removed: number[] | undefined;
  let named: readonly string[] = NONE;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    if (underscores !== 'allow' && name.includes('_')) {
      if (underscores === 'reject') throw underscoreRefusal(name);
      removed = appended(removed, i);
      continue;
    }
    if (LOOKED_AT[name.length] !== true) continue;
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower)) {
      removed = appended(removed, i);
      if (lower === 'connection') named = named.concat(optionsOf(raw[i + 1] as string));
    } else if (SINGLE.has(lower)) {
      if (seen?.includes(lower))
        throw validationError('bad_request', `two ${lower} fields`, `the request has two ${lower} headers`);
      seen = appended(seen, lower);
      if (lower === 'host') host = raw[i + 1] as string;
    }
  }
  if (removed !== undefined) removeAt(raw, removed);
  if (named.length > 0) keepFields(raw, (name) => !named.includes(name));
  return host;
}

const NONE: readonly string[] = [];

function appended<T>(list: T[] | undefined, item: T): T[] {
  if (list === undefined) return [item];
  list.push(item);
  return list;
}

/** Removes the fields that begin at these places, in rising order. */
function removeAt(raw: string[], places: readonly number[]): void {
  let length = places[0] as number;
  let next = 0;
  for (let i = length; i < raw.length; i += 2) {
    if (i === places[next]) {
      next += 1;
      continue;
    }
    raw[length] = raw[i] as string;
    raw[length + 1] = raw[i + 1] as string;
    length += 2;
  }
  raw.length = length;
}

/** The fields that a `Connection` value names. */
function optionsOf(value: string): readonly string[] {
  if (value === 'keep-alive' || value === 'close') return NONE;
  const options = connectionOptions(value).filter((option) => option !== 'keep-alive' && option !== 'close');
  const refused = options.find((option) => NEVER_IN_CONNECTION.has(option));
  if (refused === undefined) return options;
  throw validationError(
    'bad_request',
    `Connection names ${refused}`,
    `the Connection header names ${refused}, which every recipient must see: take it out of Connection`,
  );
}

function underscoreRefusal(name: string): Error {
  return validationError(
    'bad_request',
    `header name with an underscore: ${name.slice(0, 100)}`,
    'a header name has an underscore (config.http.headersWithUnderscores)',
  );
}
