import { isIP } from 'node:net';
import type { buildConnector, Dispatcher, Pool } from 'undici';
import { AppError, errorType } from '../../../core/errors.ts';
import { membersOf, textIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import { undici } from '../../../core/undici.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { CallMeter, CallSpan } from '../../kernel/observer.ts';
import { withTraceparent } from '../../kernel/request/header-changes.ts';
import { FieldNames, withoutFields } from '../../kernel/request/header-list.ts';
import { withScheme } from '../../kernel/url-scheme.ts';
import type { TlsOptions } from '../tls/backend-tls.ts';
import { ConnectionTrust } from '../tls/connection-trust.ts';
import { coalesceSmallWrites } from '../write-coalescing.ts';
import { hostLookup } from './host-lookup.ts';
import { ignoreContinue } from './interim-responses.ts';
import { explainUpstreamError, headersTimeout } from './upstream-error.ts';
import {
  type Destination,
  Reachability,
  Relay,
  type UpstreamRequest,
  type UpstreamResponse,
} from './upstream-request.ts';

/** Address of an upstream: an origin such as `https://host:port`, or a Unix socket. */
export interface UpstreamAddress {
  readonly origin: string;
  readonly socketPath?: string;
}

/** A connection pool for one upstream. Redirects are not followed. */
export interface Upstream {
  /** `host:port` or `unix:path`, for logs. */
  readonly address: string;
  /** Its Host header: name or IP address, with the port unless it is the default of the scheme. */
  readonly authority: string;
  /** Whether it has a host name, not just an IP address or a socket path. */
  readonly isNamed: boolean;
  readonly isTls: boolean;
  readonly isHttp2: boolean;
  /** Settings of TLS, if it has any. */
  readonly tls: TlsOptions | undefined;
  /** Sends a request whose response body the gateway reads itself. Rejects with undici's errors. */
  request(request: UpstreamRequest): Promise<Dispatcher.ResponseData>;
  /** Sends a request whose response body is forwarded to a client. Rejects with the `AppError` of `upstreamError`. */
  relay(request: UpstreamRequest): Promise<UpstreamResponse>;
  /** Number of open connections. */
  readonly connected: number;
  /** Destroys all connections. */
  close(): Promise<void>;
}

export interface UpstreamOptions {
  /** Maximum number of connections; further requests wait. No limit by default. */
  readonly connections?: number;
  readonly meter?: CallMeter;
  /** For `https:` origins. */
  readonly tls?: TlsOptions;
  /** Maximum time to open a connection, in ms; 10 s by default. */
  readonly connectTimeout?: number;
  /** Idle time before the first keepalive probe of TCP, in ms; 60 s by default. False: no probes. */
  readonly keepAlive?: number | false;
  /** HTTP/2 only; HTTP/1.1 by default. */
  readonly isHttp2?: boolean;
  /** Value of the `Authorization` header of every request, instead of the request's own. */
  readonly authorization?: string;
  /** Logs when the upstream becomes unreachable and when it is reachable again. */
  readonly log?: Log;
}

/** Creates the pool of an upstream, on first use. Connections are opened on demand and kept alive for 4 s. */
export function createUpstream(
  { origin, socketPath }: UpstreamAddress,
  options: UpstreamOptions = {},
): Upstream {
  const { connections, meter, tls, connectTimeout, keepAlive, isHttp2 = false, authorization, log } = options;
  const url = new URL(origin);
  const connect = {
    timeout: connectTimeout ?? LIMITS.connectTimeout,
    lookup: hostLookup.forConnect,
    ...(socketPath === undefined ? {} : { socketPath }),
    ...keepAliveOptions(keepAlive),
    allowH2: isHttp2,
    ...(isHttp2 && (url.protocol === 'https:' ? { preferH2: true } : { useH2c: true })),
    ...tls,
  };
  const isNamed = socketPath === undefined && isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0;
  const address =
    socketPath === undefined
      ? `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`
      : `unix:${socketPath}`;
  const reachability = log === undefined ? undefined : new Reachability(address, log);
  const trust = new ConnectionTrust(address, meter, log);
  let pool: Pool | undefined;
  /** Whose last requests have not ended. */
  const replaced = new Set<Pool>();
  let isClosed = false;
  const replacePool = (previous: Pool): void => {
    if (pool === previous) pool = undefined;
    replaced.add(previous);
    previous.close().then(
      () => replaced.delete(previous),
      () => undefined,
    );
  };
  const openPool = (): Pool => {
    const opened = new (undici().Pool)(origin, {
      connect: upstreamConnector(connect, meter),
      headersTimeout: LIMITS.upstreamHeadersTimeout,
      bodyTimeout: 0,
      maxHeaderSize: LIMITS.headerBytes,
      // Less than the 5 s of most servers: a request fails if the server closes the connection at the same moment.
      keepAliveTimeout: 4_000,
      ...(isNamed ? { clientTtl: LIMITS.connectionMaxAge } : {}),
      ...(connections === undefined ? {} : { connections }),
      pipelining: isHttp2 ? LIMITS.upstreamStreams : 1,
      allowH2: isHttp2,
      ...(isHttp2 && url.protocol === 'http:' ? { useH2c: true } : {}),
    });
    // Connection errors, not errors of requests: a request that is aborted while connecting says nothing about the upstream.
    if (reachability !== undefined)
      opened.on('connectionError', (_origin, _targets, error) => reachability.failed(error));
    trust.watch(opened, () => replacePool(opened));
    // Rejects requests with undici's error for a closed pool.
    if (isClosed) opened.destroy().catch(() => undefined);
    pool = opened;
    return opened;
  };
  const destination: Destination = {
    get pool() {
      return pool ?? openPool();
    },
    address,
    meter,
    reachability,
    trust,
  };
  return {
    address,
    authority: url.host,
    isNamed,
    isTls: url.protocol === 'https:',
    isHttp2,
    tls,
    get connected() {
      return pool?.stats.connected ?? 0;
    },
    request: (given) => {
      const request = authorized(given, authorization);
      return retryStale(request, () =>
        sendRequest(destination, request, startCallSpan(request, meter, address, url.origin)),
      );
    },
    relay: (given) => {
      const request = authorized(given, authorization);
      return retryStale(request, () =>
        relay(destination, request, startCallSpan(request, meter, address, url.origin)),
      );
    },
    close: async () => {
      isClosed = true;
      await Promise.all([pool, ...replaced].map((open) => open?.destroy()));
    },
  };
}

const keepAliveOptions = (keepAlive: UpstreamOptions['keepAlive']): object =>
  keepAlive === undefined
    ? {}
    : keepAlive === false
      ? { keepAlive: false }
      : { keepAliveInitialDelay: keepAlive };

const AUTHORIZATION = new FieldNames(['authorization']);

function authorized(request: UpstreamRequest, authorization: string | undefined): UpstreamRequest {
  if (authorization === undefined) return request;
  const headers = [...withoutFields(request.headers, AUTHORIZATION), 'authorization', authorization];
  return { ...request, headers };
}

/** Idempotent methods (RFC 9110 §9.2.2) that have no body. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Errors of a kept-alive connection that was closed before any byte of a response. */
const STALE = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/**
 * A server may close a kept-alive connection at the moment it is used. A request that may be sent twice is then retried
 * once. Any other request fails, because the server may have started to process it.
 */
function retryStale<T>(request: UpstreamRequest, send: () => Promise<T>): Promise<T> {
  const { method, body, isReplaySafe } = request;
  const mayRepeat =
    isReplaySafe === true || (IDEMPOTENT.has(method) && (body === undefined || body === null));
  return mayRepeat ? sendAgainIfStale(request, send) : send();
}

async function sendAgainIfStale<T>({ signal, client }: UpstreamRequest, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    const code = textIn(membersOf(error instanceof AppError ? error.cause : error)['code']);
    if (signal?.aborted || client?.isAbandoned || !STALE.has(code)) throw error;
    return send();
  }
}

