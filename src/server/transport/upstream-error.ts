import { AppError } from '../../core/errors.ts';

/** The upstream sent nothing more of its body for too long. */
export const BODY_IDLE = 'UND_ERR_BODY_TIMEOUT';

/** The system's resolver takes too long. */
export const UNRESOLVED = 'LOOKUP_TIMEOUT';

/** Bytes of the body would go on although they are encoded. */
export const UNKNOWN_ENCODING = 'UNSUPPORTED_ENCODING';

/** The client left, or its request was given up; the message says which. */
export const CLIENT_GONE = 'CLIENT_GONE';

/** A failure of our own making. */
export const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });

/** The connection was made and found unfit, so that nothing was sent over it. */
const NOT_SECURED: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'the certificate has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is signed by itself',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate comes from an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate comes from an authority that is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate comes from an authority that is not trusted',
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
  EAI_AGAIN: 'the host name does not resolve just now',
  [UNRESOLVED]: 'the host name did not resolve in time',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  UND_ERR_SOCKET: 'the connection was closed before an answer',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  ETIMEDOUT: 'no connection in time',
  EADDRNOTAVAIL: 'no local port is free',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  UND_ERR_HEADERS_OVERFLOW: 'the headers of the answer are too large',
  [UNKNOWN_ENCODING]: 'the answer has a transfer-encoding other than chunked',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the answer is not as long as it says',
  ...NOT_SECURED,
  [BODY_IDLE]: 'nothing more came for too long',
};

/** No connection was made: nothing reached the upstream. */
const NOT_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EACCES',
  'ENOTSOCK',
  'ENOTFOUND',
  UNRESOLVED,
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENETDOWN',
  // No port is left to connect from.
  'EADDRNOTAVAIL',
  'EMFILE',
  'ENFILE',
]);
/** Failures of getaddrinfo: `EAI_AGAIN`, `EAI_FAIL` when the resolver refuses, and others. */
const isLookupFailure = (code: string): boolean => code.startsWith('EAI_');
const TIMED_OUT = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'ETIMEDOUT']);

/** Why a call failed, in words and without stack or address. */
export function explainUpstreamError(error: unknown): string {
  const { message } = error as { message?: string };
  const code = codeOf(error);
  const text = TEXTS[code];
  if (text !== undefined) return text;
  if (code === CLIENT_GONE && message !== undefined) return message;
  // Details of the parser.
  if (code.startsWith('HPE_') || code === 'ERR_ASSERTION') return 'the answer is not valid HTTP';
  return code || message || 'unknown failure';
}

/** Exceptions of the web platform, such as those of an `AbortSignal`, have a number there. */
function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

/** For logs: which upstream (`host:port`) failed, and why. */
export const locatedProblem = (address: string, error: unknown): string =>
  `${address}: ${explainUpstreamError(error)}`;

/**
 * 503 when nothing was reached, 504 when time ran out, 502 for everything that is not HTTP as it should be. The client
 * learns why; the log also at which address.
 */
export function upstreamError(error: Error, address: string): AppError {
  const code = codeOf(error);
  const message = `upstream call failed: ${explainUpstreamError(error)}`;
  // A client that leaves is nobody's failure.
  const located = code === CLIENT_GONE ? {} : { detail: locatedProblem(address, error) };
  if (TIMED_OUT.has(code)) return new AppError('upstream_timeout', { ...located, cause: error });
  if (NOT_CONNECTED.has(code) || isLookupFailure(code))
    return new AppError('upstream_unreachable', { message, ...located, cause: error });
  return new AppError('upstream_invalid', { message, ...located, cause: error });
}

/** Whether there is no connection to be had: nobody there, no such name, a certificate that is refused. */
export function isUnreachable(error: unknown): boolean {
  const code = codeOf(error);
  return neverConnected(code) || code === 'ETIMEDOUT' || /CERT|_SSL_|_TLS_|SIGNATURE/.test(code);
}

/** Nothing can have been sent. */
const neverConnected = (code: string): boolean =>
  NOT_CONNECTED.has(code) ||
  isLookupFailure(code) ||
  code === 'UND_ERR_CONNECT_TIMEOUT' ||
  Object.hasOwn(NOT_SECURED, code);

/** Whether a call to an upstream failed before anything of it could have been sent. */
export function neverReached(error: unknown): boolean {
  if (!(error instanceof AppError) || !CALL_FAILURES.has(error.code)) return false;
  return neverConnected(codeOf(error.cause));
}

const CALL_FAILURES = new Set<string>(['upstream_unreachable', 'upstream_timeout', 'upstream_invalid']);
