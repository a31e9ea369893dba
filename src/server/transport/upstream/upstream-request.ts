import type { IncomingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Dispatcher, Pool } from 'undici';
import { AppError, errorType } from '../../../core/errors.ts';
import { membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { CallMeter, CallSpan, RequestSpan } from '../../kernel/observer.ts';
import { HeaderList, removeHopByHop } from '../../kernel/request/header-list.ts';
import type { ConnectionTrust } from '../tls/connection-trust.ts';
import { UpstreamBody } from './upstream-body.ts';
import {
  BODY_TIMEOUT,
  CLIENT_GONE,
  explainUpstreamError,
  headersTimeout,
  isUnreachable,
  UNSUPPORTED_ENCODING,
  upstreamError,
  upstreamFailure,
} from './upstream-error.ts';

/** A call to an upstream. */
export interface UpstreamRequest {
  readonly method: string;
  /** Path and query. Appended to the fixed origin, so it cannot change the host. */
  readonly path: string;
  readonly headers: readonly string[];
  readonly body?: Dispatcher.DispatchOptions['body'];
  /** Aborts a `request`. */
  readonly signal?: AbortSignal;
  /** The client's request: a `relay` is aborted when the client disconnects. Much cheaper than a signal per request. */
  readonly client?: RelayClient;
  /** For `request`: the span of the request that it is made for. */
  readonly span?: RequestSpan | undefined;
  /** Maximum time until the response headers, including the connection, in ms; no limit by default. */
  readonly timeout?: number;
  /** Maximum silence within the response body in ms; no limit by default. Waiting for a slow client does not count. */
  readonly bodyIdle?: number;
  /** The request has no side effects, whatever its method: it may be sent twice. */
  readonly isReplaySafe?: boolean;
  /** Asks to make a WebSocket of the connection (RFC 6455 §4.1). HTTP/1.1 only. */
  readonly asksForWebSocket?: boolean;
}

/** The part of a request that a relay needs. */
interface RelayClient {
  readonly isAbandoned: boolean;
  /** Why it is abandoned, unless the client disconnected. */
  readonly abandonReason: string | undefined;
  running: { abandoned(): void } | undefined;
  /** From `performance.now()`: when the backend was called, and when its response headers arrived. */
  readonly timings: { called: number | undefined; answered: number | undefined };
  /** Set if the request is recorded: the call then gets a child span and sends its context. */
  readonly span: RequestSpan | undefined;
}

export interface UpstreamResponse {
  readonly status: number;
  /** Response headers without hop-by-hop fields. */
  readonly headers: HeaderList;
  readonly body: UpstreamBody;
  /** The connection, if the upstream has made a WebSocket of it: the status is 101. */
  readonly webSocket?: Socket;
}

/** State that all calls to one upstream share. */
export interface Destination {
  readonly pool: Pool;
  readonly address: string;
  readonly meter: CallMeter | undefined;
  readonly reachability: Reachability | undefined;
  readonly trust: ConnectionTrust;
}

/**
 * One request that is forwarded to an upstream. A class instead of closures: these would keep whole requests alive until a
 * full collection, which is a third of the cost of a small request.
 */
export class Relay implements Dispatcher.DispatchHandler {
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #resolve: (response: UpstreamResponse) => void;
  readonly #reject: (error: unknown) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #body: UpstreamBody | undefined;
  #informational = 0;
  readonly #destination: Destination;
  readonly #span: CallSpan | undefined;
  readonly #client: RelayClient | undefined;
  readonly #asksForWebSocket: boolean;
  readonly #startedAt = performance.now();
  #abortError: Error | undefined;

  constructor(
    { client, timeout, asksForWebSocket = false }: UpstreamRequest,
    span: CallSpan | undefined,
    destination: Destination,
    resolve: (response: UpstreamResponse) => void,
    reject: (error: unknown) => void,
  ) {
    this.#destination = destination;
    this.#span = span;
    this.#client = client;
    this.#asksForWebSocket = asksForWebSocket;
    if (client !== undefined) client.timings.called ??= this.#startedAt;
    this.#resolve = resolve;
    this.#reject = reject;
    if (client?.isAbandoned) this.abandoned();
    else if (client !== undefined) client.running = this;
    if (timeout !== undefined && !this.isAborted) this.#timer = setTimeout(abortOnTimeout, timeout, this);
  }

  get isAborted(): boolean {
    return this.#abortError !== undefined;
  }

  /** Called when the client has disconnected or its request was aborted. */
  abandoned(): void {
    this.abort(upstreamFailure(CLIENT_GONE, this.#client?.abandonReason ?? 'the client disconnected'));
  }

  /** Aborts the request. Also works before there is a connection, when undici has not called `onRequestStart` yet. */
  abort(error: Error): void {
    this.#abortError = error;
    this.#controller?.abort(error);
    this.#clearTimer();
    this.#span?.fail(explainUpstreamError(error), errorType(error));
    if (this.#body === undefined) this.#rejectWith(error);
  }

  #rejectWith(error: Error): void {
    this.#reject(upstreamError(error, this.#destination.address));
  }

  #answered(status: number): void {
    const now = performance.now();
    if (this.#client !== undefined) this.#client.timings.answered = now;
    this.#destination.meter?.answered(now - this.#startedAt);
    this.#destination.reachability?.answered();
    this.#span?.end(status);
  }

  #clearTimer(): void {
    clearTimeout(this.#timer);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#abortError !== undefined) controller.abort(this.#abortError);
  }

  onRequestUpgrade(
    controller: Dispatcher.DispatchController,
    status: number,
    _: unknown,
    socket: Duplex,
  ): void {
    this.#clearTimer();
    const headers = new HeaderList(textHeaders(controller.rawHeaders));
    const isWebSocket = headers.get('upgrade')?.toLowerCase() === 'websocket';
    if (!this.#asksForWebSocket || !isWebSocket || !(socket instanceof Socket)) {
      // What was not asked for must not become a tunnel.
      socket.destroy();
      const detail = `${this.#destination.address}: unsolicited protocol switch`;
      this.#reject(new AppError('upstream_invalid', { detail }));
      return;
    }
    this.#answered(status);
    removeHopByHop(headers);
    const body = new UpstreamBody(controller);
    body.end();
    this.#resolve({ status, headers, body, webSocket: socket });
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > LIMITS.informationalResponses)
        controller.abort(new Error('too many informational responses'));
      return;
    }
    clearTimeout(this.#timer);
    this.#answered(status);
    const headers = new HeaderList(textHeaders(controller.rawHeaders));
    const encoding = headers.get('transfer-encoding');
    if (encoding !== undefined && encoding.trim().toLowerCase() !== 'chunked') {
      this.abort(upstreamFailure(UNSUPPORTED_ENCODING, 'transfer-encoding other than chunked'));
      return;
    }
    removeHopByHop(headers);
    this.#body = new UpstreamBody(controller);
    // At the end of the turn of the event loop, one after the other: the code that sends them stays in the caches of the
    // processor then, unlike between the parsing of responses (docs/benchmarks.md). Node.js closes sockets after that, so an
    // upstream cannot end its response before it is passed on.
    setImmediate(this.#resolve, { status, headers, body: this.#body });
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#clearTimer();
    const body = this.#body;
    // The connection keeps a reference to its last request, which must not keep the client's request alive.
    this.#body = undefined;
    body?.end();
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#clearTimer();
    this.#span?.fail(explainUpstreamError(error), errorType(error));
    if (this.#body === undefined) this.#rejectWith(error);
    else this.#body.fail(explainUpstreamError(error), membersOf(error)['code'] === BODY_TIMEOUT);
  }
}

const abortOnTimeout = (call: Relay): void => call.abort(headersTimeout());

/** Headers as a list. With HTTP/2, undici passes on the object of `node:http2`, which has the status too. */
function textHeaders(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  if (Array.isArray(raw)) return raw.map(textOf);
  return Object.entries((raw ?? {}) as IncomingHttpHeaders).flatMap(([name, value = []]) =>
    name.startsWith(':') ? [] : [value].flat().flatMap((each) => [name, each]),
  );
}

const textOf = (part: string | Buffer): string => (typeof part === 'string' ? part : part.toString('latin1'));

/** Logs when an upstream becomes unreachable and when it is reachable again, not once per request. */
export class Reachability {
  readonly #address: string;
  readonly #log: Log;
  #isLost = false;
  /** From `performance.now()`. Limits the warnings about an upstream that repeatedly fails and recovers. */
  #quietUntil = 0;

  /** `address` is `host:port` or `unix:path`. */
  constructor(address: string, log: Log) {
    this.#address = address;
    this.#log = log;
  }

  answered(): void {
    if (!this.#isLost) return;
    this.#isLost = false;
    this.#log.info('proxy::upstream', 'an upstream is reachable again', { upstream: this.#address });
  }

  failed(error: unknown): void {
    const now = performance.now();
    if (this.#isLost || now < this.#quietUntil || !isUnreachable(error)) return;
    this.#isLost = true;
    this.#quietUntil = now + LIMITS.upstreamWarningInterval;
    this.#log.warn('proxy::upstream', 'an upstream cannot be reached', {
      upstream: this.#address,
      problem: explainUpstreamError(error),
    });
  }
}
