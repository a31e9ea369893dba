import { INITIALIZE, type Json, MCP_HEADERS } from '../../kit/mcp.ts';
import { envelope, MODERN, metaKey } from '../../kit/modern.ts';
import { type Answered, ask } from '../client.ts';
import { eventsOf, must, parsed } from '../judge.ts';
import type { Era } from './answers.ts';

/** A response to a request: what a correct client makes of it. */
export interface Heard {
  readonly status: number;
  /** The JSON-RPC response; undefined where an HTTP error has none. */
  readonly response: Json;
  readonly isFailure: boolean;
  /** Messages before it. */
  readonly others: readonly Json[];
}

const CAPABILITIES = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  roots: { listChanged: true },
  tasks: { requests: { tools: { call: {} } } },
};

/** What a client answers to a request of a server, without jsonrpc and id. */
export type Reaction = (request: Json) => object | undefined;

const REACTIONS: Readonly<Record<string, object>> = {
  'sampling/createMessage': {
    result: {
      role: 'assistant',
      model: 'm',
      content: { type: 'text', text: 'hello' },
      stopReason: 'endTurn',
    },
  },
  'elicitation/create': { result: { action: 'accept', content: { name: 'ann' } } },
  'roots/list': { result: { roots: [{ uri: 'file:///home', name: 'home' }] } },
  ping: { result: {} },
};

const wellBehaved: Reaction = ({ method }) =>
  REACTIONS[method] ?? { error: { code: -32601, message: 'no such method' } };

/** A client of one era, which judges what it gets. */
export interface Caller {
  /** Sends a request and reads the whole answer. Rejects if that is not an answer as the protocol has it. */
  request(method: string, params: Json, trial: string, react?: Reaction): Promise<Heard>;
  /** Sends any body. */
  raw(body: string, trial: string, headers?: Record<string, string>): Promise<Answered>;
  close(): Promise<void>;
}

/** Opens a session. Rejects if the answer is no answer; undefined if it is an error. */
export async function sessionCaller(
  url: string,
  trial: string,
): Promise<{ first: Heard; caller: Caller | undefined }> {
  const headers = { ...MCP_HEADERS, 'x-trial': trial };
  const params = { ...INITIALIZE.params, protocolVersion: '2025-11-25', capabilities: CAPABILITIES };
  const answered = await ask(url, { headers, body: JSON.stringify({ ...INITIALIZE, params }) });
  const first = heard(answered, 0);
  const id = answered.headers['mcp-session-id'];
  if (first.isFailure || typeof id !== 'string') return { first, caller: undefined };
  must(typeof first.response.result.protocolVersion === 'string', 'no protocolVersion', first.response);
  const own = { ...MCP_HEADERS, 'mcp-session-id': id };
  let next = 1;
  const raw: Caller['raw'] = (body, name, more = {}) =>
    ask(url, { headers: { ...own, 'x-trial': name, ...more }, body });
  const caller: Caller = {
    raw,
    async request(method, params, name, react = wellBehaved) {
      const number = next++;
      const body = JSON.stringify({ jsonrpc: '2.0', id: number, method, ...(params && { params }) });
      const reactions: Promise<unknown>[] = [];
      const onText = eventReader((message) => {
        if (message?.method === undefined || message.id === undefined) return;
        const reaction = react(message);
        if (reaction === undefined) return;
        reactions.push(
          raw(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...reaction }), `${name}-reaction`),
        );
      });
      const got = await ask(url, { headers: { ...own, 'x-trial': name }, body, onText });
      await Promise.all(reactions);
      return heard(got, number);
    },
    close: async () => void (await ask(url, { method: 'DELETE', headers: own })),
  };
  await raw(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }), 'initialized');
  return { first, caller };
}

const NAMES: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};

