import { elementsOf } from '../../../../core/foreign.ts';
import { type Completion, callsIn, type StreamedOutput, textOf } from '../../chat/conversation.ts';
import { isBlank } from '../../chat/event-data.ts';
import { type Members, membersOf } from '../../json-members.ts';
import type { TextPath } from '../../texts.ts';
import type { WireFormat } from '../format.ts';
import { openAiApi } from '../openai-api.ts';
import { chatEvents } from './event-texts.ts';

/** What chat and text completions have in common: answers are choices. */
export const choicesApi: Pick<
  WireFormat,
  | 'report'
  | 'outputFields'
  | 'eventTexts'
  | 'usageOption'
  | 'isUsageOnly'
  | 'withoutUsage'
  | 'completion'
  | 'streamedOutput'
  | 'endMarks'
  | 'shape'
> = {
  report(value) {
    const usage = choiceUsage(value);
    return usage === undefined ? openAiApi.report(value) : { ...value, usage };
  },
  outputFields: [{ name: 'choices', areAlternatives: true, contentPath }],
  eventTexts: chatEvents,
  usageOption: { field: 'stream_options', value: { include_usage: true } },
  isUsageOnly: ({ choices }) => Array.isArray(choices) && choices.length === 0,
  withoutUsage,
  completion,
  streamedOutput: ({ choices }) =>
    Array.isArray(choices) ? choices.map((choice) => pieceOf(membersOf(choice) ?? {})) : [],
  endMarks: [Buffer.from('data: [DONE]')],
  shape: {
    api: 'the Chat Completions API',
    has: ({ choices, object }) =>
      Array.isArray(choices) || (typeof object === 'string' && object.startsWith('chat.completion')),
    // xAI answers a request for a deferred completion with its id.
    isAnswer: ({ choices, request_id: deferred }) => Array.isArray(choices) || typeof deferred === 'string',
    // The first chunk of Azure and the last one, with token counts, have no choices.
    isAnswerEvent: ({ choices }) => elementsOf(choices).length > 0,
    isStrict: true,
    // Some servers send no `[DONE]`, others no reason (can1357/oh-my-pi#9433). An empty one is a placeholder.
    isLast: ({ choices }) =>
      elementsOf(choices).some((choice) => !isBlank(membersOf(choice)?.['finish_reason'])),
  },
};

/** As servers write the member, behind another one. In a text, the quotes would be escaped. */
const NO_USAGE = [',"usage":null', ', "usage": null'].map((text) => Buffer.from(text));

/** OpenAI's reference has `usage` of chunks only for requests with `include_usage`, and some clients trip over null (BerriAI/litellm#28735). */
function withoutUsage(frame: Buffer): Buffer {
  for (const member of NO_USAGE) {
    const at = frame.lastIndexOf(member);
    if (at !== -1) return Buffer.concat([frame.subarray(0, at), frame.subarray(at + member.length)]);
  }
  return frame;
}

/** Moonshot reports the token counts of a stream in its last choice. */
export function choiceUsage({ usage, choices }: Members): unknown {
  if (membersOf(usage) !== undefined) return undefined;
  const usages = elementsOf(choices).map((choice) => membersOf(choice)?.['usage']);
  return usages.find((each) => membersOf(each) !== undefined);
}

function contentPath({ text, message }: Members): TextPath {
  if (typeof text === 'string') return ['text'];
  const { content, refusal } = membersOf(message) ?? {};
  // A model that refuses has no other content.
  const isRefusal = (content ?? '') === '' && typeof refusal === 'string' && refusal !== '';
  return ['message', isRefusal ? 'refusal' : 'content'];
}

function completion({ choices }: Members): Completion | undefined {
  if (!Array.isArray(choices)) return undefined;
  const messages = choices.map((choice) => membersOf(membersOf(choice)?.['message'] ?? choice));
  return {
    texts: messages.map(textOf),
    toolCalls: messages.flatMap((message) => callsIn(message?.['tool_calls'])),
  };
}

function pieceOf(choice: Members): StreamedOutput[number] {
  const index = typeof choice['index'] === 'number' ? choice['index'] : 0;
  const delta = membersOf(choice['delta']) ?? {};
  const calls = delta['tool_calls'];
  return {
    index,
    text: delta['content'] ?? choice['text'],
    calls: elementsOf(calls).map((call) => {
      const { index: at, id, function: named } = membersOf(call) ?? {};
      const { name, arguments: written } = membersOf(named) ?? {};
      return { key: `${index} ${String(at)}`, id, name, written };
    }),
  };
}
