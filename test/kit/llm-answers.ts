import type { ServerResponse } from 'node:http';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { TestGateway } from './gateway.ts';
import { llmGateway } from './llm-provider.ts';
import { type Answer, type HttpUpstream, httpUpstream } from './upstream.ts';

// One answer of a model as each API has it, providers that have only one API, and official clients of each.

export type Api = 'completions' | 'messages' | 'responses';
export const APIS: readonly Api[] = ['completions', 'messages', 'responses'];

/** What every client should see of `ANSWER`. */
export const SEEN = {
  text: 'Let me look: the weather and the time.',
  reasoning: 'Two tools are needed.',
  calls: [
    ['call_a', 'get_weather', { city: 'Paris', days: 3 }],
    ['call_b', 'get_time', { zone: 'Europe/Paris' }],
  ],
  stop: 'tools',
  usage: { input: 120, cached: 100, written: 5, output: 40, reasoning: 12 },
};
export type Seen = typeof SEEN;

const ARGUMENTS = ['{"city":"Paris","days":3}', '{"zone":"Europe/Paris"}'] as const;

const CHAT_USAGE = {
  prompt_tokens: 120,
  completion_tokens: 40,
  total_tokens: 160,
  prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 5 },
  completion_tokens_details: { reasoning_tokens: 12 },
};
const MESSAGES_USAGE = {
  input_tokens: 15,
  cache_creation_input_tokens: 5,
  cache_read_input_tokens: 100,
  output_tokens: 40,
  output_tokens_details: { thinking_tokens: 12 },
};
const RESPONSES_USAGE = {
  input_tokens: 120,
  input_tokens_details: { cached_tokens: 100, cache_write_tokens: 5 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 12 },
  total_tokens: 160,
};

const chatCall = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
const responsesCall = (index: number, id: string, name: string, args: string) => ({
  id: `fc_${index}`,
  type: 'function_call',
  status: 'completed',
  call_id: id,
  name,
  arguments: args,
});

const REASONING_ITEM = {
  id: 'rs_1',
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: SEEN.reasoning }],
  encrypted_content: 'gAAAA-secret',
};
export const MESSAGE_ITEM = {
  id: 'msg_1',
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text: SEEN.text, annotations: [], logprobs: [] }],
};
const CALL_ITEMS = [
  responsesCall(1, 'call_a', 'get_weather', ARGUMENTS[0]),
  responsesCall(2, 'call_b', 'get_time', ARGUMENTS[1]),
];
const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  created_at: 1_760_000_000,
  status: 'completed',
  error: null,
  incomplete_details: null,
  model: 'model-1',
  output: [REASONING_ITEM, MESSAGE_ITEM, ...CALL_ITEMS],
  usage: RESPONSES_USAGE,
};

/** The answer as a body, as the API reference of each API describes it. */
export const BODIES: Readonly<Record<Api, object>> = {
  completions: {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_760_000_000,
    model: 'model-1',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          reasoning_content: SEEN.reasoning,
          content: SEEN.text,
          refusal: null,
          tool_calls: [
            chatCall('call_a', 'get_weather', ARGUMENTS[0]),
            chatCall('call_b', 'get_time', ARGUMENTS[1]),
          ],
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ],
    usage: CHAT_USAGE,
  },
  messages: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'model-1',
    content: [
      { type: 'thinking', thinking: SEEN.reasoning, signature: 'EqQB-signature' },
      { type: 'text', text: SEEN.text },
      { type: 'tool_use', id: 'call_a', name: 'get_weather', input: SEEN.calls[0]?.[2] },
      { type: 'tool_use', id: 'call_b', name: 'get_time', input: SEEN.calls[1]?.[2] },
    ],
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: MESSAGES_USAGE,
  },
  responses: RESPONSE,
};

const words = (text: string): string[] => text.match(/\S+\s*/g) ?? [];
const pieces = (text: string): string[] => text.match(/.{1,4}/g) ?? [];

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const event = (value: { readonly type: string }): string => `event: ${value.type}\n${data(value)}`;

/** Chunks with the arguments of both calls interleaved, as the API allows. */
function chatStream(hasUsage: boolean): string {
  const head = {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: 'model-1',
  };
  const chunk = (delta: object, finish: string | null = null): string =>
    data({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] });
  const call = (index: number, id: string, name: string): string =>
    chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] });
  const lists = ARGUMENTS.map(pieces);
  const args = Array.from({ length: Math.max(...lists.map(({ length }) => length)) }, (_, turn) =>
    lists.flatMap((list, index) =>
      list[turn] === undefined
        ? []
        : [chunk({ tool_calls: [{ index, function: { arguments: list[turn] } }] })],
    ),
  );
  return [
    chunk({ role: 'assistant', content: '' }),
    ...words(SEEN.reasoning).map((text) => chunk({ reasoning_content: text })),
    ...words(SEEN.text).map((content) => chunk({ content })),
    call(0, 'call_a', 'get_weather'),
    call(1, 'call_b', 'get_time'),
    ...args.flat(),
    chunk({}, 'tool_calls'),
    ...(hasUsage ? [data({ ...head, choices: [], usage: CHAT_USAGE })] : []),
    'data: [DONE]\n\n',
  ].join('');
}

