import type { Dispatcher } from 'undici';
import { isJson } from '../../../../core/foreign.ts';
import { LIMITS, type Limits } from '../../../../core/limits.ts';
import type { Log } from '../../../../core/log.ts';
import { elements } from '../../../kernel/json/json-text.ts';
import { TransientMap } from '../../../kernel/transient-map.ts';
import { isHeadersTimeout, locatedProblem } from '../../../transport/upstream/upstream-error.ts';
import type { UpstreamRequest } from '../../../transport/upstream/upstream-request.ts';
import { type CallerCredential, ChannelCredentials } from '../../connection/caller-credential.ts';
import { type ClientHeaders, forLater, NO_HEADERS } from '../../connection/client-headers.ts';
import type { Channel, ChannelEvents, SendOptions } from '../../connection/target.ts';
import { detailOf, timeoutFailure, timeoutMessage } from '../../connection/target-failure.ts';
import { encodedValue } from '../../protocol/envelope.ts';
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
} from '../../protocol/protocol.ts';
import {
  BODY_IN_ERROR,
  header,
  mediaType,
  readEvents,
  readMessages,
  readText,
  type StreamPosition,
} from './http-body.ts';
import {
  callFailed,
  isClassified,
  noResponse,
  postRefused,
  quoted,
  refusalOf,
  statusError,
  unusableAnswer,
} from './http-failures.ts';
import { listen, resume } from './http-reconnect.ts';
import { cleaning, type RedirectingServer, requestFollowing } from './redirects.ts';
import {
  deniesSession,
  endSession,
  isErrorAboutSession,
  mayBeAboutSession,
  PROBE,
  UpstreamSessionLost,
} from './session-loss.ts';

interface HttpTarget extends RedirectingServer {
  readonly name: string;
  readonly log: Log;
  readonly limits: Limits;
}

/** How the response to one POST is received. */
interface Receiving {
  /** The gateway's id of the request; undefined for a notification or a response. */
  readonly id: number | undefined;
  /** Those of the client's request, sent again when the response stream is resumed. */
  readonly headers: ClientHeaders | undefined;
  readonly credential: CallerCredential | undefined;
  readonly signal: AbortSignal;
  /** An error response that may be about the session. It is passed on if it is not. */
  doubtful?: string;
  /** The last text that was not JSON-RPC, such as `{"error": "…"}`. It is quoted if no response follows (stacklok/toolhive#6085). */
  said?: string;
}

/**
 * One session with a server over Streamable HTTP: one POST per message, and one GET for messages that the server sends
 * outside a response. Failures of requests are reported through `ChannelEvents`; failed notifications are logged.
 */
export class HttpChannel implements Channel {
  readonly #target: HttpTarget;
  readonly #events: ChannelEvents;
  readonly #credentials: ChannelCredentials;
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
    this.#credentials = new ChannelCredentials(target.credentials);
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

