import { LIMITS } from '../../../core/limits.ts';
import { validationError } from './error-response.ts';
import type { FieldRules } from './field-rules.ts';
import {
  connectionOptions,
  FieldNames,
  type HeaderList,
  HOP_BY_HOP,
  OVERRIDES,
  removeFields,
} from './header-list.ts';
import type { ClientRequest } from './request-context.ts';
import { canonicalAuthority, canonicalPath, type PathMode } from './request-target.ts';

/** `config.http`. */
export interface RequestValidation {
  /** Header lines of an HTTP/1.1 request; `LIMITS.headerCount` by default. */
  readonly headerCount?: number | undefined;
  readonly pathNormalization: PathMode;
  readonly headersWithUnderscores: FieldMode;
  /** `drop` by default. */
  readonly overrideHeaders?: FieldMode | undefined;
  /** The headers, in lower case, that the configuration may read. */
  readonly headerReads?: { has(name: string): boolean } | undefined;
  readonly fieldRules: FieldRules;
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
  request: ClientRequest,
  headers: HeaderList,
  settings: RequestValidation,
): RequestTarget {
  if (request.httpVersionMajor !== 1 && request.isHttp2 !== true)
    throw validationError('version_not_supported', `HTTP/${request.httpVersion}`);
  const headerCount = (request.isHttp2 ? undefined : settings.headerCount) ?? LIMITS.headerCount;
  const host = hostOf(headers, validateHeaders(headers, settings, headerCount));
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
  // Most requests of a gateway name the same host.
  if (value === usualHost) return value;
  const host = canonicalAuthority(value);
  if (host === undefined)
    throw validationError(
      'bad_request',
      'Host is not host and port',
      'the Host header is not a host and a port',
    );
  if (host === value) usualHost = value;
  else headers.replace('host', host);
  return host;
}

/** The last value that was canonical as sent. */
let usualHost: string | undefined;

function checkTransferEncoding(request: ClientRequest): void {
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
  if (canonicalAuthority(match[1] ?? '') !== host) {
    throw validationError(
      'bad_request',
      'authority of the target is not the Host',
      'the request target and the Host header name different hosts',
    );
  }
  const rest = match[2] ?? '';
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Handling of request headers that servers interpret differently, such as those with an underscore in their name. */
export const FIELD_MODES = ['drop', 'reject', 'allow'] as const;
type FieldMode = (typeof FIELD_MODES)[number];

/**
 * Removes hop-by-hop fields, fields that `Connection` names, and, depending on the settings, those that replace the method or
 * have an underscore in their name from `headers`. No other code removes these. Returns the value of Host.
 *
 * @throws AppError `bad_request` for ambiguous headers, `headers_too_large` for more than `headerCount`
 */
function validateHeaders(
  headers: HeaderList,
  settings: RequestValidation,
  headerCount: number,
): string | undefined {
  const { headersWithUnderscores: underscores, overrideHeaders, fieldRules } = settings;
  const { raw } = headers;
  if (raw.length > headerCount * 2)
    throw validationError(
      'headers_too_large',
      `${raw.length / 2} header lines`,
      `more than ${headerCount} header lines`,
    );
  let host: string | undefined;
  let seen = 0;
  let removed: number[] | undefined;
  let named: readonly string[] = NONE;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? '';
    if (underscores !== 'allow' && name.includes('_')) {
      if (underscores === 'reject') throw underscoreError(name);
      removed = appended(removed, i);
      continue;
    }
    if (fieldRules.lengths[name.length] !== true) continue;
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower)) {
      removed = appended(removed, i);
      if (lower === 'connection') named = named.concat(optionsOf(raw[i + 1] ?? '', settings));
      continue;
    }
    const rule = fieldRules.single.get(lower);
    if (rule === undefined) {
      if (overrideHeaders === 'allow' || !isOverride(lower)) continue;
      if (overrideHeaders === 'reject') throw overrideError(lower);
      removed = appended(removed, i);
      continue;
    }
    const { bit, normal } = rule;
    if (normal !== undefined) raw[i + 1] = normal(raw[i + 1] ?? '');
    if ((seen & bit) !== 0) {
      if (normal === undefined || raw[i + 1] !== headers.get(lower))
        throw validationError('bad_request', `two ${lower} fields`, `the request has two ${lower} headers`);
      removed = appended(removed, i);
      continue;
    }
    seen |= bit;
    if (lower === 'host') host = raw[i + 1] ?? '';
  }
  if (removed !== undefined) removeAt(raw, removed);
  if (named.length > 0) removeFields(raw, new FieldNames(named));
  return host;
}

const NONE: readonly string[] = [];

function appended<T>(list: T[] | undefined, item: T): T[] {
  if (list === undefined) return [item];
  list.push(item);
  return list;
}

/** Removes the fields that start at these indexes, which are in ascending order. */
function removeAt(raw: string[], indexes: readonly number[]): void {
  let length = indexes[0] ?? raw.length;
  let next = 0;
  for (let i = length; i < raw.length; i += 2) {
    if (i === indexes[next]) {
      next += 1;
      continue;
    }
    raw[length] = raw[i] ?? '';
    raw[length + 1] = raw[i + 1] ?? '';
    length += 2;
  }
  raw.length = length;
}

/** The fields that a `Connection` value names. @throws AppError `bad_request` for one that decides about the request */
function optionsOf(value: string, { headerReads, fieldRules }: RequestValidation): readonly string[] {
  if (value === 'keep-alive' || value === 'close') return NONE;
  const options = connectionOptions(value).filter((option) => option !== 'keep-alive' && option !== 'close');
  const invalid = options.find(
    (option) => fieldRules.isEndToEnd(option) || (isOwnOption(option) && headerReads?.has(option) === true),
  );
  if (invalid === undefined) return options;
  throw validationError(
    'bad_request',
    `Connection names ${invalid}`,
    `the Connection header names ${invalid}, which is meant for all recipients: remove it from Connection`,
  );
}

/** Not one of the fields that every recipient removes anyway. */
const isOwnOption = (option: string): boolean =>
  option !== '' && option !== 'http2-settings' && !HOP_BY_HOP.has(option);

const OVERRIDE_NAMES = new Set(OVERRIDES.map(withoutUnderscores));

/** Whether a field, by its name in lower case, replaces the method or path, also where an underscore is read as a hyphen. */
const isOverride = (name: string): boolean => OVERRIDE_NAMES.has(withoutUnderscores(name));

function withoutUnderscores(name: string): string {
  return name.replaceAll('_', '-');
}

function overrideError(name: string): Error {
  return validationError(
    'bad_request',
    `header ${name}`,
    `the header ${name} asks for another method or path than the request has (config.http.overrideHeaders)`,
  );
}

function underscoreError(name: string): Error {
  return validationError(
    'bad_request',
    `header name with an underscore: ${name.slice(0, 100)}`,
    'a header name contains an underscore (config.http.headersWithUnderscores)',
  );
}