function messagesStream(): string {
  const block = (index: number, content_block: object, deltas: readonly object[]): string[] => [
    event({ type: 'content_block_start', index, content_block } as { type: string }),
    ...deltas.map((delta) => event({ type: 'content_block_delta', index, delta } as { type: string })),
    event({ type: 'content_block_stop', index } as { type: string }),
  ];
  const tool = (index: number, id: string, name: string, args: string): string[] =>
    block(index, { type: 'tool_use', id, name, input: {} }, [
      { type: 'input_json_delta', partial_json: '' },
      ...pieces(args).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    ]);
  const { output_tokens: _, output_tokens_details: __, ...input } = MESSAGES_USAGE;
  const message = {
    ...BODIES.messages,
    content: [],
    stop_reason: null,
    usage: { ...input, output_tokens: 1 },
  };
  const delta = { stop_reason: 'tool_use', stop_sequence: null };
  return [
    event({ type: 'message_start', message } as { type: string }),
    event({ type: 'ping' }),
    ...block(0, { type: 'thinking', thinking: '', signature: '' }, [
      ...words(SEEN.reasoning).map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature: 'EqQB-signature' },
    ]),
    ...block(
      1,
      { type: 'text', text: '' },
      words(SEEN.text).map((text) => ({ type: 'text_delta', text })),
    ),
    ...tool(2, 'call_a', 'get_weather', ARGUMENTS[0]),
    ...tool(3, 'call_b', 'get_time', ARGUMENTS[1]),
    event({ type: 'message_delta', delta, usage: MESSAGES_USAGE } as { type: string }),
    event({ type: 'message_stop' }),
  ].join('');
}

function responsesStream(): string {
  let sequence = 0;
  const say = (type: string, members: object): string => {
    const value = { type, sequence_number: sequence, ...members };
    sequence += 1;
    return event(value);
  };
  const started = { ...RESPONSE, status: 'in_progress', output: [], usage: null };
  const added = (output_index: number, item: object): string =>
    say('response.output_item.added', { output_index, item });
  const done = (output_index: number, item: object): string =>
    say('response.output_item.done', { output_index, item });
  const reasoning = { item_id: 'rs_1', output_index: 0, summary_index: 0 };
  const text = { item_id: 'msg_1', output_index: 1, content_index: 0 };
  const empty = { type: 'output_text', text: '', annotations: [], logprobs: [] };
  return [
    say('response.created', { response: started }),
    say('response.in_progress', { response: started }),
    added(0, { ...REASONING_ITEM, summary: [], encrypted_content: '' }),
    say('response.reasoning_summary_part.added', { ...reasoning, part: { type: 'summary_text', text: '' } }),
    ...words(SEEN.reasoning).map((delta) =>
      say('response.reasoning_summary_text.delta', { ...reasoning, delta }),
    ),
    say('response.reasoning_summary_text.done', { ...reasoning, text: SEEN.reasoning }),
    say('response.reasoning_summary_part.done', { ...reasoning, part: REASONING_ITEM.summary[0] }),
    done(0, REASONING_ITEM),
    added(1, { ...MESSAGE_ITEM, status: 'in_progress', content: [] }),
    say('response.content_part.added', { ...text, part: empty }),
    ...words(SEEN.text).map((delta) => say('response.output_text.delta', { ...text, delta, logprobs: [] })),
    say('response.output_text.done', { ...text, text: SEEN.text, logprobs: [] }),
    say('response.content_part.done', { ...text, part: MESSAGE_ITEM.content[0] }),
    done(1, MESSAGE_ITEM),
    ...CALL_ITEMS.flatMap((item, index) => {
      const at = { item_id: item.id, output_index: index + 2 };
      return [
        added(index + 2, { ...item, status: 'in_progress', arguments: '' }),
        ...pieces(item.arguments).map((delta) =>
          say('response.function_call_arguments.delta', { ...at, delta }),
        ),
        say('response.function_call_arguments.done', { ...at, name: item.name, arguments: item.arguments }),
        done(index + 2, item),
      ];
    }),
    say('response.completed', { response: RESPONSE }),
  ].join('');
}

/** The answer as a stream. */
export const STREAMS: Readonly<Record<Api, string>> = {
  completions: chatStream(true),
  messages: messagesStream(),
  responses: responsesStream(),
};

interface AskedFor {
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
}

/** Answers like a provider that has only this API: as a stream if the request asks for one. */
export function answeringAs(api: Api): Answer {
  return (_, response, { body }) => {
    const { stream, stream_options: options } = JSON.parse(body) as AskedFor;
    if (stream !== true) return sendJson(response, BODIES[api]);
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    return response.end(api === 'completions' ? chatStream(options?.include_usage === true) : STREAMS[api]);
  };
}

