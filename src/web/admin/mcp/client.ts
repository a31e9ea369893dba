import { createParser } from 'eventsource-parser';
import {
  elementsOf,
  isRecord,
  membersOf,
  numberIn,
  parseJson,
  stringIn,
  textIn,
} from '../../../core/foreign.ts';
import { ApiError } from '../../shared/api.ts';
import type { Endpoint } from '../playground/endpoints.ts';
import { parts, sendToGateway } from '../playground/send.ts';
import { authorization } from '../playground/token.tsx';
import { type Item, itemIn } from './item.ts';

const PROTOCOL = '2025-06-18';
/** Characters of one response that are kept. */
const MOST = 2_000_000;
/** Maximum number of pages of one list. */
const MOST_PAGES = 20;

export interface Message {
  readonly jsonrpc: '2.0';
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string };
}

/** The response to one message. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** All messages from the server, in order. */
  readonly messages: readonly Message[];
  /** The text as it was sent. */
  readonly text: string;
}

/** One MCP session through the gateway, over Streamable HTTP. */
export interface McpSession {
  readonly server: string;
  readonly instructions: string | undefined;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** Sends a message unchanged; `headers` are added. */
  send(message: unknown, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Reply>;
  /** Sends a request and returns its result. Throws `ApiError` with the server's message. */
  ask(method: string, params?: unknown): Promise<Readonly<Record<string, unknown>>>;
  /** Loads a complete list, page by page. */
  list(what: 'tools' | 'prompts' | 'resources'): Promise<readonly Item[]>;
  close(): void;
}

const CLIENT = {
  protocolVersion: PROTOCOL,
  capabilities: {},
  clientInfo: { name: 'agctl-playground', version: '1' },
};

/** Starts a session. Throws `ApiError` if the gateway or the server refuses. */
export async function connect(endpoint: Endpoint, token: string, signal: AbortSignal): Promise<McpSession> {
  let session: Readonly<Record<string, string>> = {};
  let count = 0;
  const post = async (
    message: unknown,
    headers: Readonly<Record<string, string>>,
    until: AbortSignal,
  ): Promise<Reply> => {
    const answer = await sendToGateway(
      {
        port: endpoint.port,
        path: endpoint.path,
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...(endpoint.host === undefined ? {} : { host: endpoint.host }),
          ...authorization(token),
          ...session,
          ...headers,
        },
        body: JSON.stringify(message),
      },
      until,
    );
    const isStream = answer.headers['content-type']?.includes('event-stream') === true;
    const { text, messages } = await read(answer.body, isStream, (asked) => void refuse(asked, until));
    return { status: answer.status, headers: answer.headers, text, messages };
  };
  /** This client supports no requests from servers. */
  const refuse = async (asked: Message, until: AbortSignal): Promise<void> => {
    const error = { code: -32601, message: 'the playground does not answer this' };
    await post({ jsonrpc: '2.0', id: asked.id, error }, {}, until).catch(() => undefined);
  };
  const ask = async (method: string, params: unknown = {}, until = signal): Promise<Result> => {
    count += 1;
    const id = `list-${count}`;
    const reply = await post({ jsonrpc: '2.0', id, method, params }, {}, until);
    return resultOf(reply, id);
  };
  const first = await post(
    { jsonrpc: '2.0', id: 'initialize', method: 'initialize', params: CLIENT },
    {},
    signal,
  );
  const result = resultOf(first, 'initialize');
  const id = first.headers['mcp-session-id'];
  const protocol = typeof result['protocolVersion'] === 'string' ? result['protocolVersion'] : PROTOCOL;
  session = { 'mcp-protocol-version': protocol, ...(id === undefined ? {} : { 'mcp-session-id': id }) };
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, {}, signal);
  const { name, version } = membersOf(result['serverInfo']);
  return {
    server: `${stringIn(name) ?? 'server'} ${textIn(version)}`.trim(),
    instructions: typeof result['instructions'] === 'string' ? result['instructions'] : undefined,
    capabilities: membersOf(result['capabilities']),
    send: post,
    ask,
    list: (what) => listAll(ask, what),
    close() {
      if (id === undefined) return;
      const { port, path, host } = endpoint;
      const headers = {
        ...session,
        ...authorization(token),
        ...(host === undefined ? {} : { host }),
      };
      sendToGateway({ port, method: 'DELETE', path, headers }, AbortSignal.timeout(5_000)).catch(
        () => undefined,
      );
    },
  };
}

/** Loads a list page by page, up to `MOST_PAGES`. */
async function listAll(
  ask: (method: string, params: unknown) => Promise<Result>,
  what: string,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let cursor: unknown;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = await ask(`${what}/list`, cursor === undefined ? {} : { cursor });
    for (const one of elementsOf(answer[what])) items.push(...itemIn(one));
    cursor = answer['nextCursor'];
    if (typeof cursor !== 'string') break;
  }
  return items;
}

/** Reads one message; undefined if it is none. Members of another type are missing. */
function messageIn(json: unknown): Message | undefined {
  if (!isRecord(json)) return undefined;
  const { id, method, params, result, error } = json;
  return {
    jsonrpc: '2.0',
    ...(typeof id === 'string' || typeof id === 'number' ? { id } : {}),
    ...(typeof method === 'string' ? { method } : {}),
    ...(params === undefined ? {} : { params }),
    ...(isRecord(result) ? { result } : {}),
    ...(isRecord(error)
      ? { error: { code: numberIn(error['code']) ?? 0, message: textIn(error['message']) } }
      : {}),
  };
}

type Result = Readonly<Record<string, unknown>>;

function resultOf({ status, messages, text }: Reply, id: string): Result {
  const message = messages.find((each) => each.id === id);
  if (message?.result !== undefined) return message.result;
  const problem = message?.error ?? messages.find(({ error }) => error !== undefined)?.error;
  const said = problem?.message ?? text.trim().slice(0, 500);
  throw new ApiError(`${status}${said === '' ? '' : `: ${said}`}`, status);
}

async function read(
  body: ReadableStream<string>,
  isStream: boolean,
  asked: (message: Message) => void,
): Promise<{ readonly text: string; readonly messages: readonly Message[] }> {
  const messages: Message[] = [];
  const add = (text: string): void => {
    try {
      for (const json of [parseJson(text)].flat()) {
        const message = messageIn(json);
        if (message === undefined) continue;
        messages.push(message);
        if (message.method !== undefined && message.id !== undefined) asked(message);
      }
    } catch {
      // Displayed as text.
    }
  };
  const parser = createParser({ onEvent: ({ data }) => add(data) });
  let text = '';
  for await (const part of parts(body)) {
    if (text.length < MOST) text += part;
    if (isStream) parser.feed(part);
  }
  if (!isStream) add(text);
  return { text: text.slice(0, MOST), messages };
}
