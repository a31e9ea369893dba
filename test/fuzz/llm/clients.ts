import type { Json } from '../../kit/mcp.ts';
import type { Answered } from '../client.ts';
import { eventsOf, must, parsed } from '../judge.ts';

// What clients of each format send, and what they accept.

export type ClientKey = 'completions' | 'messages' | 'responses' | 'generateContent';

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } } };

interface ClientRequest {
  readonly path: string;
  readonly body: object;
}

export const REQUESTS: Readonly<Record<ClientKey, (model: string, isStream: boolean) => ClientRequest>> = {
  completions: (model, isStream) => ({
    path: '/v1/chat/completions',
    body: {
      model,
      messages: [{ role: 'user', content: 'Hi, I am ann@example.com' }],
      tools: [{ type: 'function', function: { name: 'get_weather', parameters: SCHEMA } }],
      ...(isStream && { stream: true, stream_options: { include_usage: true } }),
    },
  }),
  messages: (model, isStream) => ({
    path: '/v1/messages',
    body: {
      model,
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hi, I am ann@example.com' }],
      tools: [{ name: 'get_weather', input_schema: SCHEMA }],
      ...(isStream && { stream: true }),
    },
  }),
  responses: (model, isStream) => ({
    path: '/v1/responses',
    body: {
      model,
      input: 'Hi, I am ann@example.com',
      tools: [{ type: 'function', name: 'get_weather', parameters: SCHEMA }],
      ...(isStream && { stream: true }),
    },
  }),
  generateContent: (model, isStream) => ({
    path: `/v1beta/models/${model}:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: {
      contents: [{ role: 'user', parts: [{ text: 'Hi, I am ann@example.com' }] }],
      tools: [{ functionDeclarations: [{ name: 'get_weather', parameters: SCHEMA }] }],
    },
  }),
};

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): boolean => typeof value === 'string';
const isTextOrNothing = (value: unknown): boolean => value === undefined || value === null || isText(value);
const isCount = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;

/** Checks counts of tokens, which clients add up. */
function counts(usage: Json, names: readonly string[]): void {
  if (usage === undefined || usage === null) return;
  must(isObject(usage), 'usage is no object', usage);
  for (const name of names) must(isCount(usage[name]), `usage.${name} is no count`, usage);
}

const CHAT_COUNTS = ['prompt_tokens', 'completion_tokens', 'total_tokens'];
const INPUT_OUTPUT = ['input_tokens', 'output_tokens'];

function isCall(call: Json): void {
  must(isObject(call) && isText(call.id), 'a tool call without id', call);
  must(isText(call.function?.name) && isText(call.function?.arguments), 'a tool call without function', call);
}

/** The body of a response with status 200, as the API reference of each format has it. */
const BODIES: Readonly<Record<ClientKey, (body: Json) => void>> = {
  completions: ({ id, object, model, choices, usage }) => {
    must(isText(id) && object === 'chat.completion' && isText(model), 'head of a completion', {
      id,
      object,
      model,
    });
    must(Array.isArray(choices) && choices.length > 0, 'no choices', choices);
    for (const { message, finish_reason: finish, index } of choices) {
      must(isCount(index) && isTextOrNothing(finish), 'a choice', choices);
      must(isObject(message) && message.role === 'assistant', 'a message', message);
      must(
        isTextOrNothing(message.content) && isTextOrNothing(message.reasoning_content),
        'content',
        message,
      );
      for (const call of message.tool_calls ?? []) isCall(call);
    }
    counts(usage, CHAT_COUNTS);
  },
  messages: ({ id, type, role, model, content, usage, stop_reason: stop }) => {
    must(isText(id) && type === 'message' && role === 'assistant' && isText(model), 'head of a message', {
      id,
      type,
      role,
      model,
    });
    must(Array.isArray(content), 'no content', content);
    for (const block of content) isBlock(block);
    must(isTextOrNothing(stop), 'stop_reason', stop);
    must(isObject(usage), 'no usage', usage);
    counts(usage, INPUT_OUTPUT);
  },
  responses: (body) => isResponse(body),
  generateContent: (body) => {
    must(isObject(body), 'no body', body);
    const { candidates, usageMetadata } = body;
    must(candidates === undefined || Array.isArray(candidates), 'candidates', body);
    for (const { content } of candidates ?? []) {
      must(content === undefined || isObject(content), 'content', content);
      must(content?.parts === undefined || Array.isArray(content.parts), 'parts', content);
      for (const part of content?.parts ?? [])
        must(isObject(part) && isTextOrNothing(part.text), 'a part', part);
    }
    if (usageMetadata !== undefined) must(isObject(usageMetadata), 'usageMetadata', usageMetadata);
  },
};

function isBlock(block: Json): void {
  must(isObject(block) && isText(block.type), 'a block', block);
  if (block.type === 'text') must(isText(block.text), 'a text', block);
  if (block.type === 'tool_use')
    must(isText(block.id) && isText(block.name) && isObject(block.input), 'a tool_use', block);
  if (block.type === 'thinking') must(isText(block.thinking), 'a thinking block', block);
}

function isResponse({ id, object, output, usage, status }: Json): void {
  must(isText(id) && object === 'response' && isText(status), 'head of a response', { id, object, status });
  must(Array.isArray(output), 'no output', output);
  for (const item of output) {
    must(isObject(item) && isText(item.type), 'an item', item);
    if (item.type === 'message') {
      must(Array.isArray(item.content), 'content of a message', item);
      for (const part of item.content) must(part.type !== 'output_text' || isText(part.text), 'a part', part);
    }
    if (item.type === 'function_call')
      must(isText(item.call_id) && isText(item.name) && isText(item.arguments), 'a function_call', item);
  }
  counts(usage, INPUT_OUTPUT);
}

/** The body of an error, as each API has it. */
const ERROR_BODIES: Readonly<Record<ClientKey, (body: Json) => boolean>> = {
  completions: ({ error }) => isObject(error) && isText(error.message),
  responses: ({ error }) => isObject(error) && isText(error.message),
  messages: ({ type, error }) =>
    type === 'error' && isObject(error) && isText(error.type) && isText(error.message),
  generateContent: ({ error }) =>
    isObject(error) && Number.isInteger(error.code) && isText(error.message) && isText(error.status),
};

/**
 * Fails unless the answer is JSON, or a stream of JSON, that has its end: what a provider with the client's own format says
 * is passed on as it is.
 */
export function judgedAsSent({ status, headers, text, isComplete }: Answered): Ending {
  must(isComplete, 'the connection was cut', text.slice(-400));
  if (headers['content-type']?.startsWith('text/event-stream') === true) {
    for (const { data } of eventsOf(text)) if (data !== '' && data !== '[DONE]') parsed(data, 'an event');
  } else parsed(text, `the body of HTTP ${status}`);
  return status === 200 ? 'answered' : 'failed';
}

/** How a call ended. */
export type Ending = 'answered' | 'failed';

/** Fails unless the answer is one of the format. */
export function judgedBody(client: ClientKey, { status, text, isComplete }: Answered): Ending {
  must(isComplete, 'the connection was cut', text);
  const body = parsed(text, `the body of HTTP ${status}`);
  must(isObject(body), `HTTP ${status}: no object`, text);
  if (status === 200 && !(isObject(body.error) && client !== 'responses')) {
    BODIES[client](body);
    return 'answered';
  }
  must(status >= 400 && status <= 599, `HTTP ${status} for an error`, text);
  must(ERROR_BODIES[client](body), `the error of HTTP ${status}`, text);
  return 'failed';
}

/** Fails unless the stream is one of the format, with an end or an error event. */
export function judgedStream(client: ClientKey, answered: Answered): Ending {
  const { status, headers, text, isComplete } = answered;
  if (headers['content-type']?.startsWith('text/event-stream') !== true) return judgedBody(client, answered);
  must(status === 200, `HTTP ${status} with a stream`, text);
  must(isComplete, 'the stream was cut', text.slice(-400));
  const events = eventsOf(text).filter(({ data }) => data !== '');
  return STREAMS[client](
    events.map(({ name, data }) => ({ name, data: data === '[DONE]' ? data : parsed(data, 'an event') })),
  );
}

type Events = readonly { readonly name: string; readonly data: Json }[];

const STREAMS: Readonly<Record<ClientKey, (events: Events) => Ending>> = {
  completions: (events) => {
    const chunks = events.filter(({ data }) => data !== '[DONE]');
    const failed = chunks.findIndex(({ data }) => isObject(data.error));
    for (const { data } of failed === -1 ? chunks : chunks.slice(0, failed)) {
      must(isObject(data) && data.object === 'chat.completion.chunk' && isText(data.id), 'a chunk', data);
      must(Array.isArray(data.choices), 'no choices', data);
      for (const { index, delta, finish_reason: finish } of data.choices) {
        must(isCount(index) && isObject(delta) && isTextOrNothing(finish), 'a choice', data);
        must(isTextOrNothing(delta.content), 'content', data);
        for (const call of delta.tool_calls ?? []) {
          must(isCount(call.index) && isTextOrNothing(call.id), 'a tool call', data);
          must(isTextOrNothing(call.function?.arguments), 'arguments', data);
        }
      }
      counts(data.usage, CHAT_COUNTS);
    }
    if (failed !== -1) {
      must(ERROR_BODIES.completions(chunks[failed]?.data), 'an error event', chunks[failed]);
      must(failed === chunks.length - 1, 'events after the error', chunks.slice(failed));
      return 'failed';
    }
    must(events.at(-1)?.data === '[DONE]', 'no end', events.at(-1));
    return 'answered';
  },
  messages: (events) => {
    const open = new Set<number>();
    for (const [at, { name, data }] of events.entries()) {
      must(isObject(data) && data.type === name, 'name and type of an event', { name, data });
      if (name === 'error') {
        must(ERROR_BODIES.messages(data), 'an error event', data);
        must(at === events.length - 1, 'events after the error', events.slice(at));
        return 'failed';
      }
      if (name === 'message_start') {
        must(at === 0, 'message_start is not the first event', data);
        must(
          isText(data.message?.id) && isText(data.message.model) && isObject(data.message.usage),
          'a message_start',
          data,
        );
        counts(data.message.usage, INPUT_OUTPUT);
      }
      if (name === 'content_block_start') {
        must(isCount(data.index) && !open.has(data.index), 'index of a block', data);
        isBlock(data.content_block);
        open.add(data.index);
      }
      if (name === 'content_block_delta')
        must(open.has(data.index) && isObject(data.delta) && isText(data.delta.type), 'a delta', data);
      if (name === 'content_block_stop') must(open.delete(data.index), 'a stop without start', data);
      if (name === 'message_delta') {
        must(isObject(data.delta) && isTextOrNothing(data.delta.stop_reason), 'a message_delta', data);
        must(data.usage === undefined || isCount(data.usage.output_tokens), 'usage of a message_delta', data);
      }
    }
    must(events.at(-1)?.name === 'message_stop', 'no end', events.at(-1));
    must(open.size === 0, 'a block is open at the end', [...open]);
    return 'answered';
  },
  responses: (events) => {
    let last = -1;
    for (const [at, { name, data }] of events.entries()) {
      must(isObject(data) && data.type === name, 'name and type of an event', { name, data });
      must(Number.isInteger(data.sequence_number) && data.sequence_number > last, 'sequence_number', data);
      last = data.sequence_number;
      if (name === 'error' || name === 'response.failed') {
        must(at === events.length - 1, 'events after the error', events.slice(at));
        return 'failed';
      }
      if (name.endsWith('.delta')) must(isText(data.delta), 'a delta', data);
      if (name.startsWith('response.output_item.'))
        must(isObject(data.item) && isText(data.item.type), 'an item', data);
      if (['response.completed', 'response.incomplete'].includes(name)) {
        isResponse(data.response);
        must(at === events.length - 1, 'events after the end', events.slice(at));
        return 'answered';
      }
    }
    throw new Error(`no end: ${JSON.stringify(events.at(-1)).slice(0, 300)}`);
  },
  generateContent: (events) => {
    for (const [at, { data }] of events.entries()) {
      must(isObject(data), 'an event', data);
      if (isObject(data.error)) {
        must(ERROR_BODIES.generateContent(data), 'an error event', data);
        must(at === events.length - 1, 'events after the error', events.slice(at));
        return 'failed';
      }
      BODIES.generateContent(data);
    }
    return 'answered';
  },
};
