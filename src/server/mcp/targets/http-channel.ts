import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { LIMITS, type Limits } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import { TransientMap } from '../../../core/transient-map.ts';
import type { Upstream } from '../../transport/upstream.ts';
import { explainUpstreamError, isHeadersTimeout, locatedProblem } from '../../transport/upstream-error.ts';
import { encodedValue } from '../modern/envelope.ts';
import {
  errorMessage,
  METHOD_HEADER,
  MODERN_REVISION,
  NAME_HEADER,
  notificationMessage,
  REPEATABLE_REQUESTS,
  rpcErrorIn,
  SESSION_HEADER,
  VERSION_HEADER,
} from '../protocol.ts';
import type { Channel, ChannelEvents, SendOptions } from '../target.ts';
import { detailOf, TargetFailure, timeoutFailure, timeoutMessage } from '../target-failure.ts';
import {
  header,
  OversizedMessage,
  readEvents,
  readMessages,
  readText,
  type StreamPosition,
  UpstreamStatusError,
} from './http-body.ts';
import { listen, resume } from './http-reconnect.ts';

interface HttpTarget {
  readonly name: string;
  readonly upstream: Upstream;
  readonly path: string;
  readonly log: Log;
  readonly limits: Limits;
}

/** The server no longer knows the session (404). A new `initialize` gets a new one. */
export class UpstreamSessionLost extends Error {}

/** Bytes of an error page that are kept for the error message. */
const BODY_IN_ERROR = 4096;

/** How the response to one POST is received. */
interface Receiving {
  /** The gateway's id of the request; undefined for a notification or a response. */
  readonly id: number | undefined;
  /** End-to-end headers of the client's request, sent again when the response stream is resumed. */
  readonly headers: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

/**
 * One session with a server over Streamable HTTP: one POST per message, and one GET for messages that the server sends
 * outside a response. Failures of requests are reported through `ChannelEvents`; failed notifications are logged.
 */
export class HttpChannel implements Channel {
  readonly #target: HttpTarget;
  readonly #events: ChannelEvents;
  readonly #closed = new AbortController();
  #isKept = false;
  readonly #inFlight = new TransientMap<number, AbortController>();
  #sessionId: string | undefined;
  #version: string | undefined;
  /** The GET stream for messages outside a response; `isOver` once it will not be opened again. */
  #serverStream: { isOver: boolean } | undefined;

  /** `knownSession`: id of an existing session at the server, to be continued without `initialize`. */
  constructor(target: HttpTarget, events: ChannelEvents, knownSession?: string) {
    this.#target = target;
    this.#events = events;
    this.#sessionId = knownSession;
  }

  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  send(text: string, options: SendOptions): void {
    void this.#post(text, options);
  }

  agreed(version: string | undefined): void {
    this.#version = version;
  }

  /** Whether requests are sent as in revision 2026-07-28: no sessions, no GET stream, more headers. */
  get #isModern(): boolean {
    return this.#version === MODERN_REVISION;
  }

  abandon(id: number): void {
    this.#inFlight.get(id)?.abort();
  }

