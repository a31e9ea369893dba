import type { ServerResponse } from 'node:http';
import { type Answer, type HttpUpstream, httpUpstream } from '../kit/upstream.ts';

// A provider with chat completions and nothing else, as many local servers are. The last message says what it does:
// `busy`, `refused`, `broken`, `wait` and `break` are errors, and others are repeated with what was understood of them.

export interface ChatServer extends HttpUpstream {
  /** Streams that the client left before their end. */
  readonly left: number;
}

interface Content {
  readonly type: string;
  readonly text?: string;
  readonly image_url?: { readonly url: string };
}
interface Message {
  readonly role: string;
  readonly content: string | readonly Content[] | null;
}
interface ChatBody {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly response_format?: { readonly type: string };
}

export const USAGE = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 };

/** A call is answered with this status and a name of the error. */
const ERRORS: Readonly<Record<string, readonly [status: number, type: string, code: string]>> = {
  refused: [400, 'invalid_request_error', 'invalid_value'],
  broken: [500, 'server_error', 'internal'],
  busy: [429, 'rate_limit_error', 'rate_limit_exceeded'],
};

/** Requests with the text `busy once` that are answered with 429 before one is not. */
const BUSY = 2;

export async function chatServer(): Promise<ChatServer> {
  let left = 0;
  let busy = 0;
  const answer: Answer = (request, response, { body: bytes }) => {
    if (request.url !== '/v1/chat/completions') {
      fail(response, 404, 'not_found', 'not_found');
      return undefined;
    }
    const body = JSON.parse(Buffer.from(bytes, 'latin1').toString('utf8')) as ChatBody;
    const said = textOf(body.messages.at(-1));
    const isBusy = said === 'busy' || (said === 'busy once' && busy++ % (BUSY + 1) < BUSY);
    const error = ERRORS[isBusy ? 'busy' : said];
    if (error !== undefined) {
      // OpenAI's clients wait for `retry-after-ms`, others for `retry-after`.
      if (isBusy) response.setHeader('retry-after', said === 'busy' ? '7' : '1');
      fail(response, ...error);
      return undefined;
    }
    response.once('close', () => {
      if (!response.writableFinished) left += 1;
    });
    if (said === 'wait' && body.stream !== true) return undefined;
    if (body.stream === true) stream(response, body, said);
    else complete(response, body);
    return undefined;
  };
  const server = await httpUpstream(answer);
  return Object.defineProperty(server as ChatServer, 'left', { get: () => left });
}

function fail(response: ServerResponse, status: number, type: string, code: string): void {
  const error = { message: `The server is ${code}.`, type, code, param: null };
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
}

function textOf(message: Message | undefined): string {
  const content = message?.content ?? '';
  return typeof content === 'string' ? content : content.map(({ text }) => text ?? '').join('');
}

/** A call of the first tool, the result of a tool, a JSON object, the size of images, or the text itself. */
function messageFor({ messages, tools, response_format: format }: ChatBody): {
  content: string | null;
  tool_calls?: object[];
} {
  const last = messages.at(-1);
  if (last?.role === 'tool') return { content: `The tool said: ${textOf(last)}` };
  const tool = tools?.[0]?.function.name;
  if (tool !== undefined) {
    const call = { name: tool, arguments: '{"city":"Paris"}' };
    return { content: null, tool_calls: [{ id: 'call_1', type: 'function', function: call }] };
  }
  if (format?.type === 'json_schema') return { content: '{"city":"Paris","degrees":21}' };
  const images = typeof last?.content === 'object' ? (last?.content ?? []) : [];
  const seen = images.flatMap(({ image_url: image }) => (image === undefined ? [] : [image.url]));
  const system = messages.filter(({ role }) => role === 'system' || role === 'developer').map(textOf);
  const orders = system.length === 0 ? '' : ` by order of: ${system.join()}`;
  return { content: `You said: ${[textOf(last), ...seen].join(' ')}${orders}` };
}

function complete(response: ServerResponse, body: ChatBody): void {
  const message = messageFor(body);
  const choice = {
    index: 0,
    message: { role: 'assistant', ...message },
    finish_reason: message.tool_calls === undefined ? 'stop' : 'tool_calls',
  };
  const answer = { ...head('chat.completion', body), choices: [choice], usage: USAGE };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
}

function stream(response: ServerResponse, body: ChatBody, said: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (members: object): void =>
    void response.write(
      `data: ${JSON.stringify({ ...head('chat.completion.chunk', body), choices: [], ...members })}\n\n`,
    );
  const sendDelta = (delta: object, end: string | null = null): void =>
    send({ choices: [{ index: 0, delta, finish_reason: end }] });
  sendDelta({ role: 'assistant', content: '' });
  const { content, tool_calls: calls } = messageFor(body);
  if (said === 'wait') {
    sendDelta({ content: 'Wait.' });
    return;
  }
  if (said === 'break') {
    sendDelta({ content: 'Bro' });
    response.write('', () => response.destroy());
    return;
  }
  for (const word of content?.match(/[^ ]+ ?/gu) ?? []) sendDelta({ content: word });
  for (const { function: called, ...call } of (calls ?? []) as { function: { name: string } }[]) {
    sendDelta({ tool_calls: [{ index: 0, ...call, function: { name: called.name, arguments: '' } }] });
    for (const part of ['{"city":', '"Paris"}'])
      sendDelta({ tool_calls: [{ index: 0, function: { arguments: part } }] });
  }
  sendDelta({}, calls === undefined ? 'stop' : 'tool_calls');
  if (body.stream_options?.include_usage === true) send({ usage: USAGE });
  response.end('data: [DONE]\n\n');
}

const head = (object: string, { model }: ChatBody): object => ({
  id: 'chatcmpl-1',
  object,
  created: 1_760_000_000,
  model,
});
