import type { IncomingMessage } from 'node:http';
import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';

/** What routing, CEL, external authorization and the backend all see of the request target. */
export interface Admitted {
  /** Canonical path, without query: unreserved characters decoded, no dot segments. */
  readonly path: string;
  /** `?` and what follows, or the empty string. */
  readonly query: string;
  /** Authority of the request, lower case, with its port if it had one. */
  readonly host: string;
}

/**
 * Refuses what Node's parser lets through but two parties could read differently (measured list:
 * two Host fields or one that is no host, dropped header lines, `HTTP/2.0` in a request line, odd transfer-encodings, absolute targets
 * for another authority, dot segments, fragments). Throws `AppError`; a refusal closes the connection.
 */
export function admitRequest(request: IncomingMessage): Admitted {
  if (request.httpVersionMajor !== 1) throw refuse('version_not_supported', `HTTP/${request.httpVersion}`);
  const raw = request.rawHeaders;
  if (raw.length > LIMITS.headerCount * 2) {
    throw refuse(
      'headers_too_large',
      `${raw.length / 2} header lines`,
      `more than ${LIMITS.headerCount} header lines`,
    );
  }
  const host = singleHost(raw);
  checkTransferEncoding(request);
  if (request.method === 'TRACE' || request.method === 'CONNECT') throw refuse('method_not_allowed');
  const target = request.url ?? '/';
  if (target === '*') throw refuse('method_not_allowed', 'asterisk target');
  const origin = target.startsWith('/') ? target : originForm(target, host);
  const queryAt = origin.indexOf('?');
  const path = queryAt === -1 ? origin : origin.slice(0, queryAt);
  if (origin.includes('#'))
    throw refuse('bad_request', 'fragment in target', 'the request target has a fragment');
  return { path: canonicalPath(path), query: queryAt === -1 ? '' : origin.slice(queryAt), host };
}

function refuse(
  code: ConstructorParameters<typeof AppError>[0],
  detail?: string,
  message?: string,
): AppError {
  return new AppError(code, {
    headers: ['connection', 'close'],
    ...(detail === undefined ? {} : { detail }),
    ...(message === undefined ? {} : { message }),
  });
}

/** Fields whose first, last or joined value different servers would take (RFC 9110 §5.3, §7.2). */
const SINGLE = new Set([
  'host',
  'authorization',
  'content-type',
  'content-length',
  'mcp-session-id',
  'mcp-protocol-version',
]);

function singleHost(raw: readonly string[]): string {
  let host: string | undefined;
  let seen: Set<string> | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    // Length first: most fields are none of these, and lower-casing each costs more than the whole check.
    if (name.length !== 4 && name.length < 12) continue;
    const lower = name.toLowerCase();
    if (!SINGLE.has(lower)) continue;
    seen ??= new Set();
    if (seen.has(lower))
      throw refuse('bad_request', `two ${lower} fields`, `the request has two ${lower} headers`);
    seen.add(lower);
    if (lower === 'host') host = (raw[i + 1] as string).toLowerCase();
  }
  if (host !== undefined && !HOST.test(host))
    throw refuse('bad_request', 'Host is not host and port', 'the Host header is not a host and a port');
  return host ?? '';
}

/** RFC 9110 §7.2 and RFC 3986 §3.2.2: a name, or an address in brackets, and a port. In lower case. */
const HOST = /^(?:[a-z0-9._~!$&'()*+,;=%-]*|\[[0-9a-z:.%_~-]+\])(?::\d{0,5})?$/;

function checkTransferEncoding(request: IncomingMessage): void {
  const encoding = request.headers['transfer-encoding'];
  if (encoding === undefined) return;
  if (request.httpVersion === '1.0') throw refuse('bad_request', 'transfer-encoding in HTTP/1.0');
  if (encoding.trim().toLowerCase() !== 'chunked')
    throw refuse('transfer_encoding_not_supported', 'transfer-encoding other than chunked');
}

/** Absolute form (RFC 9112 §3.2.2) is taken when its authority is the Host field's, so that one value decides. */
function originForm(target: string, host: string): string {
  const match = /^https?:\/\/([^/?#]*)(.*)$/is.exec(target);
  if (!match) throw refuse('bad_request', 'odd request target');
  if ((match[1] as string).toLowerCase() !== host) {
    throw refuse(
      'bad_request',
      'authority of the target is not the Host',
      'the request target and the Host header name different hosts',
    );
  }
  const rest = match[2] as string;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

// One way to match each segment, so that a hostile path cannot make it backtrack.
const PLAIN_PATH = /^(?:\/(?:[A-Za-z0-9_~!$&'()*+,;=:@-][A-Za-z0-9._~!$&'()*+,;=:@-]*)?)*$/;

/**
 * RFC 3986 §6.2.2: percent-encoded unreserved characters are decoded and hex digits upper-cased; everything
 * else stays as sent. Dot segments, plain or hidden behind `%2e`, `%2f` or `\`, and control characters are
 * refused: servers disagree on them, so a rule on the path would not hold behind us.
 */
export function canonicalPath(path: string): string {
  if (PLAIN_PATH.test(path)) return path;
  if (/%(?![0-9a-f]{2})/i.test(path))
    throw refuse('bad_request', 'broken percent-encoding', 'the path has a broken percent-encoding');
  const canonical = path.replace(/%[0-9a-f]{2}/gi, (code) => {
    const character = String.fromCharCode(Number.parseInt(code.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : code.toUpperCase();
  });
  if (/%[01][0-9A-F]|%7F/.test(canonical))
    throw refuse('bad_request', 'control character in path', 'the path has an encoded control character');
  const segments = canonical.split(/\/|%2F|\\|%5C/);
  if (segments.some((segment) => isDotSegment(segment))) {
    throw refuse('bad_request', 'dot segment in path', 'the path has a dot segment');
  }
  return canonical;
}

/** `.` and `..`, also with the `;parameters` that some servers strip before they resolve. */
function isDotSegment(segment: string): boolean {
  const name = segment.split(/;|%3B/)[0];
  return name === '.' || name === '..';
}