  listen(headers: readonly string[]): void {
    if (this.#isModern) return;
    void this.#receiveServerStream(headers);
  }

  /** Does nothing: each response has its own connection, which undici pauses when its reader is slow. */
  pause(): void {}

  keepSession(): void {
    this.#isKept = true;
  }

  async close(): Promise<void> {
    const ending = this.#isKept ? undefined : this.#sessionId;
    this.#closed.abort();
    if (ending !== undefined) await endSession(this.#target, ending, this.#version);
  }

  async #post(text: string, options: SendOptions): Promise<void> {
    const { id, method, name: item, headers, headTimeout } = options;
    const { name, upstream, path, log } = this.#target;
    const abort = new AbortController();
    if (id !== undefined) this.#inFlight.set(id, abort);
    const signal = AbortSignal.any([this.#closed.signal, abort.signal]);
    try {
      const response = await upstream.request({
        method: 'POST',
        path,
        headers: this.#requestHeaders(
          [
            'content-type',
            'application/json',
            'accept',
            'application/json, text/event-stream',
            ...(this.#isModern ? modernHeaders(method, item) : []),
          ],
          headers,
        ),
        body: text,
        signal,
        // A server that closes an idle connection at this moment must not end a session before it has begun.
        isReplaySafe: method !== undefined && REPEATABLE_REQUESTS.has(method),
        ...(headTimeout === undefined ? {} : { timeout: headTimeout }),
      });
      if (method === 'initialize') this.#sessionId = header(response, SESSION_HEADER) ?? this.#sessionId;
      await this.#receive(response, { id, headers, signal });
      if (id !== undefined) this.#events.failed(id, noResponse(upstream.address));
    } catch (error) {
      if (signal.aborted) return;
      const isLate = headTimeout !== undefined && isHeadersTimeout(error);
      const failure = isLate
        ? timeoutFailure({ endpoint: upstream.address }, timeoutMessage(headTimeout))
        : isClassified(error)
          ? error
          : callFailed(upstream.address, error);
      if (isLate && id !== undefined) this.#cancelLate(id, options);
      if (id === undefined)
        log.warn('mcp::http', 'a notification did not reach the target', {
          target: name,
          problem: detailOf(failure),
        });
      else this.#events.failed(id, failure);
    } finally {
      if (id !== undefined) this.#inFlight.delete(id);
    }
  }

  /**
   * Tells the server that the gateway no longer waits for a response: "the sender SHOULD issue a cancellation notification" (MCP
   * 2025-11-25, "Timeouts"). Since revision 2026-07-28, the end of the connection says so.
   */
  #cancelLate(requestId: number, { headers = [], headTimeout }: SendOptions): void {
    if (this.#isModern) return;
    const text = notificationMessage('notifications/cancelled', { requestId, reason: 'timeout' });
    void this.#post(text, { headers, headTimeout });
  }

  async #receive(response: Dispatcher.ResponseData, receiving: Receiving): Promise<void> {
    const { statusCode } = response;
    if (statusCode < 200 || statusCode > 299) {
      const body = await readText(response, BODY_IN_ERROR);
      if (this.#isModern && this.#receiveError(body, receiving)) return;
      if (
        this.#sessionId !== undefined &&
        (statusCode === 404 || (statusCode === 400 && isAboutSession(body)))
      )
        throw new UpstreamSessionLost('the server no longer knows the session');
      if (statusCode === 405) throw postRefused(this.#target.upstream.address);
      throw new UpstreamStatusError(statusCode, response.headers as IncomingHttpHeaders, body);
    }
    const type = header(response, 'content-type') ?? '';
    if (type.startsWith('text/event-stream')) await this.#receiveEvents(response, receiving);
    else if (type.startsWith('application/json'))
      await readMessages(response, (text) => this.#events.message(text, receiving.id));
    else await response.body.dump();
  }

  /** Since revision 2026-07-28, JSON-RPC errors have a status of their own. Returns false for any other body. */
  #receiveError(body: string, { id }: Receiving): boolean {
    const error = id === undefined ? undefined : rpcErrorIn(body);
    if (error === undefined) return false;
    this.#events.message(errorMessage(String(id), error.code, error.message, error.data), id);
    return true;
  }

  async #receiveEvents(response: Dispatcher.ResponseData, { id, headers, signal }: Receiving): Promise<void> {
    const { name, upstream, log } = this.#target;
    const events = this.#events;
    const position: StreamPosition = {};
    const message = (text: string): void => events.message(text, id);
    if (id !== undefined) events.streaming?.(id);
    try {
      await readEvents(response, position, message);
    } catch (error) {
      const isBroken = !isClassified(error) && !(error instanceof TypeError);
      if (signal.aborted || !isBroken || position.lastEventId === undefined || this.#isModern) throw error;
    }
    // Streams of revision 2026-07-28 cannot be resumed.
    if (this.#isModern || id === undefined || position.lastEventId === undefined || !events.awaits(id))
      return;
    events.suspended(id);
    log.debug('mcp::http', 'the response stream of the target ended early and is resumed', { target: name });
    await resume({
      position,
      address: upstream.address,
      open: (from) => this.#openStream(from, headers, signal),
      isAwaited: () => events.awaits(id),
      message,
      signal,
      limits: this.#target.limits,
    });
  }

  async #receiveServerStream(headers: readonly string[]): Promise<void> {
    // A stream that the server refused is requested again when the client reconnects, perhaps with another token.
    if (this.#serverStream?.isOver === false) return;
    const { name, upstream, log, limits } = this.#target;
    const { signal } = this.#closed;
    const stream = { isOver: false };
    this.#serverStream = stream;
    await listen({
      open: (position) => this.#openStream(position, headers, signal),
      message: (text) => this.#events.message(text),
      sessionLost: () => {
        if (this.#sessionId !== undefined) this.#events.sessionLost();
      },
      interrupted: (error) =>
        log.debug('mcp::http', 'the stream of the target is not available and will be retried', {
          target: name,
          problem: locatedProblem(upstream.address, error),
        }),
      signal,
      limits,
    });
    stream.isOver = true;
  }

  #openStream(
    { lastEventId }: StreamPosition,
    headers: readonly string[] | undefined,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const { upstream, path } = this.#target;
    const own = ['accept', 'text/event-stream'];
    if (lastEventId !== undefined) own.push('last-event-id', lastEventId);
    return upstream.request({ method: 'GET', path, headers: this.#requestHeaders(own, headers), signal });
  }

  #requestHeaders(own: readonly string[], forwarded: readonly string[] = []): string[] {
    const headers = [...forwarded, ...own];
    if (this.#sessionId !== undefined) headers.push(SESSION_HEADER, this.#sessionId);
    if (this.#version !== undefined) headers.push(VERSION_HEADER, this.#version);
    return headers;
  }
}

/** The headers that repeat members of the body, for intermediaries (2026-07-28, "Standard Request Headers"). */
function modernHeaders(method: string | undefined, name: string | undefined): string[] {
  if (method === undefined) return [];
  const headers = [METHOD_HEADER, encodedValue(method)];
  if (name !== undefined) headers.push(NAME_HEADER, encodedValue(name));
  return headers;
}

function noResponse(address: string): TargetFailure {
  const problem = 'the server ended its answer without a response';
  return new TargetFailure(problem, `${address}: ${problem}`);
}

function callFailed(address: string, error: unknown): TargetFailure {
  return new TargetFailure(
    `the call to the server failed: ${explainUpstreamError(error)}`,
    locatedProblem(address, error),
  );
}

/** The failure of a server that accepts no POST at this URL: usually it offers the older HTTP+SSE transport only. */
function postRefused(address: string): TargetFailure {
  const problem =
    'the server answered HTTP 405 to a POST, so it does not offer Streamable HTTP at this URL. ' +
    'Set `host` to its Streamable HTTP endpoint, often `/mcp`. If it only has the older HTTP+SSE transport, write ' +
    '`sse: { host: … }` instead of `mcp`';
  const failure = new TargetFailure(problem, `${address}: ${problem}`);
  failure.isRefusedMethod = true;
  return failure;
}

/**
 * Whether a body of status 400 is about the session. Servers answer 404 for a session that they no longer know (MCP, "Session
 * Management"), but those that follow the examples of the official SDK answer 400 with "No valid session ID provided".
 */
function isAboutSession(body: string): boolean {
  const error = rpcErrorIn(body);
  return error?.code === -32_000 && /\bsession\b/i.test(error.message);
}

/**
 * Ends the session at the server (DELETE), waiting at most `LIMITS.childKillGrace`. Never rejects: servers may refuse with
 * 405 (MCP, "Session Management"), and any other failure is only logged.
 */
async function endSession(
  { name, upstream, path, log }: HttpTarget,
  sessionId: string,
  version: string | undefined,
): Promise<void> {
  try {
    const response = await upstream.request({
      method: 'DELETE',
      path,
      headers: [SESSION_HEADER, sessionId, ...(version === undefined ? [] : [VERSION_HEADER, version])],
      signal: AbortSignal.timeout(LIMITS.childKillGrace),
    });
    await response.body.dump();
  } catch (error) {
    log.debug('mcp::http', 'the session could not be ended at the target', {
      target: name,
      problem: locatedProblem(upstream.address, error),
    });
  }
}

/** Whether the error already says what failed, so that it is not an error of the connection. */
function isClassified(error: unknown): error is Error {
  return (
    error instanceof UpstreamStatusError ||
    error instanceof UpstreamSessionLost ||
    error instanceof OversizedMessage ||
    error instanceof TargetFailure
  );
}
