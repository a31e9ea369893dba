import { createParser } from 'eventsource-parser';
import type { Dispatcher } from 'undici';
import { decodedUri, jsonIn, membersOf } from '../../../../core/foreign.ts';
import { LIMITS } from '../../../../core/limits.ts';
import type { Log } from '../../../../core/log.ts';
import type { CredentialOrigin } from '../../../kernel/request/shared-slots.ts';
import { explainUpstreamError, locatedProblem } from '../../../transport/upstream/upstream-error.ts';
import { type CallerCredential, ChannelCredentials } from '../../connection/caller-credential.ts';
import { type ClientHeaders, NO_HEADERS } from '../../connection/client-headers.ts';
import type { Channel, ChannelEvents, SendOptions } from '../../connection/target.ts';
import { detailOf, TargetFailure, UpstreamStatusError } from '../../connection/target-failure.ts';
import {
  BODY_IN_ERROR,
  chunksOf,
  discard,
  isEventStream,
  OversizedMessage,
  readEvents,
  readMessages,
  readText,
} from './http-body.ts';
import { quoted, refusalOf, statusError } from './http-failures.ts';
import { cleaning, type RedirectingServer, requestFollowing } from './redirects.ts';
import { deniesSession, mayBeAboutSession, PROBE, UpstreamSessionLost } from './session-loss.ts';

/** `url` is the one of the stream. */
interface SseTarget extends RedirectingServer {
  readonly name: string;
  readonly log: Log;
}

/**
 * One session with a server over HTTP+SSE (MCP 2024-11-05): one GET stream for all messages of the server, whose first
 * event names the URL for POSTs. The session ends with the stream; a request after that opens another one.
 */
export class SseChannel implements Channel {
  readonly sessionId = undefined;
  readonly #target: SseTarget;
  readonly #events: ChannelEvents;
  readonly #credentials: ChannelCredentials;
  readonly #closed = new AbortController();
  readonly #posts = new Map<number, AbortController>();
  /** Path for POSTs. Undefined until the first message opens the stream. */
  #endpoint: Promise<string> | undefined;
  #isReady = false;
  /** The last POST of a notification. Requests wait for it: `initialized` must arrive before them. */
  #notified: Promise<void> = Promise.resolve();
  /** While the client reads slowly: resolved when it has caught up. */
  #paused: PromiseWithResolvers<void> | undefined;

  constructor(target: SseTarget, events: ChannelEvents) {
    this.#target = target;
    this.#events = events;
    this.#credentials = new ChannelCredentials(target.credentials);
  }

  send(text: string, options: SendOptions): void {
    const credential = this.#credentials.of(options.headers);
    this.#endpoint ??= this.#open(options.headers ?? NO_HEADERS, credential);
    const sent = this.#post(this.#endpoint, this.#notified, text, options, credential);
    if (options.id === undefined) this.#notified = sent;
  }

  /** Does nothing: this transport has no header for the revision. */
  agreed(): void {}

  abandon(id: number): void {
    this.#posts.get(id)?.abort();
  }

  /** Does nothing: the stream is open from the first message on. */
  listen(): void {}

  pause(paused: boolean): void {
    if (paused) this.#paused ??= Promise.withResolvers();
    else {
      this.#paused?.resolve();
      this.#paused = undefined;
    }
  }

  diagnosis(): string {
    return this.#isReady ? '' : 'the server has not sent the event `endpoint`';
  }

  close(): Promise<void> {
    this.#closed.abort();
    this.pause(false);
    return Promise.resolve();
  }

