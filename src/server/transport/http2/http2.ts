import type { IncomingHttpHeaders } from 'node:http';
import {
  constants,
  type IncomingHttpHeaders as Http2Headers,
  type OutgoingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2';
import type { Socket } from 'node:net';
import { membersOf } from '../../../core/foreign.ts';
import { LIMITS, type Limits } from '../../../core/limits.ts';
import { clientOf } from '../../kernel/request/client-connection.ts';
import { discardReply } from '../../kernel/request/error-response.ts';
import { HeaderList } from '../../kernel/request/header-list.ts';
import {
  type ClientRequest,
  type ClientResponse,
  type Reply,
  RequestContext,
} from '../../kernel/request/request-context.ts';
import type { Takeover } from '../../kernel/request/upgrade.ts';
import type { ConnectionSettings } from '../connection-settings.ts';
import { answer, type RequestEvents } from '../http1/http1.ts';
import { setContentLength } from '../http1/reply.ts';
import { Http2Body } from './http2-body.ts';

/** The HTTP/2 connections of a listener (RFC 9113): each request is a stream of its connection's session. */
export class Http2Connections {
  readonly #events: RequestEvents;
  /** With the number of their open requests. */
  readonly #sessions = new Map<ServerHttp2Session, number>();

  constructor(events: RequestEvents) {
    this.#events = events;
  }

  /** Takes a connection on which the client has selected HTTP/2. */
  accept(socket: Socket): void {
    const settings = this.#events.settings?.();
    const session = performServerHandshake(socket, sessionOptions(this.#events.limits, settings));
    this.#sessions.set(session, 0);
    const timers: NodeJS.Timeout[] = [];
    session.on('close', () => {
      this.#sessions.delete(session);
      for (const timer of timers) clearTimeout(timer);
    });
    if (settings !== undefined) timers.push(...this.#watch(session, settings));
    // Of the connection, or of a client that breaks the protocol: nghttp2 has sent GOAWAY, and the streams are closed.
    session.on('error', () => session.destroy());
    // After the GOAWAY of a client, Node.js tells neither that it breaks the protocol nor that it leaves: pings fail then.
    session.once('goaway', () => {
      timers.push(this.#pingEvery(this.#events.limits.http2PingTimeout, session));
    });
    session.on('stream', (stream, headers, _flags, rawHeaders: readonly string[]) =>
      this.#onStream(session, stream, socket, headers, rawHeaders),
    );
    // An open stream may be silent for a long time: an event stream, or a slow backend.
    session.setTimeout(this.#events.limits.keepAliveTimeout, () => {
      if (this.#sessions.get(session) === 0) session.close();
    });
  }

  /** Applies settings that Node.js does not know. Returns timers, to be cleared when the session has closed. */
  #watch(session: ServerHttp2Session, settings: ConnectionSettings): NodeJS.Timeout[] {
    const { connectionWindow, maxDuration, pingInterval, pingTimeout } = settings;
    const timers: NodeJS.Timeout[] = [];
    if (connectionWindow !== undefined) session.setLocalWindowSize(connectionWindow);
    if (maxDuration !== undefined) timers.push(setTimeout(() => this.#leave(session), maxDuration));
    if (pingInterval !== undefined) timers.push(this.#pingEvery(pingInterval, session, pingTimeout));
    return timers;
  }

  /** Pings a client every `interval` ms, and closes the connection if it does not answer. Returns the timer. */
  #pingEvery(
    interval: number,
    session: ServerHttp2Session,
    timeout = this.#events.limits.http2PingTimeout,
  ): NodeJS.Timeout {
    return setInterval(() => {
      if (session.destroyed) return;
      const late = setTimeout(() => session.destroy(), timeout);
      session.ping((error) => {
        clearTimeout(late);
        if (error !== null) session.destroy();
      });
    }, interval);
  }

  /** Announces to all clients that no further requests are accepted. */
  drain(): void {
    for (const session of this.#sessions.keys()) this.#leave(session);
  }

  /**
   * Closes a connection after its open requests. Those that are on their way are still answered: a first GOAWAY with the
   * highest stream id says so, the one with the last id follows after a round trip (RFC 9113 §6.8).
   */
  #leave(session: ServerHttp2Session): void {
    if (session.destroyed || session.closed) return;
    const close = (): void => {
      clearTimeout(timer);
      if (!session.closed) session.close();
    };
    const timer = setTimeout(close, this.#events.limits.linger);
    session.goaway(constants.NGHTTP2_NO_ERROR, MAX_STREAM_ID);
    if (!session.ping(close)) close();
  }

  /** Closes all connections. */
  destroy(): void {
    for (const session of this.#sessions.keys()) session.destroy();
  }

  #onStream(
    session: ServerHttp2Session,
    stream: ServerHttp2Stream,
    socket: Socket,
    headers: Http2Headers,
    rawHeaders: readonly string[],
  ): void {
    const { listener, limits } = this.#events;
    // Of the stream: `close` follows.
    stream.on('error', ignore);
    const list = headersOf(rawHeaders);
    const request = new Http2Request(headers, list);
    const response = new Http2Response(stream, request.method === 'HEAD');
    const body = stream.endAfterHeaders ? undefined : new Http2Body(stream);
    const ctx = new RequestContext(request, response, listener, list, body, clientOf(socket));
    this.#sessions.set(session, (this.#sessions.get(session) ?? 0) + 1);
    const slow = body && setTimeout(() => response.destroy(), limits.requestTimeout);
    if (body !== undefined) stream.once('end', () => clearTimeout(slow));
    stream.once('close', () => {
      clearTimeout(slow);
      this.#sessions.set(session, (this.#sessions.get(session) ?? 1) - 1);
      if (!response.writableFinished) ctx.clientClosed();
      this.#events.ended(ctx, response.status, response.bodyBytes);
    });
    void answer(ctx, response, this.#events);
  }
}

const MAX_STREAM_ID = 2 ** 31 - 1;

const ignore = (): void => undefined;

/** Every attack on HTTP/2 has a bound here or, where it says so, in nghttp2, whose own are not configurable. */
function sessionOptions(limits: Limits, settings: ConnectionSettings | undefined): ServerOptions {
  return {
    settings: {
      enablePush: false,
      maxConcurrentStreams: limits.http2Streams,
      maxHeaderListSize: settings?.headerSize ?? limits.headerBytes,
      initialWindowSize: settings?.streamWindow ?? limits.http2StreamWindow,
      ...(settings?.frameSize !== undefined && { maxFrameSize: settings.frameSize }),
    },
    // In MB. Headers and what waits to be sent, of all streams of a connection.
    maxSessionMemory: limits.http2SessionMemory,
    // With the pseudo-headers. A request with more is reset with ENHANCE_YOUR_CALM.
    maxHeaderListPairs: limits.headerCount + 4,
    maxSettings: limits.http2Settings,
    maxOutstandingPings: limits.http2Pings,
    maxSessionInvalidFrames: limits.http2InvalidFrames,
    maxSessionRejectedStreams: limits.http2RejectedStreams,
    streamResetBurst: limits.http2ResetBurst,
    streamResetRate: limits.http2ResetRate,
    unknownProtocolTimeout: limits.headersTimeout,
  } as ServerOptions;
}

/** The headers of a request as HTTP/1.1 has them: without pseudo-headers, with Host, and with one Cookie. */
function headersOf(rawHeaders: readonly string[]): HeaderList {
  const list = new HeaderList();
  let authority: string | undefined;
  let cookie: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const value = rawHeaders[at + 1] ?? '';
    if (name === ':authority') authority = value;
    // RFC 9113 §8.2.3: crumbs are joined before they leave HTTP/2.
    else if (name === 'cookie') cookie = cookie === undefined ? value : `${cookie}; ${value}`;
    else if (!name.startsWith(':')) list.append(name, value);
  }
  if (cookie !== undefined) list.append('cookie', cookie);
  // RFC 9113 §8.3.1: Host must be the same. Two fields are rejected by request validation, as two Host fields are.
  if (authority !== undefined && list.get('host')?.toLowerCase() !== authority.toLowerCase())
    list.append('host', authority);
  return list;
}

class Http2Request implements ClientRequest {
  readonly isHttp2 = true;
  readonly httpVersion = '2.0';
  readonly httpVersionMajor = 2;
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly #raw: readonly string[];

  constructor(headers: Http2Headers, list: HeaderList) {
    this.method = headers[':method'];
    this.url = headers[':path'];
    this.headers = headers;
    this.headers.host ??= headers[':authority'];
    this.#raw = list.raw.slice();
  }

  get headersDistinct(): NodeJS.Dict<string[]> {
    // Without a prototype: a client may send `__proto__`.
    const distinct: NodeJS.Dict<string[]> = Object.create(null);
    for (let at = 0; at < this.#raw.length; at += 2) {
      const name = this.#raw[at] ?? '';
      distinct[name] = [...(distinct[name] ?? []), this.#raw[at + 1] ?? ''];
    }
    return distinct;
  }
}

class Http2Response implements ClientResponse {
  readonly #stream: ServerHttp2Stream;
  readonly #isHead: boolean;
  #hasBody = true;
  #isBroken = false;
  #isSent = false;
  /** 0 if no response was sent. */
  status = 0;
  /** Bytes of the body. */
  bodyBytes = 0;

  constructor(stream: ServerHttp2Stream, isHead: boolean) {
    this.#stream = stream;
    this.#isHead = isHead;
    // Once the request was read, Node.js destroys a stream as soon as its last frame is on its way, and `finish`, which
    // waits for the socket, never comes. A reset with NO_ERROR looks the same afterwards; only here is END_STREAM known.
    const destroy = stream.destroy.bind(stream);
    stream.destroy = (error?: Error) => {
      this.#isSent ||= stream.state.localClose === 1;
      return destroy(error);
    };
  }

  get headersSent(): boolean {
    return this.status !== 0;
  }

  get destroyed(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }

  get writableFinished(): boolean {
    const { writableFinished, rstCode, aborted } = this.#stream;
    return (writableFinished || this.#isSent) && rstCode === 0 && !aborted && !this.#isBroken;
  }

  get writableLength(): number {
    return this.#stream.writableLength;
  }

  send(reply: Reply): void {
    const { status, headers, body } = reply;
    const hasContent = setContentLength(reply);
    // The body for a HEAD request is read, and not sent, as `http.ServerResponse` does.
    this.#hasBody = hasContent && !this.#isHead;
    const sent = sendable(status);
    this.#respond(sent, headers);
    this.status = sent;
    // The headers are sent at the end of this turn.
    if (!this.#hasBody) setImmediate(() => this.#refuseRest());
    if (!hasContent) discardReply(reply);
    else if (typeof body === 'object' && 'attach' in body) body.attach(this);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- HTTP/2 has no handshake to take over.
    else this.end(body as Exclude<typeof body, Takeover>);
  }

  #respond(status: number, headers: HeaderList): void {
    const options = { endStream: !this.#hasBody };
    try {
      this.#stream.respond(outgoing(status, headers, false), options);
    } catch (error) {
      // A field that HTTP/2 allows only once, and that an upstream has sent twice.
      if (membersOf(error)['code'] !== 'ERR_HTTP2_HEADER_SINGLE_VALUE') throw error;
      this.#stream.respond(outgoing(status, headers, true), options);
    }
  }

  write(chunk: string | Uint8Array): boolean {
    if (!this.#hasBody) return true;
    this.bodyBytes += lengthOf(chunk);
    return this.#stream.write(chunk);
  }

  end(chunk?: string | Uint8Array, encoding?: BufferEncoding): void {
    if (!this.#hasBody) return;
    const stream = this.#stream;
    if (chunk !== undefined) this.bodyBytes += lengthOf(chunk);
    stream.end(chunk, encoding ?? 'utf8', () => this.#refuseRest());
    // A client that opens no window would keep the body in memory. Any progress starts the time again.
    if (!stream.writableFinished) stream.setTimeout(LIMITS.writeStall, () => this.destroy());
  }

  /** The rest of the body of the request is not wanted any more (RFC 9113 §8.1). */
  #refuseRest(): void {
    const stream = this.#stream;
    if (stream.readableEnded || stream.endAfterHeaders || stream.destroyed) return;
    // A reset would overtake headers that wait for the connection: then the rest is read.
    if (stream.state.localClose === 1) stream.close(constants.NGHTTP2_NO_ERROR);
    // A stream that was read before is closed once everything of it was, and its reader may have stopped.
    stream.removeAllListeners('data');
    stream.resume();
  }

  /** The headers are sent at once anyway. */
  flushHeaders(): void {}

  writeContinue(): void {
    this.#stream.additionalHeaders({ ':status': 100 });
  }

  destroy(): void {
    this.#isBroken = true;
    // `close` would end the stream regularly before it resets it.
    this.#stream.destroy(new Error('the response was aborted'));
  }

  once(event: 'close' | 'drain' | 'finish', listener: () => void): void {
    this.#stream.once(event, listener.bind(this));
  }
}

/** HTTP/2 has no statuses over 599. Clients treat such a status of an upstream as a failure of a server (RFC 9110 §15). */
const sendable = (status: number): number => (status > 599 ? 502 : status);

const lengthOf = (chunk: string | Uint8Array): number =>
  typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.byteLength;

/** RFC 9113 §8.2.2: fields of HTTP/1.1 connections, which make a response malformed. */
const OF_CONNECTION = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

/** Headers as `respond` takes them. With `isSingle`, of repeated fields other than `set-cookie`, the first is sent. */
function outgoing(status: number, { raw }: HeaderList, isSingle: boolean): OutgoingHttpHeaders {
  const headers: Record<string, string | number | string[]> = Object.create(null);
  headers[':status'] = status;
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    const value = raw[at + 1] ?? '';
    if (OF_CONNECTION.has(name)) continue;
    const known = headers[name];
    if (known === undefined) headers[name] = value;
    else if (!isSingle || name === 'set-cookie')
      headers[name] = Array.isArray(known) ? [...known, value] : [String(known), value];
  }
  return headers;
}
