import type { Dispatcher } from 'undici';
import { LIMITS } from '../../../core/limits.ts';
import { explainUpstreamError, locatedProblem } from '../../transport/upstream-error.ts';
import { TargetFailure } from '../target-failure.ts';
import { OversizedMessage, readEvents, type StreamPosition, UpstreamStatusError } from './http-body.ts';
import { RetryWait } from './retry-wait.ts';

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
}

/**
 * Resumes a response stream until its response has come (MCP 2025-11-25, "Resumability and Redelivery": always by GET
 * with `Last-Event-ID`, after the time in `retry`). Servers may end such streams on purpose and be polled, with no limit
 * except the client's. Rejects after `LIMITS.resumeAttempts` failures in a row, or if the server refuses.
 */
export async function resume(stream: Interrupted): Promise<void> {
  const { position, signal } = stream;
  const wait = new RetryWait();
  while (stream.isAwaited()) {
    await wait.next(position, signal);
    if (signal.aborted) return;
    const failure = await attempt(stream);
    if (failure === undefined) wait.succeeded();
    else if (failure.isFinal || wait.failures + 1 >= LIMITS.resumeAttempts)
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
    await readEvents(response, position, (text) => {
      message(text);
      return !isAwaited();
    });
    return undefined;
  } catch (problem) {
    if (problem instanceof OversizedMessage) throw problem;
    // A connection that brought events before it broke is progress.
    return position.lastEventId === before ? { problem, isFinal: false } : undefined;
  }
}

function cannotResume({ address }: Interrupted, problem: unknown): TargetFailure {
  const prefix = 'the response stream ended before the response and could not be resumed: ';
  if (problem instanceof UpstreamStatusError)
    return new TargetFailure(prefix + problem.message, `${address}: ${prefix}${problem.message}`);
  return new TargetFailure(
    prefix + explainUpstreamError(problem),
    `${prefix}${locatedProblem(address, problem)}`,
  );
}
