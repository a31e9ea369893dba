import { validationError } from './error-response.ts';

/** Handling of paths that servers interpret differently: `config.http.pathNormalization`. */
export const PATH_MODES = ['merge', 'reject', 'keep'] as const;
export type PathMode = (typeof PATH_MODES)[number];

const SETTING = 'config.http.pathNormalization';

// Paths without percent-encoding, empty segments and segments that start with a dot. Each segment can match in one way
// only, so a malicious path cannot cause backtracking.
const PLAIN_PATH = /^(?:\/[A-Za-z0-9_~!$&'()*+,;=:@-][A-Za-z0-9._~!$&'()*+,;=:@-]*)*\/?$/;

/**
 * Canonical form of a request path, which routing, expressions, external authorization, the access log and the backend
 * all use.
 *
 * RFC 3986 §6.2.2: percent-encoded unreserved characters are decoded, characters that are invalid in a path (§3.3) are
 * encoded, hex digits are upper case; `;` has no special meaning. Dot segments and control characters are rejected in
 * every mode; `mode` controls repeated slashes, encoded slashes, backslashes and (`reject` only) `;`. An encoded slash in
 * a model id is kept here: `checkEncodedSlash` decides once the route is known.
 *
 * @throws AppError `bad_request`
 */
export function canonicalPath(path: string, mode: PathMode): string {
  if (PLAIN_PATH.test(path) && !(mode === 'reject' && path.includes(';'))) return path;
  if (/%(?![0-9a-f]{2})/i.test(path))
    throw validationError(
      'bad_request',
      'invalid percent-encoding',
      'the path contains an invalid percent-encoding',
    );
  const encoded = path.replace(/%[0-9a-f]{2}|[^A-Za-z0-9._~!$&'()*+,;=:@/%-]/gi, (part) => {
    if (part.length === 1) return percentEncoded(part);
    const character = String.fromCharCode(Number.parseInt(part.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : part.toUpperCase();
  });
  if (/%[01][0-9A-F]|%7F/.test(encoded))
    throw validationError(
      'bad_request',
      'control character in path',
      `the path contains a control character, which no value of ${SETTING} allows`,
    );
  if (encoded.split(/\/|%2F|%5C/).some(isDotSegment))
    throw validationError('bad_request', 'dot segment in path', 'the path contains a dot segment');
  if (mode === 'keep') return encoded;
  const ambiguous = ambiguityIn(encoded, mode);
  if (ambiguous !== undefined) throw ambiguousPath(ambiguous);
  return encoded.replace(/\/{2,}/g, '/');
}

/**
 * Canonical path and query of a computed request target, such as `/a?b=c`. Undefined for a text that request validation
 * rejects.
 */
export function canonicalTarget(
  text: string,
  mode: PathMode,
  isLlm: boolean,
): { readonly path: string; readonly query: string } | undefined {
  if (!/^\/[\x21-\x7e]*$/.test(text) || text.includes('#')) return undefined;
  const at = text.indexOf('?');
  try {
    const path = canonicalPath(at === -1 ? text : text.slice(0, at), mode);
    checkEncodedSlash(path, mode, isLlm);
    return { path, query: at === -1 ? '' : text.slice(at) };
  } catch {
    return undefined;
  }
}

/**
 * Canonical form of a configured path, comparable with `canonicalPath`. Returns undefined if request validation rejects
 * every such path.
 */
export function canonicalPattern(path: string, mode: PathMode): string | undefined {
  try {
    return canonicalPath(Buffer.from(path, 'utf8').toString('latin1'), mode);
  } catch {
    return undefined;
  }
}

/** Description of what servers interpret differently in a path, or undefined. */
function ambiguityIn(path: string, mode: PathMode): string | undefined {
  if (path.includes('%5C')) return 'a backslash';
  if (path.includes('%2F') && !MODEL_ID.test(path)) return ENCODED_SLASH;
  if (mode !== 'reject') return undefined;
  if (path.includes('//')) return 'repeated slashes';
  return /;|%3B/.test(path) ? 'a semicolon' : undefined;
}

const ENCODED_SLASH = 'an encoded slash (%2F)';

/** Model ids can contain slashes (`org/name`); the OpenAI API has them in `/v1/models/{id}`. */
const MODEL_ID = /^(?:\/v1)?\/models\/[^/]+$/;

/** Rejects an encoded slash in a path, unless the route is for LLM clients or `mode` is `keep`. Throws `bad_request`. */
export function checkEncodedSlash(path: string, mode: PathMode, isLlm: boolean): void {
  if (mode !== 'keep' && !isLlm && path.includes('%2F')) throw ambiguousPath(ENCODED_SLASH);
}

const ambiguousPath = (what: string): Error =>
  validationError(
    'bad_request',
    `${what} in path`,
    `the path contains ${what}, which servers interpret differently (${SETTING})`,
  );

/** `.` and `..`, also with `;parameters`, which some servers strip before resolving dot segments. */
function isDotSegment(segment: string): boolean {
  const name = segment.split(/;|%3B/)[0];
  return name === '.' || name === '..';
}

/** `byte` is a character below U+0100: Node's parser accepts only visible ASCII, and configured paths are converted to bytes. */
const percentEncoded = (byte: string): string =>
  `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;

/** Removes the parameters of these names from a query (`?…` or empty). The others stay exactly as sent. */
export function withoutParameters(query: string, names: ReadonlySet<string>): string {
  const kept = query
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && ![...new URLSearchParams(pair).keys()].some((name) => names.has(name)));
  return kept.length === 0 ? '' : `?${kept.join('&')}`;
}

/** RFC 9110 §7.2 and RFC 3986 §3.2.2: a lower-case host name without empty labels, or an IP address in brackets; optional port. */
const AUTHORITY =
  /^(?:[a-z0-9_~!$&'()*+,;=%-]+(?:\.[a-z0-9_~!$&'()*+,;=%-]+)*\.?|\[[0-9a-z:.%_~-]+\])(?::\d{0,5})?$/;

/**
 * Canonical form of `host` or `host:port`: lower case, without the trailing dot of an absolute name and without an empty
 * port. Returns undefined if the text is neither.
 */
export function canonicalAuthority(text: string): string | undefined {
  const lower = text.toLowerCase();
  if (!AUTHORITY.test(lower)) return undefined;
  // Neither a trailing dot nor an empty port: the usual case.
  if (!/[.:](?::|$)/.test(lower)) return lower;
  return lower.replace(/:$/, '').replace(/\.(?=:|$)/, '');
}

/** Canonical form of a configured host name or `*.name`, comparable with `canonicalAuthority`. */
export const canonicalName = (hostname: string): string => hostname.toLowerCase().replace(/\.$/, '');
