import type { IncomingMessage } from 'node:http';
import { canonicalAuthority } from './authority.ts';
import type { HeaderList } from './header-list.ts';
import { canonicalPath, type PathMode } from './path.ts';
import { type UnderscoreMode, validateHeaders } from './validate-headers.ts';
import { validationError } from './validation-error.ts';

/** `config.http`. */
export interface RequestValidation {
  readonly pathNormalization: PathMode;
  readonly headersWithUnderscores: UnderscoreMode;
}

/** What routing, CEL, external authorization, the access log and the backend all see of the request target. */
export interface RequestTarget {
  /** Canonical path, without query (`canonicalPath`). */
  readonly path: string;
  /** `?` and what follows, or the empty string. */
  readonly query: string;
  /** Canonical authority of the request, with its port if it had one. */
  readonly host: string;
}

/**
 * Refuses what Node's parser lets through but two parties could read differently (measured list:
 * two Host fields or one that is no host, dropped header lines, `HTTP/2.0` in a request line, odd transfer-encodings, absolute targets
 * for another authority, dot segments, fragments), and leaves in `headers` only what the backend may see. Throws
 * `AppError`; a refusal closes the connection.
 */
export function validateRequest(
  request: IncomingMessage,
  headers: HeaderList,
  settings: RequestValidation,
): RequestTarget {
  if (request.httpVersionMajor !== 1)
    throw validationError('version_not_supported', `HTTP/${request.httpVersion}`);
  const host = hostOf(headers, validateHeaders(headers, settings.headersWithUnderscores));
  checkTransferEncoding(request);
  const { expect } = request.headers;
  if (expect !== undefined && expect.toLowerCase() !== '100-continue')
    throw validationError('expectation_failed');
  if (request.method === 'TRACE' || request.method === 'CONNECT') throw validationError('method_not_allowed');
  const target = request.url ?? '/';
  if (target === '*') throw validationError('method_not_allowed', 'asterisk target');
  const origin = target.startsWith('/') ? target : originForm(target, host);
  if (origin.includes('#'))
    throw validationError('bad_request', 'fragment in target', 'the request target has a fragment');
  const queryAt = origin.indexOf('?');
  const path = queryAt === -1 ? origin : origin.slice(0, queryAt);
  return {
    path: canonicalPath(path, settings.pathNormalization),
    query: queryAt === -1 ? '' : origin.slice(queryAt),
    host,
  };
}

/** The canonical authority, which then also stands in the Host field. */
function hostOf(headers: HeaderList, value: string | undefined): string {
  if (value === undefined) return '';
  const host = canonicalAuthority(value);
  if (host === undefined)
    throw validationError(
      'bad_request',
      'Host is not host and port',
      'the Host header is not a host and a port',
    );
  if (host !== value) headers.replace('host', host);
  return host;
}

function checkTransferEncoding(request: IncomingMessage): void {
  const encoding = request.headers['transfer-encoding'];
  if (encoding === undefined) return;
  if (request.httpVersion === '1.0') throw validationError('bad_request', 'transfer-encoding in HTTP/1.0');
  if (encoding.trim().toLowerCase() !== 'chunked')
    throw validationError('transfer_encoding_not_supported', 'transfer-encoding other than chunked');
}

/** Absolute form (RFC 9112 §3.2.2) is taken when its authority is the Host field's, so that one value decides. */
function originForm(target: string, host: string): string {
  const match = /^https?:\/\/([^/?#]*)(.*)$/is.exec(target);
  if (!match) throw validationError('bad_request', 'odd request target');
  if (canonicalAuthority(match[1] as string) !== host) {
    throw validationError(
      'bad_request',
      'authority of the target is not the Host',
      'the request target and the Host header name different hosts',
    );
  }
  const rest = match[2] as string;
  return rest.startsWith('/') ? rest : `/${rest}`;
}
