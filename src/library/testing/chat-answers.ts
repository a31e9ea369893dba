import { randomUUID } from 'node:crypto';

/** An answer of a model. */
export interface StubReply {
  readonly text?: string;
  readonly toolCalls?: readonly {
    readonly name: string;
    readonly arguments: Readonly<Record<string, unknown>>;
  }[];
  /** Tokens that it reports. Default: a token for each four characters of the answer, and ten of input. */
  readonly usage?: { readonly input: number; readonly output: number };
}

/** A chat completion of the API of OpenAI. */
export function chatCompletion(model: string, reply: StubReply): object {
  const message = { role: 'assistant', content: reply.text ?? null, ...toolCallsOf(reply) };
  return {
    ...headOf(model),
    object: 'chat.completion',
    choices: [{ index: 0, message, finish_reason: reasonOf(reply) }],
    usage: usageOf(reply),
  };
}

/** The same as server-sent events: the text word by word. */
export function chatChunks(model: string, reply: StubReply): string[] {
  const head = { ...headOf(model), object: 'chat.completion.chunk' };
  const event = (delta: object, finish: string | null = null): string =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const words = (reply.text ?? '').split(/(?<=\S)(?=\s)/).filter((word) => word !== '');
  const { tool_calls: calls = [] } = toolCallsOf(reply);
  return [
    event({ role: 'assistant', content: '' }),
    ...words.map((content) => event({ content })),
    ...calls.map((call, index) => event({ tool_calls: [{ index, ...call }] })),
    event({}, reasonOf(reply)),
    `data: ${JSON.stringify({ ...head, choices: [], usage: usageOf(reply) })}\n\n`,
    'data: [DONE]\n\n',
  ];
}

const headOf = (model: string): object => ({
  id: `chatcmpl-${randomUUID()}`,
  created: Math.floor(Date.now() / 1000),
  model,
});

const reasonOf = ({ toolCalls = [] }: StubReply): string => (toolCalls.length > 0 ? 'tool_calls' : 'stop');

function toolCallsOf({ toolCalls = [] }: StubReply): { readonly tool_calls?: readonly object[] } {
  if (toolCalls.length === 0) return {};
  return {
    tool_calls: toolCalls.map(({ name, arguments: args }) => ({
      id: `call_${randomUUID()}`,
      type: 'function',
      function: { name, arguments: JSON.stringify(args) },
    })),
  };
}

function usageOf({ text = '', toolCalls = [], usage }: StubReply): object {
  const { input, output } = usage ?? {
    input: 10,
    output: Math.ceil((text + JSON.stringify(toolCalls)).length / 4),
  };
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}
