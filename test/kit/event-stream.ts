import { createParser } from 'eventsource-parser';
import { type Json, MCP_HEADERS } from './mcp.ts';
import { until } from './until.ts';

/** A response of server-sent events that is read while it arrives. */
export interface EventReader extends AsyncDisposable {
  readonly status: number;
  readonly headers: Headers;
  /** What came so far, as it came. */
  readonly text: string;
  /** Messages so far, parsed. */
  readonly messages: readonly Json[];
  /** Whether the server has ended the stream. */
  readonly ended: boolean;
  /** Waits for the first message that fits and returns it. */
  next(fits: (message: Json) => boolean): Promise<Json>;
  untilEnd(): Promise<void>;
  /** Leaves: the connection is cut. */
  close(): void;
}

interface Opening {
  readonly session?: string;
  /** Sent by POST; without it, the GET stream is opened. */
  readonly message?: object;
  readonly headers?: Record<string, string>;
  /** Milliseconds after which a response that has not begun is given up. */
  readonly headWithin?: number;
}

/** Opens a stream and returns once the response head is here. */
export async function openEvents(
  url: string,
  { session, message, headers = {}, headWithin = 10_000 }: Opening,
): Promise<EventReader> {
  const leave = new AbortController();
  const timer = setTimeout(
    () => leave.abort(new Error(`no response head within ${headWithin} ms`)),
    headWithin,
  );
  const response = await fetch(url, {
    method: message === undefined ? 'GET' : 'POST',
    headers: { ...MCP_HEADERS, ...(session && { 'mcp-session-id': session }), ...headers },
    signal: leave.signal,
    ...(message && { body: JSON.stringify({ jsonrpc: '2.0', ...message }) }),
  }).finally(() => clearTimeout(timer));
  const messages: Json[] = [];
  let ended = false;
  let text = '';
  const parser = createParser({
    // An event without data only carries an id.
    onEvent: ({ data }) => data !== '' && messages.push(JSON.parse(data)),
  });
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      const part = decoder.decode(chunk, { stream: true });
      text += part;
      parser.feed(part);
    }
    ended = true;
  };
  // Ends with an error when we leave, or when the server cuts the connection: then `ended` stays false.
  void read().catch(() => undefined);
  return {
    status: response.status,
    headers: response.headers,
    messages,
    get text() {
      return text;
    },
    get ended() {
      return ended;
    },
    next: async (fits) => {
      await until(() => messages.some(fits));
      return messages.find(fits);
    },
    untilEnd: () => until(() => ended),
    close: () => leave.abort(),
    [Symbol.asyncDispose]: async () => leave.abort(),
  };
}