/** A client of revision 2026-07-28. `client` is its name. */
export function modernCaller(url: string, client = 'fuzz'): Caller {
  let next = 1;
  const raw: Caller['raw'] = (body, name, more = {}) =>
    ask(url, { headers: { ...MCP_HEADERS, 'mcp-protocol-version': MODERN, 'x-trial': name, ...more }, body });
  return {
    raw,
    async request(method, params, name) {
      const id = next++;
      const named = params?.[NAMES[method] ?? ''];
      const message = {
        jsonrpc: '2.0',
        id,
        method,
        params: {
          ...params,
          _meta: envelope(
            { sampling: {}, elicitation: {}, roots: {} },
            { [metaKey('clientInfo')]: { name: client, version: '1' } },
          ),
        },
      };
      const headers = {
        'mcp-method': method,
        ...(named !== undefined && { 'mcp-name': String(named) }),
        ...(method === 'tools/call' && { 'mcp-param-a': String(params.arguments.a) }),
      };
      return heard(await raw(JSON.stringify(message), name, headers), id);
    },
    close: () => Promise.resolve(),
  };
}

/** Gets each message of an event stream as it arrives. */
function eventReader(onMessage: (message: Json) => void): (text: string) => void {
  let rest = '';
  return (part) => {
    rest += part;
    for (let end = rest.indexOf('\n\n'); end !== -1; end = rest.indexOf('\n\n')) {
      const data = /^data: (.*)$/m.exec(rest.slice(0, end))?.[1];
      rest = rest.slice(end + 2);
      if (data !== undefined && data !== '') onMessage(JSON.parse(data));
    }
  };
}

/** The response among what came back. Rejects unless it is one as JSON-RPC 2.0 and the transport say. */
export function heard({ status, headers, text, isComplete }: Answered, id: unknown): Heard {
  must(isComplete, 'the connection was cut', text);
  const type = headers['content-type'] ?? '';
  const isStream = type.startsWith('text/event-stream');
  if (status !== 200 && !type.startsWith('application/json')) {
    must(status >= 400 && !isStream, `status ${status} with ${type}`, text);
    return { status, response: undefined, isFailure: true, others: [] };
  }
  must(isStream || type.startsWith('application/json'), `status ${status} with ${type}`, text);
  const messages: Json[] = isStream
    ? eventsOf(text)
        .filter(({ data }) => data !== '')
        .map(({ data }) => parsed(data, 'an event'))
    : [parsed(text, 'the body')];
  // The error of an HTTP server, such as that of its authorization, is passed on.
  if (status >= 400 && isObject(messages[0]) && messages[0].jsonrpc === undefined)
    return { status, response: undefined, isFailure: true, others: [] };
  for (const message of messages) isMessage(message);
  const responses = messages.filter(({ method }) => method === undefined);
  must(responses.length === 1, `${responses.length} responses`, text);
  const response = responses[0];
  // An HTTP error about a message that has no id, such as one that is not JSON.
  must(
    response.id === id || (status >= 400 && response.id === null),
    `HTTP ${status}, and the response has another id than ${id}`,
    text,
  );
  must(status === 200 || status >= 400, `HTTP ${status}`, text);
  must(messages.at(-1) === response, 'messages after the response', text);
  return {
    status,
    response,
    isFailure: response.error !== undefined,
    others: messages.slice(0, -1),
  };
}

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function isMessage(message: Json): void {
  must(isObject(message), 'not a JSON-RPC message', message);
  must(message.jsonrpc === '2.0', 'not JSON-RPC 2.0', message);
  if (message.method !== undefined) {
    must(typeof message.method === 'string', 'the method is no string', message);
    must(
      message.params === undefined || isObject(message.params),
      'params of a message are no object',
      message,
    );
    return;
  }
  must('result' in message !== 'error' in message, 'neither result nor error, or both', message);
  if ('result' in message) must(isObject(message.result), 'the result is no object', message);
  else {
    const { error } = message;
    must(isObject(error), 'the error is no object', message);
    must(Number.isInteger(error.code), 'the code of the error is no integer', message);
    must(typeof error.message === 'string', 'the message of the error is no string', message);
  }
}

export type { Era };
