import { AppError } from '../../../core/errors.ts';
import { errorCode, membersOf, stringIn } from '../../../core/foreign.ts';

/** The upstream was silent for too long within its response body. */
export const BODY_TIMEOUT = 'UND_ERR_BODY_TIMEOUT';

/** The response headers did not arrive in time; undici's code for its own limit. */
const HEADERS_TIMEOUT = 'UND_ERR_HEADERS_TIMEOUT';

/** The host name lookup took too long. */
export const LOOKUP_TIMEOUT = 'LOOKUP_TIMEOUT';

/** The response has a transfer-encoding that the gateway does not decode. */
export const UNSUPPORTED_ENCODING = 'UNSUPPORTED_ENCODING';

/** The client disconnected, or its request was aborted; the message says which. */
export const CLIENT_GONE = 'CLIENT_GONE';

/** An error with a code, raised by the gateway itself. */
export const upstreamFailure = (code: string, message: string): Error =>
  Object.assign(new Error(message), { code });

/** The response headers did not arrive within `UpstreamRequest.timeout`. */
export const headersTimeout = (): Error => upstreamFailure(HEADERS_TIMEOUT, 'response timeout');

/** Whether the response headers did not arrive in time. */
export const isHeadersTimeout = (error: unknown): boolean => errorCode(error) === HEADERS_TIMEOUT;

/** TLS errors: the connection was established but nothing was sent over it. */
const NOT_SECURED: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'the certificate has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate was issued by an untrusted authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate was issued by an untrusted authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate was issued by an untrusted authority',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS',
};

const TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOENT: 'the socket does not exist',
  EACCES: 'no permission for the socket',
  ENOTSOCK: 'the path is not a socket',
  ENOTFOUND: 'the host name does not resolve',
  EAI_AGAIN: 'the host name temporarily does not resolve',
  [LOOKUP_TIMEOUT]: 'the host name lookup timed out',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  UND_ERR_SOCKET: 'the connection was closed before a response',
  UND_ERR_CONNECT_TIMEOUT: 'connection timeout',
  ETIMEDOUT: 'connection timeout',
  EADDRNOTAVAIL: 'no local port is available',
  [HEADERS_TIMEOUT]: 'response timeout',
  UND_ERR_HEADERS_OVERFLOW: 'the response headers are too large',
  [UNSUPPORTED_ENCODING]: 'the response has a transfer-encoding other than chunked',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the response body does not match its Content-Length',
  ...NOT_SECURED,
  [BODY_TIMEOUT]: 'the response body was silent for too long',
};

/** What undici does not read, by the messages of its errors. */
const SOCKET_TEXTS: Readonly<Record<string, string | undefined>> = {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- no member, but the prototype
  __proto__: null as never,
  'bad response': 'it sent the interim response 100 (Continue), which was not asked for',
  'bad upgrade': 'it switched protocols, which was not asked for',
};

/** No connection was established. */
const NOT_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EACCES',
  'ENOTSOCK',
  'ENOTFOUND',
  LOOKUP_TIMEOUT,
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENETDOWN',
  // All local ports are in use.
  'EADDRNOTAVAIL',
  'EMFILE',
  'ENFILE',
]);
/** Errors of getaddrinfo: `EAI_AGAIN`, `EAI_FAIL` and others. */
const isLookupFailure = (code: string): boolean => code.startsWith('EAI_');
const TIMED_OUT = new Set(['UND_ERR_CONNECT_TIMEOUT', HEADERS_TIMEOUT, 'ETIMEDOUT']);

/** Describes why a call failed, without address and stack. */
export function explainUpstreamError(error: unknown): string {
  const message = stringIn(membersOf(error)['message']);
  const code = errorCode(error);
  const text =
    (code === 'UND_ERR_SOCKET' && message !== undefined ? SOCKET_TEXTS[message] : undefined) ?? TEXTS[code];
  if (text !== undefined) return text;
  if (code === CLIENT_GONE && message !== undefined) return message;
  // Parser errors.
  if (code.startsWith('HPE_') || code === 'ERR_ASSERTION') return 'the response is not valid HTTP';
  return code || message || 'unknown failure';
}

/** Address of the failed upstream (`host:port`) and cause, for logs. */
export const locatedProblem = (address: string, error: unknown): string =>
  `${address}: ${explainUpstreamError(error)}`;

/**
 * Converts the error of a call to an `AppError`: status 503 if no connection was established, 504 after a timeout,
 * otherwise 502. The message for the client has the cause; `detail`, for the log, also has the address.
 */
export function upstreamError(error: Error, address: string): AppError {
  const code = errorCode(error);
  const message = `upstream call failed: ${explainUpstreamError(error)}`;
  // If the client disconnected, the upstream has not failed.
  const located = code === CLIENT_GONE ? {} : { detail: locatedProblem(address, error) };
  if (TIMED_OUT.has(code)) return new AppError('upstream_timeout', { ...located, cause: error });
  if (NOT_CONNECTED.has(code) || isLookupFailure(code))
    return new AppError('upstream_unreachable', { message, ...located, cause: error });
  return new AppError('upstream_invalid', { message, ...located, cause: error });
}

/** Whether no connection can be established: nothing listens, the name does not resolve, or the certificate is rejected. */
export function isUnreachable(error: unknown): boolean {
  const code = errorCode(error);
  return neverConnected(code) || code === 'ETIMEDOUT' || /CERT|_SSL_|_TLS_|SIGNATURE/.test(code);
}

/** Whether a call has failed before anything was sent. */
export const isUnsent = (error: unknown): boolean =>
  error instanceof AppError && neverConnected(errorCode(error.cause));

/** Whether nothing was sent. */
const neverConnected = (code: string): boolean =>
  NOT_CONNECTED.has(code) ||
  isLookupFailure(code) ||
  code === 'UND_ERR_CONNECT_TIMEOUT' ||
  Object.hasOwn(NOT_SECURED, code);

/** Whether an upstream could not be reached, did not respond in time, or sent an invalid response. */
export function isCallFailure(error: unknown): boolean {
  return error instanceof AppError && CALL_FAILURES.has(error.code);
}

const CALL_FAILURES = new Set<string>(['upstream_unreachable', 'upstream_timeout', 'upstream_invalid']);