function dispatchOptions(
  request: UpstreamRequest,
  span: CallSpan | undefined,
  trust: ConnectionTrust,
): Dispatcher.DispatchOptions {
  const { method, path, body, bodyIdle, asksForWebSocket = false } = request;
  const headers = span === undefined ? request.headers : withTraceparent(request.headers, span);
  return {
    method: method as Dispatcher.HttpMethod,
    path,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- undici only reads it.
    headers: headers as string[],
    body: body ?? null,
    bodyTimeout: bodyIdle ?? 0,
    ...(asksForWebSocket && { upgrade: 'websocket' }),
    ...(trust.isLost && { reset: true }),
  };
}

async function sendRequest(
  { pool, meter, reachability, trust }: Destination,
  request: UpstreamRequest,
  span: CallSpan | undefined,
): Promise<Dispatcher.ResponseData> {
  const started = performance.now();
  const limit = request.timeout === undefined ? undefined : new HeadersLimit(request.timeout, request.signal);
  try {
    const response = await pool.request({
      ...dispatchOptions(request, span, trust),
      signal: limit?.signal ?? request.signal ?? null,
    });
    meter?.answered(performance.now() - started);
    reachability?.answered();
    span?.end(response.statusCode);
    return response;
  } catch (error) {
    span?.fail(explainUpstreamError(error), errorType(error));
    throw error;
  } finally {
    limit?.end();
  }
}

/** Aborts a request whose response headers do not arrive in time. undici's own limit excludes the time to connect. */
class HeadersLimit {
  readonly signal: AbortSignal;
  readonly #timer: NodeJS.Timeout;

