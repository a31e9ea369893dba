import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { AddressInfo, ListenOptions, Socket } from 'node:net';
import { promisify } from 'node:util';
import { LIMITS, type Limits } from '../../core/limits.ts';
import { HeaderList } from '../kernel/header-list.ts';
import { type Reply, RequestContext } from '../kernel/request-context.ts';
import { type Handshake, handshake } from '../kernel/upgrade.ts';
import { forwardedClient } from './forward.ts';
import { type ConnectionQueue, type QueuedResponse, RequestPipeline } from './pipelining.ts';
import { onWebSocketHandshake, webSocketOptions } from './web-socket-requests.ts';
import { coalesceSmallWrites } from './write-coalescing.ts';

/** Where a worker gets the connections of a port, which another process accepts. */
export interface Acceptor {
  /** The open port. */
  readonly port: number;
  /** Path of the Unix socket on which other workers forward requests. */
  readonly socketPath: string;
  /** Passes each new connection to `accept`, until the returned function is called. */
  connections(accept: (socket: Socket) => void): () => void;
}

export interface ListenerOptions {
  readonly listener: string;
  /** If absent, the listener opens the port itself. */
  readonly acceptor?: Acceptor | undefined;
  readonly port: number;
  /** IP address; all IPv4 and IPv6 addresses by default. */
  readonly address?: string | undefined;
  readonly limits: Limits;
  /** Answers one request. Must not throw. */
  handle(ctx: RequestContext): Promise<Reply>;
  /** Called with the reply, before it is sent or, if the client has left, discarded. */
  replied?(ctx: RequestContext, reply: Reply): void;
  /** Called once per request after its response has ended, also if it was aborted; `status` is 0 if none was sent. */
  ended(ctx: RequestContext, status: number, bodyBytes: number): void;
  /** A client connected. */
  connected?(): void;
  /** A client disconnected; `received` and `sent` are the bytes of the connection. */
  disconnected?(received: number, sent: number): void;
}

/** One open port. */
export interface Listener {
  readonly port: number;
  /** Number of open connections. */
  connections(): Promise<number>;
  /**
   * Stops accepting connections, waits up to `deadline` ms for open requests, then closes all connections. If some are
   * open at the deadline, `beforeAbort` is called; if it returns true, because error responses are being sent, they get
   * `LIMITS.drainGrace` (0.5 s) more.
   */
  close(deadline: number, beforeAbort?: () => boolean): Promise<void>;
}

/** Opens a port. Rejects with Node's error (`EADDRINUSE`, `EACCES`, …) if that fails. */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const { limits } = options;
  const server = createServer({
    ServerResponse: GatewayResponse,
    headersTimeout: limits.headersTimeout,
    requestTimeout: limits.requestTimeout,
    keepAliveTimeout: limits.keepAliveTimeout,
    connectionsCheckingInterval: limits.connectionsCheckingInterval,
    maxHeaderSize: limits.headerBytes,
    noDelay: true,
    ...webSocketOptions,
  });
  // Node would silently drop header lines over its limit, possibly Authorization; request validation rejects them instead.
  server.maxHeadersCount = 0;
  server.maxConnections = limits.connections;
  const finished = (response: GatewayResponse): void => {
    const { context: ctx } = response;
    // Only once: newer versions of Node.js also close the responses of requests that never started.
    if (ctx === undefined || response.isEnded) return;
    response.isEnded = true;
    const { takenOver } = response;
    if (takenOver !== undefined) {
      options.ended(ctx, 101, takenOver.bytesWritten);
      return;
    }
    if (!response.writableFinished) ctx.clientClosed();
    options.ended(ctx, response.headersSent ? response.statusCode : 0, response.bodyBytes);
  };
  const pipeline = new RequestPipeline<GatewayResponse>(finished);
  // One function for all responses: a closure per response would keep whole requests alive until a full collection.
  function onClosed(this: GatewayResponse): void {
    finished(this);
    const next = pipeline.finish(this);
    if (next !== undefined) void serve(next, options);
  }
  const onRequest = (request: IncomingMessage, response: GatewayResponse): void => {
    response.on('close', onClosed);
    const headers = new HeaderList(request.rawHeaders);
    const client = injected?.isForwarded(request) === true ? forwardedClient(headers, request) : undefined;
    response.context = new RequestContext(request, response, options.listener, headers, client);
    if (response.handshake !== undefined) handshake.set(response.context, response.handshake);
    if (pipeline.add(response)) void serve(response, options);
  };
  const injected = options.acceptor && new InjectedConnections(server, options.acceptor, limits.connections);
  server.on('connection', coalesceSmallWrites);
  server.on('request', onRequest);
  const webSockets = onWebSocketHandshake(server, (request, socket, head) =>
    pipeline.afterPending(socket, () => {
      const response = new GatewayResponse(request);
      response.handshake = { request, socket, head };
      response.assignSocket(socket);
      // Unless the connection is taken over, it ends with the response: Node.js no longer reads requests from it.
      response.once('finish', () => socket.destroySoon());
      onRequest(request, response);
    }),
  );
  // `100 Continue` is sent once the body is read (see `RequestBody`).
  server.on('checkContinue', onRequest);
  // Node would answer 417 itself, without an access-log line; request validation does that instead.
  server.on('checkExpectation', onRequest);
  server.on('connect', (_request, socket: Socket) =>
    endWith(socket, rawError('405 Method Not Allowed', 'method not allowed')),
  );
  server.on('clientError', (error, socket) =>
    pipeline.afterPending(socket as Socket, () => onClientError(error, socket as Socket)),
  );
  if (options.connected !== undefined) {
    function onSocketClosed(this: Socket): void {
      options.disconnected?.(this.bytesRead, this.bytesWritten);
    }
    server.on('connection', (socket) => {
      if (injected?.isPeer(socket) === true) return;
      options.connected?.();
      socket.once('close', onSocketClosed);
    });
  }
  if (injected !== undefined) return injected.listen(webSockets);
  await listen(server, { port: options.port, host: options.address });
  return {
    port: (server.address() as AddressInfo).port,
    connections: promisify(server.getConnections.bind(server)),
    close: (deadline, beforeAbort) => closeServer(server, webSockets, deadline, beforeAbort),
  };
}

