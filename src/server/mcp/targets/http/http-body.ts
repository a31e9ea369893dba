import { createParser } from 'eventsource-parser';
import type { Dispatcher } from 'undici';
import { isJson } from '../../../../core/foreign.ts';
import { LIMITS } from '../../../../core/limits.ts';
import { isHeaderValue } from '../../../kernel/request/header-list.ts';

/** Characters of an error page that are kept for the error message. */
export const BODY_IN_ERROR = 4096;

/** A message of a server over `LIMITS.targetMessageBytes`. */
export class OversizedMessage extends Error {
  constructor() {
    super(`the server sent a message over ${LIMITS.targetMessageBytes} bytes`);
  }
}

/** Fields of an event stream for resuming it (HTML standard, "Server-sent events"). */
export interface StreamPosition {
  /** Id of the last event: a GET with `Last-Event-ID` requests the events after it. */
  lastEventId?: string;
  /** Milliseconds to wait before that GET. */
  retry?: number;
}

/** The chunks of a body, which has no encoding set. */
export const chunksOf = (body: Dispatcher.ResponseData['body']): AsyncIterable<Buffer> => body;

/** Reads at most `limit` characters of a body. */
export async function readText(response: Dispatcher.ResponseData, limit: number): Promise<string> {
  const decoder = new TextDecoder('utf-8');
  let text = '';
  for await (const chunk of chunksOf(response.body)) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length <= limit) continue;
    response.body.destroy();
    return text.slice(0, limit);
  }
  return text + decoder.decode();
}

/**
 * Reads a JSON body with one message, or with one on each line: some servers stream messages that way instead of as events.
 * A line is passed on when it is complete. Rejects with `OversizedMessage` for a message over `LIMITS.targetMessageBytes`, and
 * with `TypeError` for invalid UTF-8.
 */
export async function readMessages(
  response: Dispatcher.ResponseData,
  onMessage: (text: string) => void,
): Promise<void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  // Whether lines are messages, which the first one tells: formatted JSON has line breaks too.
  let areLines: boolean | undefined;
  for await (const chunk of chunksOf(response.body)) {
    const part = decoder.decode(chunk, { stream: true });
    // Looked for in the part: a search in the whole text would copy what has arrived so far, again with every part.
    const lines = areLines === false || !part.includes('\n') ? undefined : (text + part).split('\n');
    if (lines !== undefined) areLines ??= isJson(lines[0] ?? '');
    if (lines === undefined || areLines === false) text += part;
    else {
      text = lines.pop() ?? '';
      for (const line of lines) if (line.trim() !== '') onMessage(line);
    }
    if (text.length <= LIMITS.targetMessageBytes) continue;
    response.body.destroy();
    throw new OversizedMessage();
  }
  text += decoder.decode();
  if (areLines !== true || text.trim() !== '') onMessage(text);
}

/**
 * Reads an event stream and updates `position`. Returns at the end of the stream, or after `onMessage` has returned true.
 * Rejects with `OversizedMessage` for an event over `LIMITS.targetMessageBytes`. Events of the type `error` are not messages: their
 * data, which may explain why there is no response, goes to `onError`.
 */
export async function readEvents(
  response: Dispatcher.ResponseData,
  position: StreamPosition,
  // biome-ignore lint/suspicious/noConfusingVoidType: most callbacks return nothing.
  onMessage: (text: string) => boolean | void,
  onError?: (text: string) => void,
): Promise<void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let sinceEvent = 0;
  let isDone = false;
  let isEnd = false;
  let isTaken = false;
  const parser = createParser({
    onEvent: ({ event = 'message', data }) => {
      sinceEvent = 0;
      // An event without data only has an id for resuming. Events of other types, such as `ping` (fastmcp), are not messages: a
      // reader gets those that it knows (HTML standard, "Server-sent events").
      if (event === 'error') onError?.(data);
      if (data === '' || event !== 'message' || (isEnd && !isJson(data))) return;
      isTaken = isEnd;
      isDone = onMessage(data) === true || isDone;
    },
    onId: (id) => updateLastEventId(position, id),
    onRetry: (milliseconds) => {
      position.retry = milliseconds;
    },
  });
  for await (const chunk of chunksOf(response.body)) {
    sinceEvent += chunk.length;
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (isDone) return;
    if (sinceEvent <= LIMITS.targetMessageBytes) continue;
    response.body.destroy();
    throw new OversizedMessage();
  }
  // Some servers leave out the empty line after their last event, which readers then have to discard (HTML standard).
  isEnd = true;
  const { lastEventId } = position;
  parser.feed('\n\n');
  if (!isTaken) restore(position, lastEventId);
}

/** An event that was cut off must be requested again. */
function restore(position: StreamPosition, lastEventId: string | undefined): void {
  if (lastEventId === undefined) delete position.lastEventId;
  else position.lastEventId = lastEventId;
}

/** An empty id ends resumability (HTML standard). Ids that are not valid header values could not be sent. */
function updateLastEventId(position: StreamPosition, id: string): void {
  if (id === '' || id.length > LIMITS.eventIdLength || !isHeaderValue(id)) delete position.lastEventId;
  else position.lastEventId = id;
}

/** The media type of a response in lower case, without parameters; empty without one. */
export const mediaType = (response: Dispatcher.ResponseData): string =>
  (header(response, 'content-type') ?? '').split(';', 1).join().trim().toLowerCase();

export const isEventStream = (response: Dispatcher.ResponseData): boolean =>
  mediaType(response) === 'text/event-stream';

/** Ends a response whose body is of no use and may be endless. */
export function discard({ body }: Dispatcher.ResponseData): void {
  body.on('error', () => undefined).destroy();
}

/** One value of a response header, or undefined. */
export function header({ headers }: Dispatcher.ResponseData, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}