  /** `timeout` is in ms; `other` aborts the request and its response for another reason. */
  constructor(timeout: number, other: AbortSignal | undefined) {
    const abort = new AbortController();
    this.signal = other === undefined ? abort.signal : AbortSignal.any([other, abort.signal]);
    this.#timer = setTimeout(() => abort.abort(headersTimeout()), timeout);
  }

  /** The headers have arrived, or the request has failed. */
  end(): void {
    clearTimeout(this.#timer);
  }
}

function relay(
  destination: Destination,
  request: UpstreamRequest,
  span: CallSpan | undefined,
): Promise<UpstreamResponse> {
  return new Promise((resolve, reject) => {
    const call = new Relay(request, span, destination, resolve, reject);
    if (!call.isAborted) destination.pool.dispatch(dispatchOptions(request, span, destination.trust), call);
  });
}

/**
 * Parses the address of an HTTP service: `host:port`, a URL without a path, or `unix:/path/of/socket`. Reports a problem
 * and returns undefined for any other text.
 */
export function parseAddress(text: string, context: CompileContext): UpstreamAddress | undefined {
  if (text.startsWith('unix:')) {
    const socketPath = text.slice('unix:'.length).replace(/^\/\//, '');
    // sun_path has 108 bytes including the terminating NUL on Linux, 104 on macOS.
    if (socketPath.startsWith('/') && socketPath.length < 104)
      return { origin: 'http://localhost', socketPath };
    context.report({
      code: 'AGW0104',
      message: `\`${text}\` is not a socket path`,
      help: 'write `unix:/path/of/socket`, below 104 characters',
    });
    return undefined;
  }
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https') {
    context.report({ code: 'AGW0104', message: `invalid scheme: \`${scheme}\``, help: 'use http or https' });
    return undefined;
  }
  if (text.includes('@')) {
    // The text is not quoted, because it may contain a password.
    context.report({
      code: 'AGW0104',
      message: 'credentials in an address are not supported',
      help: 'remove `user:password@`',
    });
    return undefined;
  }
  const url = /^https?:\/\//.test(text) ? text : `http://${text}`;
  const isUrl = url === text;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const hasPort = isUrl || /:\d+$/.test(text);
  if (parsed === undefined || !hasPort || parsed.username !== '' || parsed.password !== '') {
    context.report({
      code: 'AGW0104',
      message: `\`${text}\` is not the address of a service`,
      help: correctedAddress(text),
    });
    return undefined;
  }
  if (parsed.pathname !== '/' || parsed.search !== '' || parsed.hash !== '') {
    context.report({
      code: 'AGW0104',
      message: 'the address must not have a path',
      label: `keep \`${parsed.origin}\``,
    });
    return undefined;
  }
  return { origin: parsed.origin };
}

/** What to write for a host without a port or scheme. */
function correctedAddress(text: string): string {
  const url = withScheme(text);
  if (url !== undefined) return `write \`${new URL(url).origin}\`, or \`host:port\` for plain HTTP`;
  if (/^[\w.-]{1,120}$/.test(text)) return `add its port: \`${text}:80\``;
  return 'write `host:port`, `https://host` or `unix:/path`';
}

/** undici's connector, which also records the connection time and coalesces small writes. */
function upstreamConnector(
  options: buildConnector.BuildOptions,
  meter: CallMeter | undefined,
): buildConnector.connector {
  const connect = undici().buildConnector(options);
  return (target, callback) => {
    const started = performance.now();
    connect(target, ((...[error, socket]: Parameters<buildConnector.Callback>) => {
      if (error !== null) return callback(error, null);
      meter?.connected(target.protocol === 'https:' ? 'tls' : 'plaintext', performance.now() - started);
      coalesceSmallWrites(socket);
      callback(null, socket);
      ignoreContinue(socket);
    }) as buildConnector.Callback);
  };
}

/** Starts the span of a call, if the request that it is made for is recorded. */
function startCallSpan(
  { client, span = client?.span, method, path }: UpstreamRequest,
  meter: CallMeter | undefined,
  address: string,
  origin: string,
): CallSpan | undefined {
  if (span === undefined || meter === undefined) return undefined;
  return span.http({ kind: meter.kind, subtype: meter.subtype, method, address, origin, path });
}

/**
 * Connects to an HTTP server like an `Upstream`, with TLS for `https:`, and disconnects. Resolves to the error, for
 * `explainUpstreamError`, or undefined. `timeout` is in ms and includes the host lookup.
 */
export function tryConnection(
  { protocol, host, hostname, port }: URL,
  timeout: number,
): Promise<Error | undefined> {
  const connect = undici().buildConnector({ timeout, lookup: hostLookup.forConnect });
  const target = {
    protocol,
    host,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: port || (protocol === 'https:' ? '443' : '80'),
  };
  return new Promise((resolve) => {
    connect(target, (error, socket) => {
      socket?.destroy();
      resolve(error ?? undefined);
    });
  });
}
