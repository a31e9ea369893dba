import { randomUUID } from 'node:crypto';
import type { Reply } from '../../../kernel/request/request-context.ts';
import { membersOf } from '../../json-members.ts';
import { type Event, json, namedStream, now, required } from './reply.ts';
import { argumentsOf, type Body, deltasOf, type EchoOutput, echoWords, flatText, textOf } from './words.ts';

/** OpenAI's Responses API. Nothing is stored, so `previous_response_id` has no effect. */
export function response(body: Body, streaming: boolean): Reply {
  const { prompt, isToolResult } = promptOf(required(body, 'input'));
  const tool = isToolResult ? undefined : forcedTool(body);
  const output = echoWords(tool === undefined ? prompt : argumentsOf(prompt), body['max_output_tokens']);
  const item = tool === undefined ? messageItem(output) : callItem(tool, argumentsOf(prompt));
  const isCut = tool === undefined && output.isCut;
  const begun = responseOf(body);
  const ended = {
    ...begun,
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    output: [item],
    usage: usageOf(output),
  };
  if (!streaming) return json(ended);
  const started = { ...begun, status: 'in_progress', output: [], usage: null };
  const events = [
    { type: 'response.created', response: started },
    { type: 'response.in_progress', response: started },
    ...(tool === undefined ? messageEvents(item, output) : callEvents(item)),
    { type: isCut ? 'response.incomplete' : 'response.completed', response: ended },
  ];
  return namedStream(events.map((event, index) => ({ ...event, sequence_number: index })));
}

function responseOf(body: Body): object {
  return {
    id: `resp_${randomUUID()}`,
    object: 'response',
    created_at: now(),
    error: null,
    instructions: body['instructions'] ?? null,
    max_output_tokens: body['max_output_tokens'] ?? null,
    metadata: body['metadata'] ?? {},
    model: textOf(body['model']),
    parallel_tool_calls: body['parallel_tool_calls'] ?? true,
    previous_response_id: null,
    store: false,
    temperature: body['temperature'] ?? 1,
    text: body['text'] ?? { format: { type: 'text' } },
    tool_choice: body['tool_choice'] ?? 'auto',
    tools: body['tools'] ?? [],
    top_p: body['top_p'] ?? 1,
  };
}

type Item = Readonly<Record<string, unknown>> & { readonly id: string };

function messageItem({ words, isCut }: EchoOutput): Item {
  const content = [{ type: 'output_text', text: words.join(' '), annotations: [], logprobs: [] }];
  const status = isCut ? 'incomplete' : 'completed';
  return { id: `msg_${randomUUID()}`, type: 'message', status, role: 'assistant', content };
}

function callItem(name: string, written: string): Item {
  return {
    id: `fc_${randomUUID()}`,
    type: 'function_call',
    status: 'completed',
    call_id: `call_${randomUUID()}`,
    name,
    arguments: written,
  };
}

function messageEvents(item: Item, output: EchoOutput): Event[] {
  const part = membersOf(Array.isArray(item['content']) ? item['content'][0] : undefined) ?? {};
  const of = { item_id: item.id, output_index: 0, content_index: 0 };
  return [
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, status: 'in_progress', content: [] },
    },
    { type: 'response.content_part.added', ...of, part: { ...part, text: '' } },
    ...deltasOf(output).map((delta) => ({ type: 'response.output_text.delta', ...of, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...of, text: part['text'], logprobs: [] },
    { type: 'response.content_part.done', ...of, part },
    { type: 'response.output_item.done', output_index: 0, item },
  ];
}

function callEvents(item: Item): Event[] {
  const { arguments: written, name } = item;
  const of = { item_id: item.id, output_index: 0 };
  return [
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, status: 'in_progress', arguments: '' },
    },
    { type: 'response.function_call_arguments.delta', ...of, delta: written },
    { type: 'response.function_call_arguments.done', ...of, name, arguments: written },
    { type: 'response.output_item.done', output_index: 0, item },
  ];
}

/** The text of the last item, or the result of its function call. */
function promptOf(input: unknown): { prompt: string; isToolResult: boolean } {
  const last = membersOf(Array.isArray(input) ? input.at(-1) : undefined);
  if (last === undefined) return { prompt: textOf(input), isToolResult: false };
  const isToolResult = last['type'] === 'function_call_output';
  return { prompt: flatText(isToolResult ? last['output'] : last['content']), isToolResult };
}

/** The name of the function that `tool_choice` requires; with `required`, the first one. */
function forcedTool({ tools, tool_choice: choice }: Body): string | undefined {
  const tool: unknown = choice === 'required' && Array.isArray(tools) ? tools[0] : choice;
  const { type, name } = membersOf(tool) ?? {};
  return type === 'function' && typeof name === 'string' ? name : undefined;
}

function usageOf({ promptWords, words }: EchoOutput): object {
  return {
    input_tokens: promptWords,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: words.length,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptWords + words.length,
  };
}
