import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { Upstream } from '../../transport/upstream.ts';
import { explainUpstreamError, locatedProblem } from '../../transport/upstream-error.ts';
import { SESSION_HEADER, VERSION_HEADER } from '../protocol.ts';
import type { Channel, ChannelEvents, SendOptions } from '../target.ts';
import { detailOf, TargetFailure } from '../target-failure.ts';
import {
  header,
  OversizedMessage,
  readEvents,
  readText,
  type StreamPosition,
  UpstreamStatusError,
} from './http-body.ts';
import { listen } from './http-listen.ts';
import { resume } from './http-resume.ts';

interface HttpTarget {
  readonly name: string;
  readonly upstream: Upstream;
  readonly path: string;
  readonly log: Log;
}

/** The server no longer knows the session: a new `initialize` will help. */
export class UpstreamSessionLost extends Error {}

const BODY_IN_ERROR = 4096;

/** One session with a server over Streamable HTTP: a POST per message, and one GET for what it sends on its own. */
export function openHttpChannel(target: HttpTarget, events: ChannelEvents, knownSession?: string): Channel {
  const { name, upstream, path, log } = target;
  let sessionId = knownSession;
  let version: string | undefined;
  const closed = new AbortController();
  const inFlight = new Map<number, AbortController>();

  function requestHeaders(own: readonly string[], forwarded: readonly string[] = []): string[] {
    const headers = [...forwarded, ...own];
    if (sessionId !== undefined) headers.push(SESSION_HEADER, sessionId);
    if (version !== undefined) headers.push(VERSION_HEADER, version);
    return headers;
  }

  async function post(text: string, { id, method, headers }: SendOptions): Promise<void> {
    const abort = new AbortController();
    if (id !== undefined) inFlight.set(id, abort);
    const signal = AbortSignal.any([closed.signal, abort.signal]);
    try {
      const response = await upstream.request({
        method: 'POST',
        path,
        headers: requestHeaders(
          ['content-type', 'application/json', 'accept', 'application/json, text/event-stream'],
          headers,
        ),
        body: text,
        signal,
      });
      if (method === 'initialize') sessionId = header(response, SESSION_HEADER) ?? sessionId;
      await receive(response, id, headers, signal);
      if (id !== undefined) events.failed(id, noResponse());
    } catch (error) {
      if (signal.aborted) return;
      const failure = isOurs(error) ? error : callFailed(error);
      if (id === undefined)
        log.warn('mcp::http', 'a notification did not reach the target', {
          target: name,
          problem: detailOf(failure),
        });
      else events.failed(id, failure);
    } finally {
      if (id !== undefined) inFlight.delete(id);
    }
  }

  async function receive(
    response: Dispatcher.ResponseData,
    id: number | undefined,
    headers: readonly string[] | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { statusCode } = response;
    if (statusCode < 200 || statusCode > 299) {
      const body = await readText(response, BODY_IN_ERROR);
      if (statusCode === 404 && sessionId !== undefined)
        throw new UpstreamSessionLost('the server no longer knows the session');
      if (statusCode === 405) throw postRefused(upstream.address);
      throw new UpstreamStatusError(statusCode, response.headers as IncomingHttpHeaders, body);
    }
    const type = header(response, 'content-type') ?? '';
    if (type.startsWith('text/event-stream')) await receiveEvents(response, id, headers, signal);
    else if (type.startsWith('application/json'))
      events.message(await readText(response, LIMITS.targetMessageBytes), id);
    else await response.body.dump();
  }

  async function receiveEvents(
    response: Dispatcher.ResponseData,
    id: number | undefined,
    headers: readonly string[] | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const position: StreamPosition = {};
    const message = (text: string): void => events.message(text, id);
    try {
      await readEvents(response, position, message);
    } catch (error) {
      const isBroken = !isOurs(error) && !(error instanceof TypeError);
      if (signal.aborted || !isBroken || position.lastEventId === undefined) throw error;
    }
    if (id === undefined || position.lastEventId === undefined || !events.awaits(id)) return;
    events.suspended(id);
    log.debug('mcp::http', 'the response stream of the target ended early and is resumed', { target: name });
    await resume({
      position,
      address: upstream.address,
      open: (from) => openStream(from, headers, signal),
      isAwaited: () => events.awaits(id),
      message,
      signal,
    });
  }

  function openStream(
    { lastEventId }: StreamPosition,
    headers: readonly string[] | undefined,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const own = ['accept', 'text/event-stream'];
    if (lastEventId !== undefined) own.push('last-event-id', lastEventId);
    return upstream.request({ method: 'GET', path, headers: requestHeaders(own, headers), signal });
  }

  let unasked: { readonly headers: readonly string[]; isOver: boolean } | undefined;

  async function receiveUnasked(headers: readonly string[]): Promise<void> {
    // A stream that the server refused is asked for again when the client comes back, perhaps with another token.
    if (unasked?.isOver === false) return;
    const current = { headers, isOver: false };
    unasked = current;
    await listen({
      open: (position) => openStream(position, headers, closed.signal),
      message: (text) => events.message(text),
      sessionLost: () => {
        if (sessionId !== undefined) events.sessionLost();
      },
      interrupted: (error) =>
        log.debug('mcp::http', 'the stream of the target is not available; it is tried again', {
          target: name,
          problem: locatedProblem(upstream.address, error),
        }),
      signal: closed.signal,
    });
    current.isOver = true;
  }

  function noResponse(): TargetFailure {
    const problem = 'the server ended its answer without a response';
    return new TargetFailure(problem, `${upstream.address}: ${problem}`);
  }

  function callFailed(error: unknown): TargetFailure {
    return new TargetFailure(
      `the call to the server failed: ${explainUpstreamError(error)}`,
      locatedProblem(upstream.address, error),
    );
  }

  return {
    get sessionId() {
      return sessionId;
    },
    send: (text, options) => void post(text, options),
    agreed: (agreedVersion) => {
      version = agreedVersion;
    },
    abandon: (id) => inFlight.get(id)?.abort(),
    listen: (headers) => void receiveUnasked(headers),
    // Each response has its own connection, which undici pauses with its reader.
    pause: () => undefined,
    close: async () => {
      const ending = sessionId;
      closed.abort();
      if (ending === undefined) return;
      await endSession(target, ending, version);
    },
  };
}

/** A server that takes no POST at this URL: usually one that has only the older HTTP+SSE transport. */
function postRefused(address: string): TargetFailure {
  const problem =
    'the server answered HTTP 405 to a POST, so it does not offer Streamable HTTP at this URL. ' +
    'Set `host` to its Streamable HTTP endpoint, often `/mcp`. If it only has the older HTTP+SSE transport, put a ' +
    'bridge in front: `stdio: { cmd: npx, args: [-y, mcp-remote, URL, --transport, sse-only] }`';
  return new TargetFailure(problem, `${address}: ${problem}`);
}

/** Tells the server that the session is over; whether it cares is its business (405 is allowed). */
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

function isOurs(error: unknown): error is Error {
  return (
    error instanceof UpstreamStatusError ||
    error instanceof UpstreamSessionLost ||
    error instanceof OversizedMessage ||
    error instanceof TargetFailure
  );
}
