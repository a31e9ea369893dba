import { randomUUID } from 'node:crypto';
import { elementsOf, parseJson } from '../../../../core/foreign.ts';
import type { Reply } from '../../../kernel/request/request-context.ts';
import { membersOf } from '../../json-members.ts';
import { json, messagesOf, namedStream } from './reply.ts';
import { argumentsOf, type Body, deltasOf, echoWords, flatText, textOf } from './words.ts';

/** Anthropic's Messages API. */
export function message(body: Body, streaming: boolean): Reply {
  const { prompt, isToolResult } = promptOf(body);
  const tool = isToolResult ? undefined : forcedTool(body);
  const output = echoWords(tool === undefined ? prompt : argumentsOf(prompt), body['max_tokens']);
  const stop = tool === undefined ? (output.isCut ? 'max_tokens' : 'end_turn') : 'tool_use';
  const id = `toolu_${randomUUID()}`;
  const block =
    tool === undefined
      ? { type: 'text', text: output.words.join(' ') }
      : { type: 'tool_use', id, name: tool, input: parseJson(argumentsOf(prompt)) };
  const whole = {
    id: `msg_${randomUUID()}`,
    type: 'message',
    role: 'assistant',
    model: textOf(body['model']),
    content: [block],
    stop_reason: stop,
    stop_sequence: null,
    usage: usageOf(output.promptWords, output.words.length),
  };
  if (!streaming) return json(whole);
  const deltas =
    tool === undefined
      ? deltasOf(output).map((text) => ({ type: 'text_delta', text }))
      : [{ type: 'input_json_delta', partial_json: argumentsOf(prompt) }];
  const begun = tool === undefined ? { ...block, text: '' } : { ...block, input: {} };
  const start = { ...whole, content: [], stop_reason: null, usage: usageOf(output.promptWords, 0) };
  return namedStream([
    { type: 'message_start', message: start },
    { type: 'content_block_start', index: 0, content_block: begun },
    { type: 'ping' },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage: whole.usage },
    { type: 'message_stop' },
  ]);
}

/** The text of the last message, or the result of its tool call. */
export function promptOf(body: Body): { prompt: string; isToolResult: boolean } {
  const { content = '' } = messagesOf(body).at(-1) ?? {};
  const parts = elementsOf(content).map((part) => membersOf(part) ?? {});
  const results = parts.filter(({ type }) => type === 'tool_result');
  const isToolResult = results.length > 0;
  return { prompt: flatText(isToolResult ? results.map(({ content: of }) => of) : content), isToolResult };
}

/** The name of the tool that `tool_choice` requires; with `any`, the first one. */
function forcedTool({ tools, tool_choice: choice }: Body): string | undefined {
  const { type, name } = membersOf(choice) ?? {};
  const chosen = type === 'any' && Array.isArray(tools) ? membersOf(tools[0])?.['name'] : name;
  return typeof chosen === 'string' ? chosen : undefined;
}

const usageOf = (input: number, output: number): object => ({
  input_tokens: input,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: output,
});
