import { isIP } from 'node:net';
import { type Dispatcher, Pool } from 'undici';
import { AppError, errorType } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { CallMeter } from '../kernel/call-meter.ts';
import { withTraceparent } from '../kernel/header-changes.ts';
import type { CallSpan } from '../kernel/observer.ts';
import { hostLookup } from './host-lookup.ts';
import { Reachability } from './reachability.ts';
import { Relay } from './relay.ts';
import { spanned, upstreamConnector } from './upstream-connector.ts';
import { explainUpstreamError } from './upstream-error.ts';
import type { Destination, UpstreamRequest, UpstreamResponse } from './upstream-request.ts';

/** Where an upstream is: `https://host:port`, or a unix socket. */
export interface UpstreamAddress {
  readonly origin: string;
  readonly socketPath?: string;
}

/** Connections to one upstream. Redirects are not followed; bodies have no time limit. */
export interface Upstream {
  /** `host:port` or `unix:path`, for logs. */
  readonly address: string;
  /** Its own Host: name or address, with the port unless it is that of the scheme. */
  readonly authority: string;
  /** It has a host name, not just an IP address or a socket. */
  readonly isNamed: boolean;
  readonly isTls: boolean;
  /** A response whose body is read here. */
  request(request: UpstreamRequest): Promise<Dispatcher.ResponseData>;
  /** A response whose body goes on to a client. Rejects with an `AppError` of the right status. */
  relay(request: UpstreamRequest): Promise<UpstreamResponse>;
  /** Open connections. */
  readonly connected: number;
  close(): Promise<void>;
}

export interface UpstreamOptions {
  readonly connections?: number;
  readonly meter?: CallMeter;
  /** Told when it can no longer be reached, and when it answers again. */
  readonly log?: Log;
}

/** Opens nothing yet; connections are made on use and kept, without a limit unless one is given. */
export function createUpstream(
  { origin, socketPath }: UpstreamAddress,
  { connections, meter, log }: UpstreamOptions = {},
): Upstream {
  const url = new URL(origin);
  const connect = {
    timeout: LIMITS.connectTimeout,
    lookup: hostLookup.forConnect,
    ...(socketPath === undefined ? {} : { socketPath }),
  };
  const isNamed = socketPath === undefined && isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0;
  const pool = new Pool(origin, {
    connect: upstreamConnector(connect, meter),
    headersTimeout: LIMITS.upstreamHeadersTimeout,
    bodyTimeout: 0,
    maxHeaderSize: LIMITS.headerBytes,
    // A kept connection that the server closes at the same moment would fail a request; most servers keep for 5 s.
    keepAliveTimeout: 4_000,
    ...(isNamed ? { clientTtl: LIMITS.connectionAge } : {}),
    ...(connections === undefined ? {} : { connections }),
    pipelining: 1,
  });
  const address =
    socketPath === undefined
      ? `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`
      : `unix:${socketPath}`;
  const reachability = log === undefined ? undefined : new Reachability(address, log);
  // Not the failures of requests: a call that is given up while there is no connection yet fails for its own reason.
  if (reachability !== undefined)
    pool.on('connectionError', (_origin, _targets, error) => reachability.failed(error));
  const to: Destination = { pool, address, meter, reachability };
  return {
    address,
    authority: url.host,
    isNamed,
    isTls: url.protocol === 'https:',
    get connected() {
      return pool.stats.connected;
    },
    request: (request) =>
      onceMore(request, () => ask(to, request, spanned(request, meter, address, url.origin))),
    relay: (request) =>
      onceMore(request, () => relay(to, request, spanned(request, meter, address, url.origin))),
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
  { method, body, signal, client, isReplaySafe }: UpstreamRequest,
  send: () => Promise<T>,
): Promise<T> {
  const mayRepeat =
    isReplaySafe === true || (IDEMPOTENT.has(method) && (body === undefined || body === null));
  if (!mayRepeat) return send();
  try {
    return await send();
  } catch (error) {
    const { code } = (error instanceof AppError ? error.cause : error) as { code?: string };
    if (signal?.aborted || client?.isAbandoned || !STALE.has(code ?? '')) throw error;
    return send();
  }
}

function dispatchOptions(request: UpstreamRequest, span: CallSpan | undefined): Dispatcher.DispatchOptions {
  const { method, path, body, bodyIdle } = request;
  const headers = span === undefined ? request.headers : withTraceparent(request.headers, span);
  return {
    method: method as Dispatcher.HttpMethod,
    path,
    headers: headers as string[],
    body: body ?? null,
    bodyTimeout: bodyIdle ?? 0,
  };
}

async function ask(
  { pool, meter, reachability }: Destination,
  request: UpstreamRequest,
  span: CallSpan | undefined,
): Promise<Dispatcher.ResponseData> {
  const started = performance.now();
  try {
    const response = await pool.request({
      ...dispatchOptions(request, span),
      signal: request.signal ?? null,
    });
    meter?.answered(performance.now() - started);
    reachability?.answered();
    span?.end(response.statusCode);
    return response;
  } catch (error) {
    span?.fail(explainUpstreamError(error), errorType(error));
    throw error;
  }
}

function relay(
  to: Destination,
  request: UpstreamRequest,
  span: CallSpan | undefined,
): Promise<UpstreamResponse> {
  return new Promise((resolve, reject) => {
    const call = new Relay(request, span, to, resolve, reject);
    if (!call.isOver) to.pool.dispatch(dispatchOptions(request, span), call);
  });
}
