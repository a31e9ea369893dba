import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Limits } from '../../../core/limits.ts';
import { type ClientConnection, clientOf } from '../../kernel/request/client-connection.ts';
import { discardReply, replyToError } from '../../kernel/request/error-response.ts';
import { HeaderList } from '../../kernel/request/header-list.ts';
import { type ClientResponse, type Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { type Handshake, handshake, type Takeover } from '../../kernel/request/upgrade.ts';
import type { ConnectionSettings } from '../connection-settings.ts';
import { onWebSocketHandshake, webSocketOptions } from '../web-socket/web-socket-requests.ts';
import { coalesceSmallWrites } from '../write-coalescing.ts';
import { type AcceptTunnel, onConnect } from './connect-tunnels.ts';
import { closeAtEnd } from './detached-socket.ts';
import { type ConnectionQueue, type QueuedResponse, RequestPipeline } from './pipelining.ts';
import { endWith, rawError } from './raw-error.ts';
import { setContentLength } from './reply.ts';

/** What happens to the requests of a listener, whatever their protocol. */
export interface RequestEvents {
  readonly listener: string;
  readonly limits: Limits;
  /** Read for each connection. */
  settings?(): ConnectionSettings;
  /** What takes the tunnel of a CONNECT request to a port. Without it, there are no tunnels: 405. */
  tunnel?(port: number): AcceptTunnel | undefined;
  /** Answers one request. Must not throw. */
  handle(ctx: RequestContext): Promise<Reply>;
  /** Called with the reply, before it is sent or, if the client has left, discarded. */
  replied?(ctx: RequestContext, reply: Reply): void;
  /** Called once per request after its response has ended, also if it was aborted; `status` is 0 if none was sent. */
  ended(ctx: RequestContext, status: number, bodyBytes: number): void;
}

/** The requests of HTTP/1.1 connections. */
export interface Http1 {
  /** Gets connections by listening, or by its event `connection`. */
  readonly server: Server;
  /** Destroys all connections. */
  destroy(): void;
}

/**
 * `forwardedClient` returns the connection of the client, and removes what says so from the headers, if the request was
 * forwarded by another process.
 */
export function createHttp1(
  options: RequestEvents,
  forwardedClient?: (headers: HeaderList, request: IncomingMessage) => ClientConnection | undefined,
): Http1 {
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
    response.linger = limits.linger;
    response.on('close', onClosed);
    const headers = new HeaderList(request.rawHeaders);
    const client = forwardedClient?.(headers, request) ?? clientOf(request.socket);
    const body = hasBody(request) ? request : undefined;
    response.context = new RequestContext(request, response, options.listener, headers, body, client);
    if (response.handshake !== undefined) handshake.set(response.context, response.handshake);
    if (pipeline.add(response)) void serve(response, options);
  };
  server.on('connection', (socket) => {
    coalesceSmallWrites(socket);
    const settings = options.settings?.();
    if (settings === undefined) return;
    server.keepAliveTimeout = settings.idle ?? limits.keepAliveTimeout;
    if (settings.maxDuration !== undefined) endsAt.set(socket, performance.now() + settings.maxDuration);
  });
  server.on('request', onRequest);
  const webSockets = onWebSocketHandshake(server, (request, socket, head) => {
    const stopWatching = closeAtEnd(socket);
    pipeline.afterPending(socket, () => {
      // The connection has ended with an earlier request, to whose response it may still belong.
      if (!socket.writable) return;
      const response = new GatewayResponse(request);
      response.handshake = { request, socket, head };
      response.assignSocket(socket);
      // Unless the connection is taken over, it ends with the response: Node.js no longer reads requests from it.
      response.once('finish', () => socket.destroySoon());
      response.beforeTakeover = stopWatching;
      onRequest(request, response);
    });
  });
  // `100 Continue` is sent once the body is read (see `RequestBody`).
  server.on('checkContinue', onRequest);
  // Node would answer 417 itself, without an access-log line; request validation does that instead.
  server.on('checkExpectation', onRequest);
  const tunnels = onConnect(server, options.tunnel, (socket, action) =>
    pipeline.afterPending(socket, action),
  );
  server.on('clientError', (error, duplex) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server has no other connections.
    const socket = duplex as Socket;
    pipeline.afterPending(socket, () => onClientError(error, socket));
  });
  return {
    server,
    destroy: () => {
      server.closeAllConnections();
      for (const socket of [...webSockets, ...tunnels]) socket.destroy();
    },
  };
}

/** RFC 9112 §6.3: a request has a body if it has `Content-Length` or `Transfer-Encoding`. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

/** A response with its request context. */
class GatewayResponse extends ServerResponse<IncomingMessage> implements QueuedResponse, ClientResponse {
  queue: ConnectionQueue<this> | undefined;
  context: RequestContext | undefined;
  isEnded = false;
  /** How long its connection may stay open after it to take the rest of the request, in ms. */
  linger = 0;
  handshake: Handshake | undefined;
  beforeTakeover: () => void = ignore;
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

