import { validationError } from './validation-error.ts';

/** What happens to spellings of a path that servers read in different ways: `config.http.pathNormalization`. */
export const PATH_MODES = ['merge', 'reject', 'keep'] as const;
export type PathMode = (typeof PATH_MODES)[number];

const SETTING = 'config.http.pathNormalization';

// No percent-encoding, no empty segment, none that begins with a dot. One way to match each segment, so that a hostile path
// cannot make it backtrack.
const PLAIN_PATH = /^(?:\/[A-Za-z0-9_~!$&'()*+,;=:@-][A-Za-z0-9._~!$&'()*+,;=:@-]*)*\/?$/;

/**
 * The one spelling of a path that matches, expressions, external authorization, the access log and the backend all see.
 *
 * RFC 3986 §6.2.2: percent-encoded unreserved characters are decoded, characters that a path cannot have (§3.3) are
 * encoded, hex digits are upper case; `;` is a character like any other. Dot segments and control characters are
 * refused in every mode; `mode` says what happens to repeated slashes, encoded slashes, backslashes and (`reject`
 * only) `;`. An encoded slash in the id of a model stays: `checkEncodedSlash` decides on it when the route is known.
 */
export function canonicalPath(path: string, mode: PathMode): string {
  if (PLAIN_PATH.test(path) && !(mode === 'reject' && path.includes(';'))) return path;
  if (/%(?![0-9a-f]{2})/i.test(path))
    throw validationError('bad_request', 'broken percent-encoding', 'the path has a broken percent-encoding');
  const spelled = path.replace(/%[0-9a-f]{2}|[^A-Za-z0-9._~!$&'()*+,;=:@/%-]/gi, (part) => {
    if (part.length === 1) return percentEncoded(part);
    const character = String.fromCharCode(Number.parseInt(part.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : part.toUpperCase();
  });
  if (/%[01][0-9A-F]|%7F/.test(spelled))
    throw validationError(
      'bad_request',
      'control character in path',
      `the path has a NUL or another control character, which no value of ${SETTING} allows`,
    );
  if (spelled.split(/\/|%2F|%5C/).some(isDotSegment))
    throw validationError('bad_request', 'dot segment in path', 'the path has a dot segment');
  if (mode === 'keep') return spelled;
  const ambiguous = ambiguity(spelled, mode);
  if (ambiguous !== undefined) throw ambiguousPath(ambiguous);
  return spelled.replace(/\/{2,}/g, '/');
}

/**
 * A path of the configuration in the spelling of `canonicalPath`, so that the two can be compared. Undefined when no request
 * has such a path.
 */
export function canonicalPattern(path: string, mode: PathMode): string | undefined {
  try {
    return canonicalPath(Buffer.from(path, 'utf8').toString('latin1'), mode);
  } catch {
    return undefined;
  }
}

/** What of a path has two readings, in words. */
function ambiguity(path: string, mode: PathMode): string | undefined {
  if (path.includes('%5C')) return 'a backslash';
  if (path.includes('%2F') && !MODEL_ID.test(path)) return ENCODED_SLASH;
  if (mode !== 'reject') return undefined;
  if (path.includes('//')) return 'repeated slashes';
  return /;|%3B/.test(path) ? 'a semicolon' : undefined;
}

const ENCODED_SLASH = 'an encoded slash (%2F)';

/** Ids of models have slashes (`org/name`): the OpenAI API reads them from `/v1/models/{id}`. */
const MODEL_ID = /^(?:\/v1)?\/models\/[^/]+$/;

/** Throws when a path has an encoded slash although its route does not serve models. */
export function checkEncodedSlash(path: string, mode: PathMode, isLlm: boolean): void {
  if (mode !== 'keep' && !isLlm && path.includes('%2F')) throw ambiguousPath(ENCODED_SLASH);
}

const ambiguousPath = (what: string): Error =>
  validationError(
    'bad_request',
    `${what} in path`,
    `the path has ${what}, which servers read in different ways (${SETTING})`,
  );

/** `.` and `..`, also with the `;parameters` that some servers strip before they resolve. */
function isDotSegment(segment: string): boolean {
  const name = segment.split(/;|%3B/)[0];
  return name === '.' || name === '..';
}

/** `byte`: a character below U+0100. Node's parser lets visible ASCII through only; a configured path is given as bytes. */
const percentEncoded = (byte: string): string =>
  `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