  listen(headers: ClientHeaders): void {
    if (this.#isModern) return;
    void this.#receiveServerStream(headers);
  }

  /** Does nothing: each response has its own connection, which undici pauses when its reader is slow. */
  pause(): void {}

  keepSession(): void {
    this.#isKept = true;
  }

  ending(headers: ClientHeaders): void {
    this.#credentials.of(headers);
  }

  async close(): Promise<void> {
    const ending = this.#isKept ? undefined : this.#sessionId;
    this.#closed.abort();
    if (ending !== undefined) await endSession(this.#target, ending, this.#version, this.#credentials.of());
  }

  async #post(text: string, options: SendOptions): Promise<void> {
    const { id, method, name: item, headers, headTimeout } = options;
    const { name, upstream, log } = this.#target;
    const abort = new AbortController();
    if (id !== undefined) this.#inFlight.set(id, abort);
    const signal = AbortSignal.any([this.#closed.signal, abort.signal]);
    const credential = this.#credentials.of(headers);
    const sent = {
      method: 'POST',
      headers: this.#requestHeaders(
        [...POST_HEADERS, ...(this.#isModern ? modernHeaders(method, item) : [])],
        headers,
      ),
      body: text,
      signal,
      // A server that closes an idle connection at this moment must not end a session before it has begun.
      isReplaySafe: method !== undefined && REPEATABLE_REQUESTS.has(method),
      ...(headTimeout === undefined ? {} : { timeout: headTimeout }),
    };
    try {
      const response = await this.#request(sent, credential);
      if (method === 'initialize') this.#sessionId = header(response, SESSION_HEADER) ?? this.#sessionId;
      const receiving: Receiving = { id, headers, credential, signal };
      await this.#receive(response, receiving);
      if (id !== undefined) this.#events.failed(id, noResponse(this.#target, receiving.said));
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
  #cancelLate(requestId: number, { headers = NO_HEADERS, headTimeout }: SendOptions): void {
    if (this.#isModern) return;
    const text = notificationMessage('notifications/cancelled', { requestId, reason: 'timeout' });
    void this.#post(text, { headers: forLater(headers), headTimeout });
  }

  /** Sends a request to the URL of the target, and again where it redirects to. */
  #request(
    request: Omit<UpstreamRequest, 'path'>,
    credential: CallerCredential | undefined,
  ): Promise<Dispatcher.ResponseData> {
    return requestFollowing(this.#target, { ...request, path: pathOf(this.#target) }, credential);
  }

  async #receive(response: Dispatcher.ResponseData, receiving: Receiving): Promise<void> {
    const { id } = receiving;
    const { statusCode } = response;
    if (statusCode < 200 || statusCode > 299) return this.#receiveRefusal(response, receiving);
    const type = mediaType(response);
    if (type === 'text/event-stream') await this.#receiveEvents(response, receiving);
    else if (JSON_TYPE.test(type))
      await readMessages(response, (text) => void this.#message(text, receiving));
    else if (id === undefined) await response.body.dump();
    else
      await readMessages(response, (text) => {
        // Some servers leave out the type, or call JSON text.
        if (!/^\s*[[{]/.test(text))
          throw unusableAnswer(cleaning(this.#target, receiving.credential), statusCode, type, text);
        this.#message(text, receiving);
      });
    const { doubtful } = receiving;
    if (doubtful === undefined) return;
    if (await this.#hasLostSession(receiving)) throw new UpstreamSessionLost(rpcErrorIn(doubtful)?.message);
    this.#events.message(doubtful, id);
  }

  async #receiveRefusal(response: Dispatcher.ResponseData, receiving: Receiving): Promise<void> {
    const { statusCode } = response;
    const { credential } = receiving;
    const refusal = statusError(response, await readText(response, BODY_IN_ERROR), credential);
    const { headers, body } = refusal;
    if (this.#isModern && this.#receiveError(body, receiving)) return;
    const isUnknown = statusCode === 404 && this.#sessionId !== undefined;
    // A challenge is about the token, which only the client can renew.
    const isDoubtful = this.#mayLoseSession && headers['www-authenticate'] === undefined;
    if (isUnknown || (isDoubtful && mayBeAboutSession(body) && (await this.#hasLostSession(receiving))))
      throw new UpstreamSessionLost(
        `HTTP ${statusCode}${quoted(this.#target, rpcErrorIn(body)?.message ?? body, ', ')}`,
      );
    if (statusCode === 405) throw postRefused(this.#target.upstream.address);
    const server = cleaning(this.#target, credential);
    throw refusalOf(refusal, server, credential?.origin ?? receiving.headers?.origin);
  }

  /** Whether there is a session that the server may have forgotten. */
  get #mayLoseSession(): boolean {
    return this.#version !== undefined && !this.#isModern;
  }

  async #hasLostSession({ headers, credential }: Receiving): Promise<boolean> {
    try {
      const probe = {
        method: 'POST',
        headers: this.#requestHeaders(POST_HEADERS, headers),
        body: PROBE,
        signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(LIMITS.targetResponseWait)]),
      };
      const response = await this.#request(probe, credential);
      return await deniesSession(response);
    } catch {
      return false;
    }
  }

  /** Passes a message on, or several in an array (MCP 2025-03-26, "Batching"). Returns whether it may be about the session. */
  #message(received: string, receiving: Receiving): boolean {
    const { id, credential } = receiving;
    const text = credential?.clean(received) ?? received;
    if (!text.includes('"jsonrpc"')) receiving.said = text.slice(0, BODY_IN_ERROR);
    const batch = batchIn(text);
    if (batch !== undefined) for (const message of batch) this.#events.message(message, id);
    else if (id === undefined || !this.#mayLoseSession || !isErrorAboutSession(text))
      this.#events.message(text, id);
    else receiving.doubtful = text;
    return receiving.doubtful !== undefined;
  }

  /** Since revision 2026-07-28, JSON-RPC errors have a status of their own. Returns false for any other body. */
  #receiveError(body: string, { id }: Receiving): boolean {
    const error = id === undefined ? undefined : rpcErrorIn(body);
    if (error === undefined) return false;
    this.#events.message(errorMessage(String(id), error.code, error.message, error.data), id);
    return true;
  }

  async #receiveEvents(response: Dispatcher.ResponseData, receiving: Receiving): Promise<void> {
    const { id, headers, credential, signal } = receiving;
    const { name, upstream, log } = this.#target;
    const events = this.#events;
    const position: StreamPosition = {};
    const message = (text: string): boolean => this.#message(text, receiving);
    if (id !== undefined) events.streaming?.(id);
    try {
      await readEvents(response, position, message, (text) => {
        receiving.said = (credential?.clean(text) ?? text).slice(0, BODY_IN_ERROR);
      });
    } catch (error) {
      const isBroken = !isClassified(error) && !(error instanceof TypeError);
      if (signal.aborted || !isBroken || position.lastEventId === undefined || this.#isModern) throw error;
    }
    // Streams of revision 2026-07-28 cannot be resumed.
    if (this.#isModern || id === undefined || position.lastEventId === undefined || !events.awaits(id))
      return;
    if (receiving.doubtful !== undefined) return;
    events.suspended(id);
    log.debug('mcp::http', 'the response stream of the target ended early and is resumed', { target: name });
    await resume({
      position,
      address: upstream.address,
      open: (from) => this.#openStream(from, headers, credential, signal),
      isAwaited: () => events.awaits(id),
      message,
      signal,
      limits: this.#target.limits,
    });
  }

  async #receiveServerStream(headers: ClientHeaders): Promise<void> {
    // A stream that the server refused is requested again when the client reconnects, perhaps with another token.
    if (this.#serverStream?.isOver === false) return;
    const { name, upstream, log, limits } = this.#target;
    const { signal } = this.#closed;
    const stream = { isOver: false };
    this.#serverStream = stream;
    this.#credentials.of(headers);
    await listen({
      // A stream may be open for hours, and is opened again with the credential of the latest request.
      open: (position) => this.#openStream(position, headers, this.#credentials.of(), signal),
      message: (text) =>
        void this.#message(text, { id: undefined, headers, credential: this.#credentials.of(), signal }),
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
    headers: ClientHeaders | undefined,
    credential: CallerCredential | undefined,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const own = ['accept', 'text/event-stream'];
    if (lastEventId !== undefined) own.push('last-event-id', lastEventId);
    const request = { method: 'GET', headers: this.#requestHeaders(own, headers), signal };
    return this.#request(request, credential);
  }

  #requestHeaders(own: readonly string[], { list }: ClientHeaders = NO_HEADERS): string[] {
    const headers = [...list, ...own];
    if (this.#sessionId !== undefined) headers.push(SESSION_HEADER, this.#sessionId);
    if (this.#version !== undefined) headers.push(VERSION_HEADER, this.#version);
    return headers;
  }
}

const POST_HEADERS: readonly string[] = [
  'content-type',
  'application/json',
  'accept',
  'application/json, text/event-stream',
];

/** Also `application/jsonl` and `application/json-rpc`. */
const JSON_TYPE = /^(?:application|text)\/(?:[\w.-]+\+)?(?:x-nd)?json/;

const pathOf = ({ url }: RedirectingServer): string => url.pathname + url.search;

/** The messages of an array, as texts; undefined for any other text. */
function batchIn(text: string): readonly string[] | undefined {
  if (text[0] !== '[' && !/^\s*\[/.test(text)) return undefined;
  if (!isJson(text)) return undefined;
  const spans = elements(text);
  if (spans.length > LIMITS.targetBatch) return undefined;
  return spans.map(({ start, end }) => text.slice(start, end));
}

/** The headers that repeat members of the body, for intermediaries (2026-07-28, "Standard Request Headers"). */
function modernHeaders(method: string | undefined, name: string | undefined): string[] {
  if (method === undefined) return [];
  const headers = [METHOD_HEADER, encodedValue(method)];
  if (name !== undefined) headers.push(NAME_HEADER, encodedValue(name));
  return headers;
}
