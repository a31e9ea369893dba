import { randomUUID } from 'node:crypto';
import type { Reply } from '../../../kernel/request/request-context.ts';
import { membersOf } from '../../json-members.ts';
import { dataStream, json, messagesOf, now } from './reply.ts';
import { argumentsOf, type Body, deltasOf, type EchoOutput, echoWords, flatText, textOf } from './words.ts';

export function chatCompletion(body: Body, streaming: boolean): Reply {
  const last = messagesOf(body).at(-1) ?? {};
  const prompt = contentOf(last['content']);
  const tool = last['role'] === 'tool' ? undefined : forcedTool(body);
  const limit = body['max_completion_tokens'] ?? body['max_tokens'];
  const output = echoWords(tool === undefined ? prompt : argumentsOf(prompt), limit);
  const head = { id: `chatcmpl-${randomUUID()}`, created: now(), model: textOf(body['model']) };
  const finish = tool === undefined ? (output.isCut ? 'length' : 'stop') : 'tool_calls';
  const call = {
    id: `call_${randomUUID()}`,
    type: 'function',
    function: { name: tool, arguments: argumentsOf(prompt) },
  };
  if (!streaming) {
    const message =
      tool === undefined
        ? { role: 'assistant', content: output.words.join(' '), refusal: null }
        : { role: 'assistant', content: null, refusal: null, tool_calls: [call] };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: finish }];
    return json({ ...head, object: 'chat.completion', choices, usage: usageOf([output]) });
  }
  const deltas =
    tool === undefined
      ? deltasOf(output).map((content) => ({ content }))
      : [{ content: null, tool_calls: [{ index: 0, ...call }] }];
  const chunk = (choices: readonly object[], more: object = {}): object => ({
    ...head,
    object: 'chat.completion.chunk',
    choices,
    ...more,
  });
  return dataStream([
    ...deltas.map((delta, at) =>
      chunk([{ index: 0, delta: at === 0 ? { role: 'assistant', ...delta } : delta, finish_reason: null }]),
    ),
    chunk([{ index: 0, delta: {}, finish_reason: finish }]),
    ...(wantsUsage(body) ? [chunk([], { usage: usageOf([output]) })] : []),
  ]);
}

/** The text of a message; content without text as JSON. */
function contentOf(content: unknown): string {
  return flatText(content) || textOf(content ?? '');
}

/** The name of the tool that `tool_choice` requires; with `required`, the first one. */
function forcedTool({ tools, tool_choice: choice }: Body): string | undefined {
  const nameOf = (tool: unknown): string | undefined => {
    const name = membersOf(membersOf(tool)?.['function'])?.['name'];
    return typeof name === 'string' ? name : undefined;
  };
  if (choice === 'required') return Array.isArray(tools) ? nameOf(tools[0]) : undefined;
  return nameOf(choice);
}

export function usageOf(outputs: readonly EchoOutput[]): object {
  const prompt = outputs.reduce((sum, { promptWords }) => sum + promptWords, 0);
  const completion = outputs.reduce((sum, { words }) => sum + words.length, 0);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** Whether the client asked for the token counts of a stream. */
export const wantsUsage = (body: Body): boolean =>
  membersOf(body['stream_options'])?.['include_usage'] === true;
