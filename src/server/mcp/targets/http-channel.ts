import type { IncomingHttpHeaders } from 'node:http';
import { createParser } from 'eventsource-parser';
import type { Dispatcher } from 'undici';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { Upstream } from '../../http/upstream.ts';
import { explainUpstreamError, locatedProblem } from '../../http/upstream-error.ts';
import { SESSION_HEADER, VERSION_HEADER } from '../protocol.ts';
import type { Channel, ChannelEvents, SendOptions } from '../target.ts';
import { detailOf, TargetFailure } from '../target-failure.ts';

interface HttpTarget {
  readonly name: string;
  readonly upstream: Upstream;
  readonly path: string;
  readonly log: Log;
}

/** A status other than success: kept whole, so that a 401 with its challenge can reach the client. */
export class UpstreamStatusError extends Error {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;

  constructor(status: number, headers: IncomingHttpHeaders, body: string) {
    super(`the server answered HTTP ${status}`);
    this.name = 'UpstreamStatusError';
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
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
    try {
      const response = await upstream.request({
        method: 'POST',
        path,
        headers: requestHeaders(
          ['content-type', 'application/json', 'accept', 'application/json, text/event-stream'],
          headers,
        ),
        body: text,
        signal: AbortSignal.any([closed.signal, abort.signal]),
      });
      if (method === 'initialize') sessionId = header(response, SESSION_HEADER) ?? sessionId;
      await receive(response, id);
      if (id !== undefined) {
        const problem = 'the server ended its answer without a response';
        events.failed(id, new TargetFailure(problem, `${upstream.address}: ${problem}`));
      }
    } catch (error) {
      if (abort.signal.aborted || closed.signal.aborted) return;
      const failure = isOurs(error)
        ? error
        : new TargetFailure(
            `the call to the server failed: ${explainUpstreamError(error)}`,
            locatedProblem(upstream.address, error),
          );
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

  async function receive(response: Dispatcher.ResponseData, id: number | undefined): Promise<void> {
    const { statusCode } = response;
    if (statusCode < 200 || statusCode > 299) {
      const body = await readText(response, BODY_IN_ERROR);
      if (statusCode === 404 && sessionId !== undefined)
        throw new UpstreamSessionLost('the server no longer knows the session');
      throw new UpstreamStatusError(statusCode, response.headers as IncomingHttpHeaders, body);
    }
    const type = header(response, 'content-type') ?? '';
    if (type.startsWith('text/event-stream')) await readEvents(response, (text) => events.message(text, id));
    else if (type.startsWith('application/json'))
      events.message(await readText(response, LIMITS.targetMessageBytes), id);
    else await response.body.dump();
  }

  async function receiveUnasked(headers: readonly string[]): Promise<void> {
    let wait: number = LIMITS.retryFirst;
    while (!closed.signal.aborted) {
      try {
        const response = await upstream.request({
          method: 'GET',
          path,
          headers: requestHeaders(['accept', 'text/event-stream'], headers),
          signal: closed.signal,
        });
        if (response.statusCode !== 200) {
          // 405: the server sends nothing on its own (MCP "Listening for messages"). Anything else will not heal either.
          await response.body.dump();
          return;
        }
        wait = LIMITS.retryFirst;
        await readEvents(response, (text) => events.message(text));
      } catch (error) {
        if (closed.signal.aborted) return;
        log.debug('mcp::http', 'the stream of the target broke off', {
          target: name,
          problem: locatedProblem(upstream.address, error),
        });
      }
      await pause(wait, closed.signal);
      wait = Math.min(wait * 2, LIMITS.retryLast);
    }
  }

  let listening = false;
  return {
    get sessionId() {
      return sessionId;
    },
    send: (text, options) => void post(text, options),
    agreed: (agreedVersion) => {
      version = agreedVersion;
    },
    abandon: (id) => inFlight.get(id)?.abort(),
    listen: (headers) => {
      if (listening) return;
      listening = true;
      void receiveUnasked(headers);
    },
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
    error instanceof OversizedMessage
  );
}

class OversizedMessage extends Error {
  constructor() {
    super(`the server sent a message over ${LIMITS.targetMessageBytes} bytes`);
  }
}

async function readText(response: Dispatcher.ResponseData, limit: number): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: limit === LIMITS.targetMessageBytes });
  let text = '';
  for await (const chunk of response.body) {
    text += decoder.decode(chunk as Buffer, { stream: true });
    if (text.length <= limit) continue;
    response.body.destroy();
    if (limit === LIMITS.targetMessageBytes) throw new OversizedMessage();
    return text.slice(0, limit);
  }
  return text + decoder.decode();
}

async function readEvents(
  response: Dispatcher.ResponseData,
  onMessage: (text: string) => void,
): Promise<void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let sinceEvent = 0;
  const parser = createParser({
    onEvent: ({ data }) => {
      sinceEvent = 0;
      // An event without data only carries an id for resuming.
      if (data !== '') onMessage(data);
    },
  });
  for await (const chunk of response.body) {
    sinceEvent += (chunk as Buffer).length;
    parser.feed(decoder.decode(chunk as Buffer, { stream: true }));
    if (sinceEvent <= LIMITS.targetMessageBytes) continue;
    response.body.destroy();
    throw new OversizedMessage();
  }
}

function header({ headers }: Dispatcher.ResponseData, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
