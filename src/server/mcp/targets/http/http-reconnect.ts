import { setTimeout } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { Limits } from '../../../../core/limits.ts';
import { explainUpstreamError, locatedProblem } from '../../../transport/upstream/upstream-error.ts';
import { TargetFailure, UpstreamStatusError } from '../../connection/target-failure.ts';
import {
  BODY_IN_ERROR,
  discard,
  isEventStream,
  OversizedMessage,
  readEvents,
  readText,
  type StreamPosition,
} from './http-body.ts';
import { mayBeAboutSession } from './session-loss.ts';

/** The GET stream of one session with a server, for messages outside a response. */
export interface Listening {
  /** Sends the GET; with a `lastEventId`, for the events after it. */
  open(position: StreamPosition): Promise<Dispatcher.ResponseData>;
  message(text: string): void;
  /** The server no longer knows the session. */
  sessionLost(): void;
  /** The stream could not be opened or broke; another attempt follows. */
  interrupted(problem: unknown): void;
  readonly signal: AbortSignal;
  readonly limits: Limits;
}

/**
 * Keeps the GET stream open until `signal` is aborted: reopens it whenever it ends, and requests missed events. Returns
 * earlier if the server does not offer the stream (405), rejects the caller, or no longer knows the session. Never rejects.
 */
export async function listen(stream: Listening): Promise<void> {
  const { signal } = stream;
  const position: StreamPosition = {};
  const wait = new RetryWait(stream.limits);
  let wasOpen = false;
  while (!signal.aborted) {
    const since = performance.now();
    const { lastEventId } = position;
    try {
      const response = await stream.open(position);
      const { statusCode } = response;
      if (statusCode === 200 && isEventStream(response)) {
        wasOpen = true;
        await readEvents(response, position, stream.message);
        // Otherwise a server that ends each stream at once, perhaps after a greeting, would get ten requests a second.
        if (performance.now() - since > stream.limits.retryDelayMax) wait.succeeded();
        else wait.failed();
      } else if (statusCode < 300) {
        // A page or a JSON-RPC error: there is no stream, as with 405.
        discard(response);
        return;
      } else {
        const body = await readText(response, BODY_IN_ERROR);
        if (wasOpen && statusCode !== 400 && mayBeAboutSession(body)) return stream.sessionLost();
        if (statusCode === 400 && lastEventId !== undefined) delete position.lastEventId;
        // Some servers answer 400 for an unknown session. Without an earlier stream, 404 and 400 may mean that there is none.
        else if (wasOpen && (statusCode === 404 || statusCode === 400)) return stream.sessionLost();
        else if (!isTemporary(statusCode)) return;
        wait.failed();
        stream.interrupted(new Error(`the server answered HTTP ${statusCode}`));
      }
    } catch (error) {
      if (signal.aborted) return;
      wait.failed();
      stream.interrupted(error);
      // A redirect that is not followed, or a credential that the client has to renew.
      if (error instanceof TargetFailure && error.credential !== 'unavailable') return;
    }
    await wait.next(position, signal);
  }
}

/** Whether a later attempt may succeed: the server is overloaded or failing, or unreachable behind a proxy. */
const isTemporary = (status: number): boolean => status >= 500 || status === 429 || status === 408;

/** Waits between attempts to open an event stream, with exponential back-off. */
class RetryWait {
  readonly #limits: Limits;
  /** Number of consecutive failures. */
  failures = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  failed(): void {
    this.failures += 1;
  }

  succeeded(): void {
    this.failures = 0;
  }

  /**
   * Resolves at the time of the next attempt, or when `signal` is aborted. Waits at least as long as the server requested
   * (`retry`, at most `LIMITS.streamRetryMax`), and at least `LIMITS.retryDelayMin`, since a server that sends `retry: 0` and
   * ends each stream would otherwise cause a tight loop.
   */
  async next({ retry }: StreamPosition, signal: AbortSignal): Promise<void> {
    const backOff = Math.min(
      this.#limits.retryDelayMin * 2 ** Math.max(0, this.failures - 1),
      this.#limits.retryDelayMax,
    );
    // Jitter of up to a fifth, so that the sessions of a restarted target do not all reconnect at the same moment.
    const own = backOff * (1 + Math.random() / 5);
    const wait = Math.max(own, Math.min(retry ?? 0, this.#limits.streamRetryMax));
    // Rejects when aborted; the caller checks the signal.
    await setTimeout(wait, undefined, { signal }).catch(() => undefined);
  }
}

/** A response stream that ended before its response, and the callbacks to resume it. */
export interface Interrupted {
  readonly position: StreamPosition;
  /** `host:port`, for the log. */
  readonly address: string;
  /** Sends the GET for the events after that position. */
  open(position: StreamPosition): Promise<Dispatcher.ResponseData>;
  /** Whether the response is still missing. */
  isAwaited(): boolean;
  message(text: string): void;
  readonly signal: AbortSignal;
  readonly limits: Limits;
}

/**
 * Resumes a response stream until its response has come (MCP 2025-11-25, "Resumability and Redelivery": always by GET
 * with `Last-Event-ID`, after the time in `retry`). Servers may end such streams on purpose and be polled, with no limit
 * except the client's. Rejects after `LIMITS.resumeAttempts` failures in a row, or if the server refuses.
 */
export async function resume(stream: Interrupted): Promise<void> {
  const { position, signal } = stream;
  const wait = new RetryWait(stream.limits);
  while (stream.isAwaited()) {
    await wait.next(position, signal);
    if (signal.aborted) return;
    const failure = await attempt(stream);
    if (failure === undefined) wait.succeeded();
    else if (failure.isFinal || wait.failures + 1 >= stream.limits.resumeAttempts)
      throw cannotResume(stream, failure.problem);
    else wait.failed();
  }
}

interface Failure {
  readonly problem: unknown;
  /** Trying again would not help. */
  readonly isFinal: boolean;
}

async function attempt({ open, position, isAwaited, message }: Interrupted): Promise<Failure | undefined> {
  const before = position.lastEventId;
  try {
    const response = await open(position);
    const { statusCode } = response;
    if (statusCode !== 200) {
      await response.body.dump();
      const problem = new UpstreamStatusError(statusCode, {}, '');
      return { problem, isFinal: statusCode < 500 && statusCode !== 429 };
    }
    if (!isEventStream(response)) {
      discard(response);
      return { problem: noStream(), isFinal: true };
    }
    await readEvents(response, position, (text) => {
      message(text);
      return !isAwaited();
    });
    return undefined;
  } catch (problem) {
    if (problem instanceof OversizedMessage) throw problem;
    if (problem instanceof TargetFailure) return { problem, isFinal: true };
    // A connection that brought events before it broke is progress.
    return position.lastEventId === before ? { problem, isFinal: false } : undefined;
  }
}

function noStream(): TargetFailure {
  const problem = 'the server did not answer with an event stream';
  return new TargetFailure(problem, problem);
}

function cannotResume({ address }: Interrupted, problem: unknown): TargetFailure {
  const prefix = 'the response stream ended before the response and could not be resumed: ';
  if (problem instanceof UpstreamStatusError || problem instanceof TargetFailure)
    return new TargetFailure(prefix + problem.message, `${address}: ${prefix}${problem.message}`);
  return new TargetFailure(
    prefix + explainUpstreamError(problem),
    `${prefix}${locatedProblem(address, problem)}`,
  );
}
