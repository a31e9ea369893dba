import type { TestGateway, TestGatewayOptions } from './gateway.ts';
import { modelsGateway } from './llm-provider.ts';
import { send } from './send.ts';
import { httpUpstream } from './upstream.ts';

// Calls of clients of each chat format at providers of each chat format, and what a client assembles of the answers.

export const CHAT_FORMATS = ['completions', 'messages', 'responses', 'generateContent'] as const;
export type ChatFormatKey = (typeof CHAT_FORMATS)[number];

/** What the provider sends: events of a stream (texts as they are), or a body. */
export interface Answered {
  readonly events?: readonly (object | string)[];
  readonly body?: unknown;
  /** Media type; null for none. Default: that of a stream for events, otherwise JSON. */
  readonly type?: string | null;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Exchanged {
  readonly status: number;
  readonly text: string;
  readonly type: string | undefined;
  /** Fields of the access log. */
  readonly line: Readonly<Record<string, string>>;
}

export interface Exchange extends AsyncDisposable {
  readonly gate: TestGateway;
  /** Calls the provider with one format; by default as a client of that format, for a stream. */
  call(
    provider: ChatFormatKey,
    answered: Answered,
    options?: { readonly client?: ChatFormatKey; readonly stream?: boolean; readonly more?: object },
  ): Promise<Exchanged>;
}

/** A gateway with a model for each format, which only has that format. */
export async function exchange(
  more: { readonly model?: object; readonly llm?: object; readonly options?: TestGatewayOptions } = {},
): Promise<Exchange> {
  let answered: Answered = {};
  const provider = await httpUpstream((_, response) => {
    const { events, body, type, status = 200, headers } = answered;
    const usual = events === undefined ? 'application/json' : 'text/event-stream';
    response.writeHead(status, { ...(type !== null && { 'content-type': type ?? usual }), ...headers });
    response.end(events === undefined ? asText(body) : events.map(eventText).join(''));
  });
  const models = CHAT_FORMATS.map((type) => ({
    name: type,
    provider: { custom: { formats: [{ type }] } },
    params: { baseUrl: `http://${provider.address}/v1` },
    ...more.model,
  }));
  const gate = await modelsGateway(models, more.llm, {}, more.options);
  let calls = 0;
  return {
    gate,
    async call(key, answer, { client = key, stream = true, more: members } = {}) {
      answered = answer;
      calls += 1;
      const { status, text, headers } = await send(`${gate.url}${pathOf(client, key, stream)}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...requestOf(client, key, stream), ...members }),
      });
      return { status, text, type: headers['content-type'], line: await gate.accessLine(calls) };
    },
    async [Symbol.asyncDispose]() {
      await gate[Symbol.asyncDispose]();
      await provider.close();
    },
  };
}

const asText = (body: unknown): string => (typeof body === 'string' ? body : JSON.stringify(body));

function eventText(event: object | string): string {
  if (typeof event === 'string') return event;
  const name = 'type' in event && typeof event.type === 'string' ? `event: ${event.type}\n` : '';
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}

function pathOf(client: ChatFormatKey, model: string, stream: boolean): string {
  const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
  return {
    completions: '/v1/chat/completions',
    messages: '/v1/messages',
    responses: '/v1/responses',
    generateContent: `/v1beta/models/${model}:${method}`,
  }[client];
}

function requestOf(client: ChatFormatKey, model: string, stream: boolean): object {
  const messages = [{ role: 'user', content: 'Hi' }];
  const requests: Record<ChatFormatKey, object> = {
    completions: { model, messages, stream, ...(stream && { stream_options: { include_usage: true } }) },
    messages: { model, messages, stream, max_tokens: 50 },
    responses: { model, input: 'Hi', stream },
    generateContent: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
  };
  return requests[client];
}

interface Event {
  // biome-ignore lint/suspicious/noExplicitAny: events of four APIs, read by tests only.
  readonly [name: string]: any;
}

/** What a client assembles of a stream. */
export interface Assembled {
  text: string;
  /** Tool calls with the JSON text of their arguments, in order. */
  calls: { id: string; name: string; args: string }[];
  /** The message of the error that ended the stream. */
  error?: string;
  /** Whether the last event of a complete stream was there. */
  hasEnded: boolean;
}

/** Assembles a stream like a strict client: blocks of Messages follow each other, a call has a name from its start. */
export function assembled(client: ChatFormatKey, stream: string): Assembled {
  const result: Assembled = { text: '', calls: [], hasEnded: stream.includes('data: [DONE]') };
  const open = new Map<string, Assembled['calls'][number]>();
  const start = (key: string, id: string, name: unknown): void => {
    if (typeof name !== 'string' || name === '') throw new Error(`a call without a name: ${stream}`);
    if (open.has(key)) throw new Error(`a call that began twice: ${stream}`);
    const call = { id, name, args: '' };
    open.set(key, call);
    result.calls.push(call);
  };
  const more = (key: string, text: string): void => {
    const call = open.get(key);
    if (call === undefined) throw new Error(`arguments of a call that did not begin: ${stream}`);
    call.args += text;
  };
  const lines = stream.split('\n').filter((line) => line.startsWith('data: {'));
  for (const line of lines) read(JSON.parse(line.slice('data: '.length)) as Event);
  return result;

  function read(event: Event): void {
    const error = event['error'] ?? event['response']?.error ?? (event['type'] === 'error' ? event : null);
    if (error !== null) {
      result.error = error.message;
      return;
    }
    ({ completions, messages, responses, generateContent })[client](event);
  }

  function completions({ choices }: Event): void {
    const delta = choices[0]?.delta ?? {};
    result.text += delta.content ?? '';
    for (const call of delta.tool_calls ?? []) {
      if (call.id !== undefined) start(`${call.index}`, call.id, call.function?.name);
      more(`${call.index}`, call.function?.arguments ?? '');
    }
  }

  function messages({ type, index, content_block: block, delta }: Event): void {
    if (type === 'content_block_start' && block.type === 'tool_use') start(`${index}`, block.id, block.name);
    if (type === 'content_block_delta') {
      result.text += delta.text ?? '';
      if (delta.type === 'input_json_delta') more(`${index}`, delta.partial_json);
    }
    result.hasEnded ||= type === 'message_stop';
  }

  function responses({ type, output_index: index, item, delta }: Event): void {
    if (type === 'response.output_item.added' && item.type === 'function_call')
      start(`${index}`, item.call_id, item.name);
    if (type === 'response.output_text.delta') result.text += delta;
    if (type === 'response.function_call_arguments.delta') more(`${index}`, delta);
    result.hasEnded ||= type === 'response.completed';
  }

  function generateContent({ candidates }: Event): void {
    for (const { content, finishReason } of candidates ?? []) {
      for (const { text = '', thought, functionCall } of content?.parts ?? []) {
        if (thought !== true) result.text += text;
        if (functionCall === undefined) continue;
        const key = `${result.calls.length}`;
        start(key, functionCall.id, functionCall.name);
        more(key, JSON.stringify(functionCall.args));
      }
      result.hasEnded ||= finishReason !== undefined;
    }
  }
}
