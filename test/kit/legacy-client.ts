import { createParser } from 'eventsource-parser';
import { INITIALIZE, type Json } from './mcp.ts';
import { until } from './until.ts';

/** A bare client of the transport HTTP+SSE, for tests that look at the wire. */
export interface LegacyClient extends AsyncDisposable {
  readonly status: number;
  /** What the server answered instead of a stream, or the stream so far. */
  readonly text: string;
  /** URL for POSTs. */
  readonly endpoint: string;
  readonly messages: readonly Json[];
  readonly ended: boolean;
  post(message: object | string, url?: string, headers?: Record<string, string>): Promise<Response>;
  /** Posts a request and waits for its response on the stream. */
  request(method: string, params?: object): Promise<Json>;
  initialize(): Promise<Json>;
  close(): void;
}

/** Opens the stream; without a 200, there is no endpoint. */
export async function legacyClient(url: string, headers: Record<string, string> = {}): Promise<LegacyClient> {
  const leave = new AbortController();
  const response = await fetch(url, {
    headers: { accept: 'text/event-stream', ...headers },
    signal: leave.signal,
  });
  let endpoint = '';
  let text = '';
  let ended = false;
  let next = 1;
  const messages: Json[] = [];
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (event === 'endpoint') endpoint = new URL(data, url).href;
      else messages.push(JSON.parse(data));
    },
  });
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      const part = decoder.decode(chunk, { stream: true });
      text += part;
      parser.feed(part);
    }
  };
  void read()
    .catch(() => undefined)
    .finally(() => {
      ended = true;
    });
  await until(() => endpoint !== '' || ended);
  const client: LegacyClient = {
    status: response.status,
    get text() {
      return text;
    },
    get endpoint() {
      return endpoint;
    },
    messages,
    get ended() {
      return ended;
    },
    post: (message, to = endpoint, more = {}) =>
      fetch(to, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers, ...more },
        body: typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }),
      }),
    request: async (method, params) => {
      const id = next++;
      const { status, ...rest } = await client.post({ id, method, ...(params && { params }) });
      if (status !== 202) throw new Error(`HTTP ${status} ${JSON.stringify(rest)}`);
      await until(() => messages.some((message) => message.id === id));
      return messages.find((message) => message.id === id);
    },
    initialize: async () => {
      const answer = await client.request('initialize', {
        ...INITIALIZE.params,
        protocolVersion: '2024-11-05',
      });
      await client.post({ method: 'notifications/initialized' });
      return answer;
    },
    close: () => leave.abort(),
    [Symbol.asyncDispose]: async () => leave.abort(),
  };
  return client;
}
