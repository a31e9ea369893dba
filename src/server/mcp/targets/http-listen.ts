import type { Dispatcher } from 'undici';
import { LIMITS } from '../../../core/limits.ts';
import { readEvents, type StreamPosition } from './http-body.ts';
import { RetryWait } from './retry-wait.ts';

/** The GET stream of one session with a server, for what the server sends on its own. */
export interface Listening {
  /** Sends the GET; with a `lastEventId`, for what came after it. */
  open(position: StreamPosition): Promise<Dispatcher.ResponseData>;
  message(text: string): void;
  /** The server no longer knows the session. */
  sessionLost(): void;
  /** The stream could not be opened or broke; it is tried again. */
  interrupted(problem: unknown): void;
  readonly signal: AbortSignal;
}

/**
 * Keeps the GET stream open: opens it again whenever it ends, for as long as the session lives, and asks for what was
 * missed. Ends when the server does not offer such a stream (405), refuses the caller, or has forgotten the session.
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
        // A server that ends each stream at once would otherwise be asked ten times a second for ever.
        if (performance.now() - since > LIMITS.retryLast) wait.succeeded();
        else wait.failed();
      } else {
        await response.body.dump();
        if (statusCode === 400 && lastEventId !== undefined) delete position.lastEventId;
        // Some servers say 400. One that never opened the stream may not offer it, whatever its status for that is.
        else if (wasOpen && (statusCode === 404 || statusCode === 400)) return stream.sessionLost();
        else if (!isPassing(statusCode)) return;
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

/** Whether a later attempt may succeed: the server is overloaded or failing, or a proxy before it cannot reach it. */
const isPassing = (status: number): boolean => status >= 500 || status === 429 || status === 408;
