import { type Dispatcher, Pool } from 'undici';
import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { HeaderList } from './header-list.ts';
import { UpstreamBody } from './upstream-body.ts';

/** Where an upstream is: `https://host:port`, or a unix socket. */
export interface UpstreamAddress {
  readonly origin: string;
  readonly socketPath?: string;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query; goes after the fixed origin, so it cannot change the host. */
  readonly path: string;
  readonly headers: readonly string[];
  readonly body?: Dispatcher.DispatchOptions['body'];
  readonly signal?: AbortSignal;
  /** Time until the response headers, the connection included, in ms. Of `relay` only. */
  readonly timeout?: number;
  /** The service only looks something up, whatever the method says: the request may be sent twice. */
  readonly isReplaySafe?: boolean;
}

export interface UpstreamResponse {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: UpstreamBody;
}

/** Connections to one upstream. Redirects are not followed; bodies have no time limit. */
export interface Upstream {
  /** `host:port` or `unix:path`, for logs. */
  readonly address: string;
  /** What goes into Host when nothing else is wanted. */
  readonly authority: string;
  /** A response whose body is read here. */
  request(request: UpstreamRequest): Promise<Dispatcher.ResponseData>;
  /** A response whose body goes on to a client. Rejects with an `AppError` of the right status. */
  relay(request: UpstreamRequest): Promise<UpstreamResponse>;
  close(): Promise<void>;
}

/** Opens nothing yet; connections are made on use and kept. */
export function createUpstream({ origin, socketPath }: UpstreamAddress): Upstream {
  const url = new URL(origin);
  const pool = new Pool(origin, {
    connect: { timeout: LIMITS.connectTimeout, ...(socketPath === undefined ? {} : { socketPath }) },
    headersTimeout: LIMITS.upstreamHeadersTimeout,
    bodyTimeout: 0,
    maxHeaderSize: LIMITS.headerBytes,
    // A kept connection that the server closes at the same moment would fail a request; most servers keep for 5 s.
    keepAliveTimeout: 4_000,
    pipelining: 1,
  });
  return {
    address:
      socketPath === undefined
        ? `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`
        : `unix:${socketPath}`,
    authority: url.host,
    request: (request) =>
      onceMore(request, () => pool.request({ ...dispatchOptions(request), signal: request.signal ?? null })),
    relay: (request) => onceMore(request, () => relay(pool, request)),
    close: () => pool.destroy(),
  };
}

/** RFC 9110 §9.2.2, of the methods that carry no body. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS']);

/** A kept connection that ended before any byte of an answer. */
const STALE = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/**
 * A server may close a kept connection at the moment we use it. A request that may be sent twice is then sent once
 * more; any other fails, because the server may have begun to act on it.
 */
async function onceMore<T>(
  { method, body, signal, isReplaySafe }: UpstreamRequest,
  send: () => Promise<T>,
): Promise<T> {
  const mayRepeat =
    isReplaySafe === true || (IDEMPOTENT.has(method) && (body === undefined || body === null));
  if (!mayRepeat) return send();
  try {
    return await send();
  } catch (error) {
    const { code } = (error instanceof AppError ? error.cause : error) as { code?: string };
    if (signal?.aborted || !STALE.has(code ?? '')) throw error;
    return send();
  }
}

function dispatchOptions({ method, path, headers, body }: UpstreamRequest): Dispatcher.DispatchOptions {
  return {
    method: method as Dispatcher.HttpMethod,
    path,
    headers: headers as string[],
    body: body ?? null,
  };
}

function relay(pool: Pool, request: UpstreamRequest): Promise<UpstreamResponse> {
  return new Promise((resolve, reject) => {
    let body: UpstreamBody | undefined;
    let informational = 0;
    let controller: Dispatcher.DispatchController | undefined;
    let ended: Error | undefined;
    const { signal, timeout } = request;
    // Also before there is a connection, when the dispatcher cannot be told yet.
    const giveUp = (error: Error): void => {
      ended = error;
      controller?.abort(error);
      settle();
      if (body === undefined) reject(upstreamError(error));
    };
    const onAbort = (): void => giveUp(failure('CLIENT_GONE', 'the client left'));
    const timer =
      timeout === undefined
        ? undefined
        : setTimeout(() => giveUp(failure('UND_ERR_HEADERS_TIMEOUT', 'no answer in time')), timeout);
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    if (signal?.aborted) return onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    pool.dispatch(dispatchOptions(request), {
      onRequestStart(started) {
        controller = started;
        if (ended !== undefined) started.abort(ended);
      },
      onRequestUpgrade(_controller, _status, _headers, socket) {
        // We asked for none: an unsolicited 101 must not become a tunnel.
        socket.destroy();
        settle();
        reject(new AppError('upstream_invalid', { detail: 'unsolicited protocol switch' }));
      },
      onResponseStart(started, status) {
        if (status < 200) {
          informational += 1;
          if (informational > LIMITS.informationalResponses)
            started.abort(new Error('too many informational responses'));
          return;
        }
        clearTimeout(timer);
        const encoding = textHeaders(started.rawHeaders).findLast(
          (_value, index, all) => index % 2 === 1 && all[index - 1]?.toLowerCase() === 'transfer-encoding',
        );
        if (encoding !== undefined && encoding.trim().toLowerCase() !== 'chunked') {
          // Its bytes would go on as the body although they are encoded.
          giveUp(failure('UNSUPPORTED_ENCODING', 'transfer-encoding other than chunked'));
          return;
        }
        body = new UpstreamBody(started);
        resolve({ status, headers: new HeaderList(textHeaders(started.rawHeaders)), body });
      },
      onResponseData(_controller, chunk) {
        body?.push(chunk);
      },
      onResponseEnd() {
        settle();
        body?.end();
      },
      onResponseError(_controller, error) {
        settle();
        if (body === undefined) reject(upstreamError(error));
        else body.fail(explainUpstreamError(error));
      },
    });
  });
}

const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });

function textHeaders(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  return Array.isArray(raw)
    ? raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')))
    : [];
}

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
function upstreamError(error: Error & { code?: string }): AppError {
  const code = error.code ?? '';
  const detail = explainUpstreamError(error);
  if (TIMED_OUT.has(code)) return new AppError('upstream_timeout', { detail, cause: error });
  if (NOT_CONNECTED.has(code))
    return new AppError('upstream_unreachable', { message: `upstream call failed: ${detail}`, cause: error });
  return new AppError('upstream_invalid', { message: `upstream call failed: ${detail}`, cause: error });
}