export function sendJson(response: ServerResponse, value: object, status = 200): unknown {
  return response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

/** A provider that has only this API. */
export function providerOf(api: Api, answer: Answer = answeringAs(api)): Promise<HttpUpstream> {
  return httpUpstream(answer);
}

/** A gateway in front of a provider that has only this API. */
export function gatewayTo(
  upstream: HttpUpstream,
  api: Api,
  parts: Parameters<typeof llmGateway>[1] = {},
): Promise<TestGateway> {
  const provider = { custom: { formats: [{ type: api }] } };
  return llmGateway(upstream, { ...parts, model: { provider, ...parts.model } });
}

export const openAi = ({ url }: { readonly url: string }): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: 'client-key', maxRetries: 0 });
export const claude = ({ url }: { readonly url: string }): Anthropic =>
  new Anthropic({ baseURL: url, apiKey: 'client-key', maxRetries: 0 });

const QUESTION = 'What is the weather in Paris, and what time is it there?';
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } } } as const;

const CALLS: Readonly<Record<Api, (gate: { readonly url: string }, isStream: boolean) => Promise<Seen>>> = {
  async completions(gate, isStream) {
    const ask = {
      model: 'acme',
      messages: [{ role: 'user' as const, content: QUESTION }],
      tools: [{ type: 'function' as const, function: { name: 'get_weather', parameters: SCHEMA } }],
    };
    const { completions } = openAi(gate).chat;
    // The client joins the pieces of members that it knows; `reasoning_content` is none of them.
    let reasoning = '';
    const stream = (): Promise<OpenAI.ChatCompletion> =>
      completions
        .stream({ ...ask, stream_options: { include_usage: true } })
        .on('chunk', ({ choices: [choice] }) => {
          reasoning += (choice?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? '';
        })
        .finalChatCompletion();
    const { choices, usage } = isStream ? await stream() : await completions.create(ask);
    const { message, finish_reason: finish } = choices[0] as (typeof choices)[0];
    const calls = (message.tool_calls ?? []).map((call) => {
      const { name, arguments: args } = (call as { function: { name: string; arguments: string } }).function;
      return [call.id, name, JSON.parse(args)];
    });
    const input = usage?.prompt_tokens_details as { cached_tokens?: number; cache_write_tokens?: number };
    return {
      text: message.content ?? '',
      reasoning: isStream ? reasoning : String((message as { reasoning_content?: string }).reasoning_content),
      calls: calls as Seen['calls'],
      stop: finish === 'tool_calls' ? 'tools' : finish,
      usage: {
        input: usage?.prompt_tokens ?? -1,
        cached: input.cached_tokens ?? -1,
        written: input.cache_write_tokens ?? -1,
        output: usage?.completion_tokens ?? -1,
        reasoning: usage?.completion_tokens_details?.reasoning_tokens ?? -1,
      },
    };
  },
  async messages(gate, isStream) {
    const ask = {
      model: 'acme',
      max_tokens: 1000,
      messages: [{ role: 'user' as const, content: QUESTION }],
      tools: [{ name: 'get_weather', input_schema: SCHEMA }],
    };
    const { messages } = claude(gate);
    const {
      content,
      stop_reason: stop,
      usage,
    } = isStream ? await messages.stream(ask).finalMessage() : await messages.create(ask);
    const cached = usage.cache_read_input_tokens ?? 0;
    const written = usage.cache_creation_input_tokens ?? 0;
    return {
      text: content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(''),
      reasoning: content.flatMap((block) => (block.type === 'thinking' ? [block.thinking] : [])).join(''),
      calls: content.flatMap((block) =>
        block.type === 'tool_use' ? [[block.id, block.name, block.input]] : [],
      ) as Seen['calls'],
      stop: stop === 'tool_use' ? 'tools' : String(stop),
      usage: {
        input: usage.input_tokens + cached + written,
        cached,
        written,
        output: usage.output_tokens,
        reasoning: usage.output_tokens_details?.thinking_tokens ?? -1,
      },
    };
  },
  async responses(gate, isStream) {
    const ask = {
      model: 'acme',
      input: QUESTION,
      tools: [{ type: 'function' as const, name: 'get_weather', parameters: SCHEMA, strict: false }],
    };
    const { responses } = openAi(gate);
    const {
      output,
      output_text: text,
      status,
      usage,
    } = isStream ? await responses.stream(ask).finalResponse() : await responses.create(ask);
    const calls = output.flatMap((item) =>
      item.type === 'function_call' ? [[item.call_id, item.name, JSON.parse(item.arguments)]] : [],
    );
    return {
      text,
      reasoning: output
        .flatMap((item) => (item.type === 'reasoning' ? [...item.summary, ...(item.content ?? [])] : []))
        .map((part) => part.text)
        .join(''),
      calls: calls as Seen['calls'],
      stop: status === 'completed' && calls.length > 0 ? 'tools' : String(status),
      usage: {
        input: usage?.input_tokens ?? -1,
        cached: usage?.input_tokens_details.cached_tokens ?? -1,
        written: usage?.input_tokens_details.cache_write_tokens ?? -1,
        output: usage?.output_tokens ?? -1,
        reasoning: usage?.output_tokens_details.reasoning_tokens ?? -1,
      },
    };
  },
};

/** Asks with the official client of an API. */
export function askAs(api: Api, gate: { readonly url: string }, isStream: boolean): Promise<Seen> {
  return CALLS[api](gate, isStream);
}
