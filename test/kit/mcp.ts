/** What came over the wire, which tests look into member by member. */
// biome-ignore lint/suspicious/noExplicitAny: narrowing each step would hide what a test is about.
export type Json = any;

/** A bare MCP client over fetch, for tests that look at the wire. */
export interface McpReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The JSON-RPC messages of the event stream, or the one JSON body. */
  readonly messages: readonly Json[];
  readonly result: Json;
  readonly error: Json;
}

export interface McpSession {
  readonly url: string;
  readonly id: string;
  readonly initialize: McpReply;
  send(message: object, init?: RequestInit): Promise<McpReply>;
  request(method: string, params?: object): Promise<McpReply>;
  end(): Promise<McpReply>;
}

export const MCP_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: { sampling: {}, elicitation: {}, roots: {} },
    clientInfo: { name: 'test', version: '1' },
  },
};

/** A call of a tool, as `McpSession.send` takes it. `meta` is its `_meta`. */
export const toolCall = (id: unknown, name: string, args: object = {}, meta?: object) => ({
  id,
  method: 'tools/call',
  params: { name, arguments: args, ...(meta && { _meta: meta }) },
});

/** Sends one HTTP request and reads the whole answer. */
export async function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
  init: RequestInit = {},
): Promise<McpReply> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...MCP_HEADERS, ...headers },
    body:
      typeof body === 'string' || body instanceof Uint8Array
        ? (body as NonNullable<RequestInit['body']>)
        : JSON.stringify(body),
    ...init,
  });
  return read(response);
}

export async function read(response: Response): Promise<McpReply> {
  const text = await response.text();
  const type = response.headers.get('content-type') ?? '';
  const messages = type.startsWith('text/event-stream')
    ? [...text.matchAll(/^event: message\ndata: ([^\n]*)/gm)].map(([, data]) => JSON.parse(data as string))
    : type.startsWith('application/json')
      ? [JSON.parse(text)]
      : [];
  const last = messages.findLast((message) => 'result' in message || 'error' in message);
  return {
    status: response.status,
    headers: response.headers,
    text,
    messages,
    result: last?.result,
    error: last?.error,
  };
}

/** Initializes a session and confirms it. */
export async function openSession(
  url: string,
  headers: Record<string, string> = {},
  initialize: object = INITIALIZE,
): Promise<McpSession> {
  const initialized = await post(url, initialize, headers);
  const id = initialized.headers.get('mcp-session-id');
  if (id === null) throw new Error(`no session: HTTP ${initialized.status} ${initialized.text}`);
  const own = { ...headers, 'mcp-session-id': id };
  let next = 1;
  const session: McpSession = {
    url,
    id,
    initialize: initialized,
    send: (message, init) => post(url, { jsonrpc: '2.0', ...message }, own, init),
    request: (method, params) =>
      session.send({ id: next++, method, ...(params === undefined ? {} : { params }) }),
    end: async () => read(await fetch(url, { method: 'DELETE', headers: own })),
  };
  await session.send({ method: 'notifications/initialized' });
  return session;
}
