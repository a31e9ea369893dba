import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { messageOf } from '../../core/errors.ts';
import { ApiError } from './api.ts';
import { isRefused, whenShownAgain } from './refusal.ts';

export interface StreamHandler {
  event(data: string, name: string | undefined): void;
  /** Called for a comment, such as a keepalive. */
  comment?(text: string): void;
  /** Called when the server has responded; events follow. */
  opened?(): void;
}

/**
 * Reads one stream of server-sent events to its end. `EventSource` reports neither comments nor why a server refused.
 * Throws `ApiError` if the server refuses, does not respond, or interrupts the stream.
 */
export async function readEventStream(
  path: string,
  handler: StreamHandler,
  signal: AbortSignal,
): Promise<void> {
  try {
    const response = await fetch(path, { headers: { accept: 'text/event-stream' }, signal });
    if (!response.ok || response.body === null)
      throw new ApiError(
        (await response.text()).trim() || `${path} answered ${response.status}`,
        response.status,
      );
    handler.opened?.();
    const parser = createParser({
      onEvent: ({ data, event }: EventSourceMessage) => handler.event(data, event),
      onComment: (text) => handler.comment?.(text.trim()),
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) parser.feed(part.value);
  } catch (error) {
    if (signal.aborted || error instanceof ApiError) throw error;
    throw new ApiError(`${location.origin} does not answer. Is it still running?`);
  }
}

/** `lost` contains the time until the next attempt in ms, and the status if the server has refused. */
export type StreamState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'open' }
  | {
      readonly kind: 'lost';
      readonly reason: string;
      readonly status: number | undefined;
      readonly retryIn: number;
    };

const FIRST_RETRY = 500;
const LONGEST_RETRY = 5_000;

/**
 * Reads a stream until `signal` is aborted: whenever it ends, it is opened again, with growing delays; after a refusal, when the page
 * is shown again.
 */
export async function followEventStream(
  path: () => string,
  handler: StreamHandler & { state(state: StreamState): void },
  signal: AbortSignal,
): Promise<void> {
  let pause = FIRST_RETRY;
  handler.state({ kind: 'connecting' });
  while (!signal.aborted) {
    let reason = 'the server ended the stream';
    let status: number | undefined;
    try {
      const opened = (): void => {
        pause = FIRST_RETRY;
        handler.opened?.();
        handler.state({ kind: 'open' });
      };
      await readEventStream(path(), { ...pass(handler), opened }, signal);
    } catch (error) {
      if (signal.aborted) return;
      reason = messageOf(error);
      if (error instanceof ApiError) ({ status } = error);
    }
    handler.state({ kind: 'lost', reason, status, retryIn: pause });
    if (isRefused(status)) await shownAgain(signal);
    else await delay(pause, signal);
    pause = Math.min(pause * 2, LONGEST_RETRY);
  }
}

const pass = (handler: StreamHandler): StreamHandler => ({
  event: (data, name) => handler.event(data, name),
  comment: (text) => handler.comment?.(text),
});

function shownAgain(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    whenShownAgain(resolve, signal);
    signal.addEventListener('abort', () => resolve());
  });
}

function delay(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
  });
}
