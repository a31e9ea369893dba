import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { promisify } from 'node:util';
import { LIMITS } from '../../core/limits.ts';
import { HeaderList } from '../kernel/header-list.ts';
import { type Reply, RequestContext } from '../kernel/request-context.ts';
import { type Line, RequestPipeline, type Waiting } from './pipelining.ts';
import { coalesceSmallWrites } from './write-coalescing.ts';
import { discardReply, writeReply } from './write-reply.ts';

export interface ListenerOptions {
  readonly gateway: string;
  readonly listener: string;
  readonly port: number;
  /** IP address; all of them, IPv4 and IPv6, when absent. */
  readonly address?: string | undefined;
  /** Answers one request. Must not throw. */
  handle(ctx: RequestContext): Promise<Reply>;
  /** Called once per request, when its response has ended, however it ended. */
  ended(ctx: RequestContext, status: number, bodyBytes: number): void;
  /** A client connected; and left, with the bytes that came from it and went to it. */
  connected?(): void;
  disconnected?(received: number, sent: number): void;
}

/** One open port. */
export interface Listener {
  readonly port: number;
  /** Connections that are open. */
  connections(): Promise<number>;
  /**
   * Stops accepting, lets open requests finish until the deadline (ms), then cuts what is left. `beforeCut` is called at
   * the deadline when something is; while it says that answers are on their way, they get `LIMITS.drainGrace`.
   */
  close(deadline: number, beforeCut?: () => boolean): Promise<void>;
}

/** Opens a port. Rejects with Node's error (`EADDRINUSE`, `EACCES`, …) when that is not possible. */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const server = createServer({
    ServerResponse: GatewayResponse,
    headersTimeout: LIMITS.headersTimeout,
    requestTimeout: LIMITS.requestTimeout,
    keepAliveTimeout: LIMITS.keepAliveTimeout,
    connectionsCheckingInterval: LIMITS.connectionsCheckingInterval,
    maxHeaderSize: LIMITS.headerBytes,
    noDelay: true,
  });
  // Node would drop lines over its count silently, Authorization among them; admission counts and refuses.
  server.maxHeadersCount = 0;
  server.maxConnections = LIMITS.connections;
  const finished = (response: GatewayResponse): void => {
    const { context: ctx } = response;
    // Once: newer versions of Node.js also close responses whose turn never came.
    if (ctx === undefined || response.isEnded) return;
    response.isEnded = true;
    if (!response.writableFinished) ctx.clientClosed();
    options.ended(ctx, response.headersSent ? response.statusCode : 0, response.bodyBytes);
  };
  const turns = new RequestPipeline<GatewayResponse>(finished);
  // One function for all responses: a closure each would keep whole requests alive until a full collection.
  function onClosed(this: GatewayResponse): void {
    finished(this);
    const next = turns.leave(this);
    if (next !== undefined) void serve(next, options);
  }
  const onRequest = (request: IncomingMessage, response: GatewayResponse): void => {
    response.once('close', onClosed);
    response.context = new RequestContext(
      request,
      response,
      options.gateway,
      options.listener,
      new HeaderList(request.rawHeaders),
    );
    if (turns.enter(response)) void serve(response, options);
  };
  server.on('connection', coalesceSmallWrites);
  server.on('request', onRequest);
  // The body decides whether the client is told to go on (see `RequestBody`).
  server.on('checkContinue', onRequest);
  // Node would answer 417 itself, without a line in the access log; admission does that.
  server.on('checkExpectation', onRequest);
  server.on('connect', (_request, socket: Socket) =>
    endWith(socket, rawError('405 Method Not Allowed', 'method not allowed')),
  );
  server.on('clientError', (error, socket) =>
    turns.whenNone(socket as Socket, () => onClientError(error, socket as Socket)),
  );
  if (options.connected !== undefined) {
    function onSocketClosed(this: Socket): void {
      options.disconnected?.(this.bytesRead, this.bytesWritten);
    }
    server.on('connection', (socket) => {
      options.connected?.();
      socket.once('close', onSocketClosed);
    });
  }
  await listen(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    connections: promisify(server.getConnections.bind(server)),
    close: (deadline, beforeCut) => closeServer(server, deadline, beforeCut),
  };
}

/** A response that knows what it answers. */
class GatewayResponse extends ServerResponse implements Waiting {
  line: Line<this> | undefined;
  context: RequestContext | undefined;
  isEnded = false;
  /** Of the body, before chunks are framed. */
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
  // The client has left, or was answered when its time was over.
  if (response.destroyed || response.headersSent) return discardReply(reply);
  writeReply(ctx.request, response, reply);
}

function listen(server: Server, { port, address }: ListenerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: address }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function closeServer(server: Server, deadline: number, beforeCut?: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const cutAll = (): void => server.closeAllConnections();
    let cut = setTimeout(() => {
      if (beforeCut?.() === true) cut = setTimeout(cutAll, LIMITS.drainGrace);
      else cutAll();
    }, deadline);
    // Connections that become idle meanwhile would be kept for the client's next request.
    const idle = setInterval(() => server.closeIdleConnections(), 50);
    server.close(() => {
      clearTimeout(cut);
      clearInterval(idle);
      resolve();
    });
    server.closeIdleConnections();
  });
}

/** What Node's parser refuses never becomes a request: it is answered here and the connection ends. */
function onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, text] = CLIENT_ERRORS[error.code ?? ''] ?? ['400 Bad Request', 'bad request'];
  endWith(socket, rawError(status, text));
}

/**
 * Says a last word and ends the connection. A client that does not end its side, too, would keep it open for ever; one
 * that is still sending would lose the answer if the connection were cut at once (RFC 9112 §9.6).
 */
function endWith(socket: Socket, text: string): void {
  const cut = setTimeout(() => socket.destroy(), LIMITS.linger);
  socket.once('close', () => clearTimeout(cut));
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