  /** Opens the stream and reads it to its end, which closes the channel. Resolves to the path for POSTs. */
  #open(headers: ClientHeaders, credential: CallerCredential | undefined): Promise<string> {
    const endpoint = Promise.withResolvers<string>();
    // Each message that waits for it handles the failure itself.
    endpoint.promise.catch(() => undefined);
    this.#readStream(headers, credential, endpoint.resolve).then(
      () =>
        this.#end(new TargetFailure(ENDED, `${this.#target.upstream.address}: ${ENDED}`), endpoint.reject),
      (error: unknown) => this.#end(failureOf(error, this.#target.upstream.address), endpoint.reject),
    );
    return endpoint.promise;
  }

  #end(error: Error, reject: (error: Error) => void): void {
    const wasClosed = this.#closed.signal.aborted;
    this.#closed.abort();
    if (!wasClosed) this.#events.closed(error);
    reject(error);
  }

  async #readStream(
    { list, origin }: ClientHeaders,
    credential: CallerCredential | undefined,
    ready: (path: string) => void,
  ): Promise<void> {
    const { url } = this.#target;
    const request = {
      method: 'GET',
      path: url.pathname + url.search,
      headers: [...list, 'accept', 'text/event-stream'],
      signal: this.#closed.signal,
    };
    const response = await requestFollowing(this.#target, request, credential);
    await checkStream(response, cleaning(this.#target, credential), credential, origin);
    await this.#readEvents(response, (event, data) => {
      if (event?.toLowerCase() === 'endpoint') {
        if (this.#isReady) return;
        ready(postPath(data, url));
        this.#isReady = true;
      } else if (event === undefined || event === 'message' || isMessage(data))
        this.#events.message(this.#credentials.of()?.clean(data) ?? data);
    });
  }

  async #readEvents(
    { body }: Dispatcher.ResponseData,
    onEvent: (event: string | undefined, data: string) => void,
  ): Promise<void> {
    // Not fatal, as the HTML standard has it ("Server-sent events"): one stream has the responses to all calls.
    const decoder = new TextDecoder('utf-8');
    let sinceEvent = 0;
    const parser = createParser({
      onEvent: ({ event, data }) => {
        sinceEvent = 0;
        if (data !== '') onEvent(event, data);
      },
      // Keep-alive comments may follow each other for days.
      onComment: () => {
        sinceEvent = 0;
      },
    });
    for await (const chunk of chunksOf(body)) {
      sinceEvent += chunk.length;
      parser.feed(decoder.decode(chunk, { stream: true }));
      if (sinceEvent > LIMITS.targetMessageBytes) throw new OversizedMessage();
      await this.#paused?.promise;
    }
  }

  /** Reads a response in the answer to its POST, where some servers send it instead of on the stream. */
  async #receiveAnswer(response: Dispatcher.ResponseData, id: number | undefined): Promise<void> {
    const credential = this.#credentials.of();
    const message = (text: string): void => {
      if (isMessage(text)) this.#events.message(credential?.clean(text) ?? text, id);
    };
    if (isEventStream(response)) await readEvents(response, {}, message);
    else await readMessages(response, message);
  }

  /** Sends a message after `notified`. Never rejects. */
  async #post(
    endpoint: Promise<string>,
    notified: Promise<void>,
    text: string,
    { id, headers: { list, origin } = NO_HEADERS, headTimeout }: SendOptions,
    credential: CallerCredential | undefined,
  ): Promise<void> {
    const { name, upstream, log } = this.#target;
    const abort = new AbortController();
    const request = (body: string): Promise<Dispatcher.ResponseData> =>
      endpoint.then((path) =>
        requestFollowing(
          this.#target,
          {
            method: 'POST',
            path,
            headers: [...list, 'content-type', 'application/json'],
            body,
            signal,
            ...(headTimeout === undefined ? {} : { timeout: headTimeout }),
          },
          credential,
        ),
      );
    if (id !== undefined) this.#posts.set(id, abort);
    const own = id === undefined ? AbortSignal.timeout(LIMITS.targetResponseWait) : abort.signal;
    const signal = AbortSignal.any([this.#closed.signal, own]);
    try {
      await notified;
      const response = await request(text);
      const { statusCode } = response;
      if (statusCode >= 200 && statusCode <= 299) return await this.#receiveAnswer(response, id);
      const refusal = statusError(response, await readText(response, BODY_IN_ERROR), credential);
      const { body } = refusal;
      const isUnknown =
        statusCode === 404 || (mayBeAboutSession(body) && (await deniesSession(await request(PROBE))));
      if (isUnknown) throw new UpstreamSessionLost(`HTTP ${statusCode}${quoted(this.#target, body, ', ')}`);
      throw refusalOf(refusal, cleaning(this.#target, credential), credential?.origin ?? origin);
    } catch (error) {
      // After the end of the stream, all requests have failed already.
      if (this.#closed.signal.aborted || abort.signal.aborted) return;
      const failure = failureOf(error, upstream.address);
      if (id !== undefined) this.#events.failed(id, failure);
      else
        log.warn('mcp::sse', 'a notification did not reach the target', {
          target: name,
          problem: detailOf(failure),
        });
    } finally {
      if (id !== undefined) this.#posts.delete(id);
    }
  }
}

const ENDED = 'the server ended its event stream';

async function checkStream(
  response: Dispatcher.ResponseData,
  server: RedirectingServer,
  credential: CallerCredential | undefined,
  origin: CredentialOrigin | undefined,
): Promise<void> {
  if (response.statusCode !== 200) {
    const refusal = statusError(response, await readText(response, BODY_IN_ERROR), credential);
    throw refusalOf(refusal, server, credential?.origin ?? origin);
  }
  if (isEventStream(response)) return;
  discard(response);
  const problem =
    'the server did not answer with an event stream: set `host` to its SSE endpoint, often `/sse`, or use `mcp` for a server with Streamable HTTP';
  throw new TargetFailure(problem, `${server.upstream.address}: ${problem}`);
}

/** Whether a text is a message, and no other answer such as `Accepted`. */
const isMessage = (text: string): boolean => text.includes('"jsonrpc"');

/** Path and query of the URL for POSTs. A server must not make the gateway send a client's headers to another one. */
function postPath(data: string, stream: URL): string {
  const text = endpointIn(data);
  const url = URL.canParse(text, stream) ? new URL(text, stream) : undefined;
  if (url !== undefined && url.origin === stream.origin) return url.pathname + url.search;
  const problem = 'the event `endpoint` of the server has no URL of the same origin';
  throw new TargetFailure(problem, `${stream.host}: ${problem}: ${JSON.stringify(data.slice(0, 100))}`);
}

/** The URL in the data of an event `endpoint`, which some servers write as JSON, or encode as a whole (mcphost#26). */
function endpointIn(data: string): string {
  const text = data.trim();
  if (/^["{]/.test(text)) {
    const value = jsonIn(text);
    if (value === undefined) return text.replaceAll('"', '');
    const { uri, url, endpoint } = membersOf(value);
    return [value, uri, url, endpoint].find((member) => typeof member === 'string') ?? text;
  }
  // A path keeps its escapes.
  return /^(?:https?%3a|%2f)/i.test(text) ? decodedUri(text) : text;
}

function failureOf(error: unknown, address: string): Error {
  const isClassified =
    error instanceof UpstreamStatusError ||
    error instanceof UpstreamSessionLost ||
    error instanceof OversizedMessage ||
    error instanceof TargetFailure;
  return isClassified
    ? error
    : new TargetFailure(
        `the connection to the server failed: ${explainUpstreamError(error)}`,
        locatedProblem(address, error),
      );
}
