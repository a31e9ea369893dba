import { DONE } from './llm-provider.ts';

// Streams of all formats with one text each, cut into deltas, as the providers send them.

type Kind = 'content' | 'reasoning' | 'arguments';
export const KINDS: readonly Kind[] = ['content', 'reasoning', 'arguments'];

export interface Wire {
  readonly path: string;
  /** The request for a stream. */
  readonly request: object;
  /** The events of a stream whose text of one kind consists of these parts. */
  events(kind: Kind, parts: readonly string[]): string[];
  /** The text of that kind that a client assembles; every place that repeats it must agree. */
  text(kind: Kind, stream: string): string;
}

interface Event {
  // biome-ignore lint/suspicious/noExplicitAny: events of five APIs, read by tests only.
  readonly [name: string]: any;
}

/** The data of the events of a stream. */
export function eventsIn(stream: string): Event[] {
  return stream
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)) as Event);
}

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: { type: string }): string => `event: ${value.type}\n${data(value)}`;

const chat: Wire = {
  path: '/v1/chat/completions',
  request: { model: 'm', stream: true, messages: [{ role: 'user', content: 'Hi' }] },
  events(kind, parts) {
    const chunk = (delta: object, finish_reason: string | null = null): string =>
      data({
        id: 'c1',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [{ index: 0, delta, finish_reason }],
      });
    const start = { index: 0, id: 'call_1', type: 'function', function: { name: 'pay', arguments: '' } };
    const deltaOf = (text: string): object =>
      kind === 'content'
        ? { content: text }
        : kind === 'reasoning'
          ? { reasoning_content: text }
          : { tool_calls: [{ index: 0, function: { arguments: text } }] };
    return [
      chunk({ role: 'assistant', content: '' }),
      ...(kind === 'arguments' ? [chunk({ tool_calls: [start] })] : []),
      ...parts.map((text) => chunk(deltaOf(text))),
      chunk({}, kind === 'arguments' ? 'tool_calls' : 'stop'),
      DONE,
    ];
  },
  text: (kind, stream) =>
    eventsIn(stream)
      .map(({ choices }) => {
        const delta = choices[0].delta;
        if (kind === 'content') return delta.content ?? '';
        if (kind === 'reasoning') return delta.reasoning_content ?? '';
        return delta.tool_calls?.[0].function.arguments ?? '';
      })
      .join(''),
};

const completions: Wire = {
  path: '/v1/completions',
  request: { model: 'm', stream: true, prompt: 'Hi' },
  events: (_, parts) => [
    ...[...parts, ''].map((text, index) =>
      data({
        id: 'c1',
        object: 'text_completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, text, logprobs: null, finish_reason: index === parts.length ? 'stop' : null }],
      }),
    ),
    DONE,
  ],
  text: (_, stream) =>
    eventsIn(stream)
      .map(({ choices }) => choices[0].text)
      .join(''),
};

const messages: Wire = {
  path: '/v1/messages',
  request: { model: 'm', max_tokens: 9, stream: true, messages: [{ role: 'user', content: 'Hi' }] },
  events(kind, parts) {
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: 'm1', type: 'message', role: 'assistant', model: 'm', content: [], usage };
    const [block, deltaOf] = {
      content: [{ type: 'text', text: '' }, (text: string) => ({ type: 'text_delta', text })],
      reasoning: [
        { type: 'thinking', thinking: '', signature: '' },
        (thinking: string) => ({ type: 'thinking_delta', thinking }),
      ],
      arguments: [
        { type: 'tool_use', id: 't1', name: 'pay', input: {} },
        (partial_json: string) => ({ type: 'input_json_delta', partial_json }),
      ],
    }[kind] as [object, (text: string) => object];
    const signature = { type: 'signature_delta', signature: 'c2lnbmVk' };
    return [
      named({
        type: 'message_start',
        message: { ...message, stop_reason: null, stop_sequence: null },
      } as never),
      named({ type: 'content_block_start', index: 0, content_block: block } as never),
      named({ type: 'ping' }),
      ...parts.map((text) => named({ type: 'content_block_delta', index: 0, delta: deltaOf(text) } as never)),
      ...(kind === 'reasoning'
        ? [named({ type: 'content_block_delta', index: 0, delta: signature } as never)]
        : []),
      named({ type: 'content_block_stop', index: 0 } as never),
      named({
        type: 'message_delta',
        delta: { stop_reason: kind === 'arguments' ? 'tool_use' : 'end_turn', stop_sequence: null },
        usage: { output_tokens: 7 },
      } as never),
      named({ type: 'message_stop' }),
    ];
  },
  text: (_, stream) =>
    eventsIn(stream)
      .map(({ delta }) => delta?.text ?? delta?.thinking ?? delta?.partial_json ?? '')
      .join(''),
};