/**
 * The connections of a worker's port: those of clients, which another process has accepted, and those of other workers,
 * which forward requests to the server's Unix socket.
 */
class InjectedConnections {
  readonly #server: Server;
  readonly #acceptor: Acceptor;
  readonly #max: number;
  readonly #open = new Set<Socket>();
  #onEmpty: (() => void) | undefined;

  constructor(server: Server, acceptor: Acceptor, max: number) {
    this.#server = server;
    this.#acceptor = acceptor;
    this.#max = max;
  }

  /** Whether another worker has forwarded the request. */
  isForwarded = ({ socket }: IncomingMessage): boolean => this.isPeer(socket);

  /** Whether the connection is that of another worker. */
  isPeer = (socket: Socket): boolean => !this.#open.has(socket);

  /** The server of a worker listens on a socket even if no one forwards to it: Node checks timeouts only then. */
  async listen(webSockets: ReadonlySet<Socket>): Promise<Listener> {
    await listen(this.#server, { path: this.#acceptor.socketPath });
    const stop = this.#acceptor.connections((socket) => this.#accept(socket));
    return {
      port: this.#acceptor.port,
      connections: () => Promise.resolve(this.#open.size),
      close: async (deadline, beforeAbort) => {
        stop();
        const closed = new Promise<void>((resolve) => {
          this.#onEmpty = resolve;
        });
        if (this.#open.size === 0) this.#onEmpty?.();
        await closeServer(this.#server, webSockets, deadline, beforeAbort, closed);
      },
    };
  }

  #accept(socket: Socket): void {
    if (this.#open.size >= this.#max) {
      socket.destroy();
      return;
    }
    // As Node's HTTP server does: a client may close its side once it has sent its request.
    socket.allowHalfOpen = true;
    this.#open.add(socket);
    socket.once('close', () => {
      this.#open.delete(socket);
      if (this.#open.size === 0) this.#onEmpty?.();
    });
    this.#server.emit('connection', socket);
  }
}

/** A response with its request context. */
class GatewayResponse extends ServerResponse implements QueuedResponse {
  queue: ConnectionQueue<this> | undefined;
  context: RequestContext | undefined;
  isEnded = false;
  handshake: Handshake | undefined;
  /** The client's connection, if a WebSocket has taken it over. */
  takenOver: Socket | undefined;
  /** Bytes of the body, without chunk framing. */
  bodyBytes = 0;

  override write(chunk: Written, ...rest: never[]): boolean {
    this.bodyBytes += lengthOf(chunk);
    return super.write(chunk, ...rest);
  }

  override end(chunk?: Written | (() => void), ...rest: never[]): this {
    if (chunk !== undefined && typeof chunk !== 'function') this.bodyBytes += lengthOf(chunk);
    return super.end(chunk, ...rest);
  }
}

type Written = string | Uint8Array;

const lengthOf = (chunk: Written): number =>
  typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.byteLength;

async function serve(response: GatewayResponse, options: ListenerOptions): Promise<void> {
  const { context: ctx } = response;
  if (ctx === undefined) return;
  const reply = await options.handle(ctx);
  options.replied?.(ctx, reply);
  // The client has disconnected, or the request was aborted and has been answered.
  if (response.destroyed || response.headersSent) return discardReply(reply);
  const { handshake: webSocket } = response;
  if (webSocket !== undefined && typeof reply.body === 'object' && 'takeOver' in reply.body) {
    response.takenOver = ctx.request.socket;
    reply.body.takeOver(webSocket, reply.headers);
    return;
  }
  writeReply(ctx.request, response, reply);
}

function listen(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** `others` resolves when connections that the server has not accepted itself are closed. */
function closeServer(
  server: Server,
  webSockets: ReadonlySet<Socket>,
  deadline: number,
  beforeAbort?: () => boolean,
  others?: Promise<void>,
): Promise<void> {
  return new Promise((resolve) => {
    const closeAll = (): void => {
      server.closeAllConnections();
      for (const socket of webSockets) socket.destroy();
    };
    let timer = setTimeout(() => {
      if (beforeAbort?.() === true) timer = setTimeout(closeAll, LIMITS.drainGrace);
      else closeAll();
    }, deadline);
    // Connections that become idle while closing would otherwise be kept alive.
    const idle = setInterval(() => server.closeIdleConnections(), 50);
    const done = (): void => {
      clearTimeout(timer);
      clearInterval(idle);
      resolve();
    };
    server.close(() => (others === undefined ? done() : void others.then(done)));
    server.closeIdleConnections();
  });
}

/** Answers what Node's parser rejects, which never becomes a request, and closes the connection. */
function onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, text] = CLIENT_ERRORS[error.code ?? ''] ?? ['400 Bad Request', 'bad request'];
  endWith(socket, rawError(status, text));
}

/**
 * Sends a final response and closes the connection. After `LIMITS.linger`, it is destroyed even if the client has not
 * closed its side. Not at once, because a client that is still sending would lose the response (RFC 9112 §9.6).
 */
function endWith(socket: Socket, text: string): void {
  const timer = setTimeout(() => socket.destroy(), LIMITS.linger);
  socket.once('close', () => clearTimeout(timer));
  socket.end(text);
  socket.resume();
}

const CLIENT_ERRORS: Readonly<Record<string, readonly [status: string, text: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'request header fields too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['413 Content Too Large', 'chunk extensions too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request was not received in time'],
};

function rawError(status: string, text: string): string {
  return `HTTP/1.1 ${status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`;
}

/** Writes the reply to a response that has not started. The reply must not be a `Takeover`. */
export function writeReply(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: Reply,
): void {
  // An unread body would be parsed as the next request, or keep the client sending.
  if (!request.readableEnded && !request.complete) {
    headers.set('connection', 'close');
    request.resume();
  } else if (asksForUpgrade(request)) headers.set('connection', 'close');
  // RFC 9110 §8.6 and §15: responses with these statuses have no content, and 204 has no Content-Length either.
  if (status === 204 || status === 304) {
    if (status === 204) headers.delete('content-length');
    response.writeHead(status, headers.raw);
    discardReply({ status, headers, body });
    response.end();
    return;
  }
  if (typeof body === 'string') headers.set('content-length', String(Buffer.byteLength(body)));
  else if (body instanceof Uint8Array) headers.set('content-length', String(body.byteLength));
  else if (typeof body === 'object' && 'attach' in body && body.size !== undefined)
    headers.set('content-length', String(body.size));
  else if (
    body === undefined &&
    status >= 200 &&
    status !== 204 &&
    status !== 304 &&
    !headers.has('content-length')
  ) {
    headers.set('content-length', '0');
  }
  response.writeHead(status, headers.raw);
  if (typeof body === 'object' && 'attach' in body) body.attach(response);
  else response.end(body);
}

/**
 * Whether the connection must be closed after this request: Node's parser stops after an upgrade request and drops the
 * rest of the same read, such as a pipelined request. Measured with Node.js 26: these requests are never answered.
 */
function asksForUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && /\bupgrade\b/i.test(headers.connection ?? '');
}

/** Discards a reply that is not sent. */
function discardReply({ body }: Reply): void {
  if (typeof body === 'object' && 'discard' in body) body.discard();
}