  send(reply: Reply): void {
    writeReply(this.req, this, reply);
  }
}

type Written = string | Uint8Array;

const lengthOf = (chunk: Written): number =>
  typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.byteLength;

async function serve(response: GatewayResponse, options: RequestEvents): Promise<void> {
  const { context: ctx } = response;
  if (ctx === undefined) return;
  let reply: Reply | undefined;
  try {
    reply = await options.handle(ctx);
    options.replied?.(ctx, reply);
    deliver(response, reply);
  } catch (error) {
    failInternally(ctx, response, reply, error);
  }
}

/** Answers a request that has a response of its own, on which nothing can be pipelined or taken over. Never rejects. */
export async function answer(
  ctx: RequestContext,
  response: ClientResponse,
  events: RequestEvents,
): Promise<void> {
  let reply: Reply | undefined;
  try {
    reply = await events.handle(ctx);
    events.replied?.(ctx, reply);
    // The client has left, or the request was aborted and has been answered.
    if (response.destroyed || response.headersSent) discardReply(reply);
    else response.send(reply);
  } catch (error) {
    failInternally(ctx, response, reply, error);
  }
}

/**
 * Ends a request whose reply could not be made or sent because of an error of our own, such as a header value that Node.js
 * refuses: with status 500 if nothing has been sent, otherwise without a regular end.
 */
function failInternally(
  ctx: RequestContext,
  response: ClientResponse,
  reply: Reply | undefined,
  error: unknown,
): void {
  const failure = replyToError(error, ctx);
  if (reply !== undefined) discardReply(reply);
  if (response.headersSent || response.destroyed) response.destroy();
  else response.send(failure);
}

function deliver(response: GatewayResponse, reply: Reply): void {
  // The client has disconnected, or the request was aborted and has been answered.
  if (response.destroyed || response.headersSent) {
    discardReply(reply);
    return;
  }
  const { handshake: webSocket } = response;
  if (webSocket !== undefined && typeof reply.body === 'object' && 'takeOver' in reply.body) {
    response.takenOver = webSocket.socket;
    response.beforeTakeover();
    reply.body.takeOver(webSocket, reply.headers);
    return;
  }
  response.send(reply);
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

const CLIENT_ERRORS: Readonly<Record<string, readonly [status: string, text: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'request header fields too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['413 Content Too Large', 'chunk extensions too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request was not received in time'],
};

/** Writes the reply to a response that has not started. The reply must not be a `Takeover`. */
function writeReply(request: IncomingMessage, response: GatewayResponse, reply: Reply): void {
  const { status, headers, body } = reply;
  // An unread body would be parsed as the next request, or keep the client sending.
  if (!request.readableEnded && !request.complete) {
    headers.set('connection', 'close');
    request.resume();
    closeLate(response);
  } else if (asksForUpgrade(request) || isOver(request.socket)) headers.set('connection', 'close');
  const hasContent = setContentLength(reply);
  response.writeHead(status, headers.raw);
  if (!hasContent) {
    discardReply(reply);
    response.end();
  } else if (typeof body === 'object' && 'attach' in body) body.attach(response);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a `Takeover` was handled before.
  else response.end(body as Exclude<typeof body, Takeover>);
}

/**
 * Ends the connection in both directions after the response, and not at once: a client that is still sending would lose the response
 * with a reset (RFC 9112 §9.6). What it sends is not parsed any more; after `LIMITS.linger`, the connection is cut.
 */
function closeLate({ socket, linger }: GatewayResponse): void {
  // The client has left.
  if (socket === null) return;
  socket.destroySoon = () => {
    const timer = setTimeout(() => socket.destroy(), linger);
    socket.once('close', () => clearTimeout(timer));
    // The listener takes the connection from the parser, whose request may have stopped the reading.
    socket.on('data', ignore).removeAllListeners('data').on('data', ignore);
    socket.pause();
    socket.resume();
    socket.end();
  };
}

const ignore = (): void => undefined;

/** Connections with a maximum age, and when they have reached it, from `performance.now()`. */
const endsAt = new WeakMap<Socket, number>();

function isOver(socket: Socket): boolean {
  const end = endsAt.get(socket);
  return end !== undefined && performance.now() > end;
}

/**
 * Whether the connection must be closed after this request: Node's parser stops after an upgrade request and drops the
 * rest of the same read, such as a pipelined request. Measured with Node.js 26: these requests are never answered.
 */
function asksForUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && /\bupgrade\b/i.test(headers.connection ?? '');
}