const responses: Wire = {
  path: '/v1/responses',
  request: { model: 'm', stream: true, input: 'Hi' },
  events(kind, parts) {
    const text = parts.join('');
    const part = {
      content: { type: 'output_text', text, annotations: [], logprobs: [] },
      reasoning: { type: 'summary_text', text },
      arguments: undefined,
    }[kind];
    const empty = part && { ...part, text: '' };
    const item = (status: string, full: boolean): object =>
      ({
        content: { type: 'message', id: 'i1', role: 'assistant', status, content: full ? [part] : [] },
        reasoning: { type: 'reasoning', id: 'i1', summary: full ? [part] : [] },
        arguments: {
          type: 'function_call',
          id: 'i1',
          call_id: 'call_1',
          name: 'pay',
          arguments: full ? text : '',
          status,
        },
      })[kind];
    const base = { id: 'r1', object: 'response', created_at: 1, model: 'm', instructions: null, tools: [] };
    const where = { item_id: 'i1', output_index: 0 };
    const at = kind === 'reasoning' ? { ...where, summary_index: 0 } : { ...where, content_index: 0 };
    const [name, added, member] = {
      content: ['output_text', 'content_part', 'text'],
      reasoning: ['reasoning_summary_text', 'reasoning_summary_part', 'text'],
      arguments: ['function_call_arguments', undefined, 'arguments'],
    }[kind] as [string, string | undefined, string];
    const of = kind === 'arguments' ? where : at;
    const done = { ...base, status: 'completed', output: [item('completed', true)] };
    const usage = { input_tokens: 1, output_tokens: 7, total_tokens: 8 };
    return [
      { type: 'response.created', response: { ...base, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: item('in_progress', false) },
      ...(added ? [{ type: `response.${added}.added`, ...at, part: empty }] : []),
      ...parts.map((delta) => ({ type: `response.${name}.delta`, ...of, delta, obfuscation: 'x7' })),
      { type: `response.${name}.done`, ...of, [member]: text },
      ...(added ? [{ type: `response.${added}.done`, ...at, part }] : []),
      { type: 'response.output_item.done', output_index: 0, item: item('completed', true) },
      { type: 'response.completed', response: { ...done, usage } },
    ].map(({ type, ...rest }, index) => named({ type, sequence_number: index, ...rest } as never));
  },
  text(kind, stream) {
    const events = eventsIn(stream);
    const text = events.map(({ delta }) => (typeof delta === 'string' ? delta : '')).join('');
    const read = (item: Event): string =>
      kind === 'content'
        ? item['content'][0].text
        : kind === 'reasoning'
          ? item['summary'][0].text
          : item['arguments'];
    const repeated = events.flatMap((event): string[] => {
      const { type, item, part, response } = event;
      if (type === 'response.output_item.done') return [read(item)];
      if (type === 'response.completed') return [read(response.output[0])];
      if (part !== undefined && type.endsWith('part.done')) return [part.text];
      return /(?:text|arguments)\.done$/.test(type) ? [event['text'] ?? event['arguments']] : [];
    });
    if (repeated.length < 3 || repeated.some((other) => other !== text))
      throw new Error(`repeated texts differ from ${JSON.stringify(text)}: ${JSON.stringify(repeated)}`);
    const numbers = events.map(({ sequence_number: number }) => number);
    if (numbers.some((number, index) => number !== index)) throw new Error(`numbers: ${numbers.join()}`);
    return text;
  },
};

/** Arguments are a string of a function call that is sent in parts, as Vertex AI does it. */
const generateContent: Wire = {
  path: '/v1beta/models/m:streamGenerateContent?alt=sse',
  request: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
  events(kind, parts) {
    const event = (part: object, more: object = {}): string =>
      data({
        candidates: [{ content: { role: 'model', parts: [part] }, index: 0, ...more }],
        usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 7, totalTokenCount: 8 },
        modelVersion: 'm',
      });
    const partOf = (text: string): object =>
      kind === 'content'
        ? { text }
        : kind === 'reasoning'
          ? { text, thought: true }
          : {
              functionCall: {
                partialArgs: [{ jsonPath: '$.note', stringValue: text, willContinue: true }],
                willContinue: true,
              },
            };
    const isCall = kind === 'arguments';
    return [
      ...(isCall ? [event({ functionCall: { name: 'pay', willContinue: true } })] : []),
      ...parts.map((text) => event(partOf(text))),
      event(isCall ? { functionCall: {} } : { text: '' }, { finishReason: 'STOP' }),
    ];
  },
  text: (_, stream) =>
    eventsIn(stream)
      .map(({ candidates }) => {
        const [part] = candidates[0].content.parts;
        return part.text ?? part.functionCall.partialArgs?.[0].stringValue ?? '';
      })
      .join(''),
};

/** Every format whose streams guardrails can read. Text completions have content only. */
export const WIRES = { chat, completions, messages, responses, generateContent } satisfies Record<
  string,
  Wire
>;
export type WireName = keyof typeof WIRES;
