import type { IncomingMessage } from 'node:http';
import { canonicalAuthority } from './authority.ts';
import { validationError } from './error-response.ts';
import type { HeaderList } from './header-list.ts';
import { canonicalPath, type PathMode } from './path.ts';
import { type UnderscoreMode, validateHeaders } from './validate-headers.ts';

/** `config.http`. */
export interface RequestValidation {
  readonly pathNormalization: PathMode;
  readonly headersWithUnderscores: UnderscoreMode;
}

/** The request target in the form that routing, CEL, external authorization, the access log and the backend all use. */
export interface RequestTarget {
  /** Canonical path, without query (`canonicalPath`). */
  readonly path: string;
  /** The query with its `?`, or the empty string. */
  readonly query: string;
  /** Canonical authority, including the port if there was one. Empty for an HTTP/1.0 request without Host. */
  readonly host: string;
}

/**
 * Rejects requests that Node's parser accepts but that different servers interpret differently: repeated or invalid Host
 * fields, too many header lines, `HTTP/2.0` in a request line, unknown transfer encodings, absolute targets for another
 * authority, dot segments, fragments. Removes from `headers` what the backend must not get.
 *
 * @throws AppError with `Connection: close`
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
    throw validationError('bad_request', 'fragment in target', 'the request target contains a fragment');
  const queryAt = origin.indexOf('?');
  const path = queryAt === -1 ? origin : origin.slice(0, queryAt);
  return {
    path: canonicalPath(path, settings.pathNormalization),
    query: queryAt === -1 ? '' : origin.slice(queryAt),
    host,
  };
}

/** Returns the canonical authority and sets the Host field to it. */
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

/** Accepts absolute form (RFC 9112 §3.2.2) only if its authority is that of the Host field, so that there is one value. */
function originForm(target: string, host: string): string {
  const match = /^https?:\/\/([^/?#]*)(.*)$/is.exec(target);
  if (!match) throw validationError('bad_request', 'invalid request target');
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
