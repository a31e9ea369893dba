import { AppError } from '../../core/errors.ts';

/** The upstream sent nothing more of its body for too long. */
export const BODY_IDLE = 'UND_ERR_BODY_TIMEOUT';

/** A failure of our own making. */
export const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });

const TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOENT: 'the socket does not exist',
  EACCES: 'no permission for the socket',
  ENOTSOCK: 'the path is not a socket',
  ENOTFOUND: 'the host name does not resolve',
  EAI_AGAIN: 'the host name does not resolve just now',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  UND_ERR_SOCKET: 'the connection was closed before an answer',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  [BODY_IDLE]: 'nothing more came for too long',
  CLIENT_GONE: 'the client left',
};

/** No connection was made: nothing reached the upstream. */
const NOT_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EACCES',
  'ENOTSOCK',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EMFILE',
]);
const TIMED_OUT = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT']);

/** Why a call failed, in words and without stack or address. */
export function explainUpstreamError(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  return TEXTS[code ?? ''] ?? code ?? message ?? 'unknown failure';
}

/** 503 when nothing was reached, 504 when time ran out, 502 for everything that is not HTTP as it should be. */
export function upstreamError(error: Error & { code?: string }): AppError {
  const code = error.code ?? '';
  const detail = explainUpstreamError(error);
  if (TIMED_OUT.has(code)) return new AppError('upstream_timeout', { detail, cause: error });
  if (NOT_CONNECTED.has(code))
    return new AppError('upstream_unreachable', { message: `upstream call failed: ${detail}`, cause: error });
  return new AppError('upstream_invalid', { message: `upstream call failed: ${detail}`, cause: error });
}
