import type { Dispatcher } from 'undici';
import { LIMITS } from '../../../core/limits.ts';
import { readEvents, type StreamPosition } from './http-body.ts';
import { RetryWait } from './retry-wait.ts';

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
}

/**
 * Keeps the GET stream open until `signal` is aborted: reopens it whenever it ends, and requests missed events. Returns
 * earlier if the server does not offer the stream (405), rejects the caller, or no longer knows the session. Never rejects.
 */
export async function listen(stream: Listening): Promise<void> {
  const { signal } = stream;
  const position: StreamPosition = {};
  const wait = new RetryWait();
  let wasOpen = false;
  while (!signal.aborted) {
    const since = performance.now();
    const { lastEventId } = position;
    try {
      const response = await stream.open(position);
      const { statusCode } = response;
      if (statusCode === 200) {
        wasOpen = true;
        await readEvents(response, position, (text) => {
          wait.succeeded();
          stream.message(text);
        });
        // Otherwise a server that ends each stream at once would get ten requests a second.
        if (performance.now() - since > LIMITS.retryLast) wait.succeeded();
        else wait.failed();
      } else {
        await response.body.dump();
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
    }
    await wait.next(position, signal);
  }
}

/** Whether a later attempt may succeed: the server is overloaded or failing, or unreachable behind a proxy. */
const isTemporary = (status: number): boolean => status >= 500 || status === 429 || status === 408;
