import type {
  Answer,
  AnswerPart,
  ChatResponse,
  ReasoningPart,
  StopReason,
  TextPart,
} from '../../chat/chat.ts';
import { type Json, Unfinished, Untranslatable } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { countOf, isEmpty } from '../../chat/event-data.ts';
import { type MemberReader, readKnownMembers } from '../../chat/member-reader.ts';
import { argumentsText } from '../../chat/tool-arguments.ts';
import { toolCallId } from '../../chat/tool-call-id.ts';
import { parseUsage } from '../../usage.ts';
import { signatureOf } from './extra-content.ts';

/** Reads a complete response. Throws `Untranslatable` if it is not one. */
export function readResponse(body: Json): ChatResponse {
  return readKnownMembers(body, '', (members) => {
    const id = members.text('id') ?? '';
    return defined({
      id,
      model: members.text('model') ?? '',
      created: countOf(members.value('created')),
      answers: members.requiredObjects('choices', (choice) => readChoice(choice, id)),
      usage: parseUsage(members.value('usage')),
      serviceTier: members.text('service_tier'),
    });
  });
}

function readChoice(choice: MemberReader, responseId: string): Answer {
  const parts = choice.requiredObject('message', (message) => readAnswer(message, responseId));
  const stop = stopReason(choice.text('finish_reason'), parts);
  // vLLM tells the stop sequence that ended the answer; a number is a token.
  const sequence = choice.value('stop_reason');
  return typeof sequence === 'string' && stop === 'stop'
    ? { parts, stop: 'stopSequence', stopSequence: sequence }
    : { parts, stop };
}

function readAnswer(message: MemberReader, responseId: string): AnswerPart[] {
  for (const member of UNTRANSLATABLE)
    if (!isEmpty(message.value(member))) throw new Untranslatable(message.pathOf(member));
  // `reasoning_content` is that of DeepSeek and vLLM, `reasoning` that of OpenRouter, Groq, Ollama and newer vLLM.
  const reasoning = message.text('reasoning_content') ?? message.text('reasoning') ?? '';
  const content = message.textOrObjects<TextPart | ReasoningPart>('content', textPart, readContent) ?? [];
  const refusal = message.text('refusal');
  return [
    ...(reasoning === ''
      ? []
      : [{ type: 'reasoning' as const, text: reasoning, origin: 'completions' as const }]),
    ...content.filter(({ text }) => text !== ''),
    ...(refusal === undefined ? [] : [{ type: 'refusal' as const, text: refusal }]),
    ...message.objects('tool_calls', (call, index) => readCall(call, missingCallId(responseId, index))),
  ];
}

/** Members of a message, and of a delta, that no other format has. Many servers always send them, but empty. */
export const UNTRANSLATABLE = ['audio', 'function_call', 'images'];

function textPart(text: string): TextPart {
  return { type: 'text', text };
}

/** An element of a list of texts and thoughts (Mistral). */
function readContent(part: MemberReader): TextPart | ReasoningPart {
  if (part.text('type') !== 'thinking') return textPart(part.text('text') ?? '');
  const text = part.objects('thinking', (thought) => thought.text('text')).join('');
  return { type: 'reasoning', text, origin: 'completions' };
}

/** Some servers leave the id of a call out. It has to be unique in a conversation. */
export function missingCallId(responseId: string, index: number): string {
  return `call_${responseId.replaceAll(/[^\w-]/g, '')}_${index}`;
}

function readCall(call: MemberReader, missingId: string): AnswerPart {
  const signature = signatureOf(call.value('extra_content'), call.value('provider_specific_fields'));
  const id = toolCallId(call.text('id') || missingId, signature);
  const custom = isEmpty(call.value('custom'))
    ? undefined
    : call.object('custom', (tool) => ({
        name: tool.requiredText('name'),
        arguments: tool.text('input') ?? '',
        isCustom: true,
      }));
  const called =
    custom ??
    call.requiredObject('function', (tool) => ({
      name: tool.requiredText('name'),
      arguments: readArguments(tool),
    }));
  return { type: 'toolCall', id, ...called };
}

/** Some servers have '' for an empty object. */
function readArguments(tool: MemberReader): string {
  const text = argumentsText(tool.value('arguments'));
  return text.trim() === '' ? '{}' : text;
}

/** `finish_reason`, which many servers give as `stop` whatever the answer contains. Throws `Unfinished` if the model failed. */
export function stopReason(
  reason: string | undefined,
  parts: readonly Pick<AnswerPart, 'type'>[],
): StopReason {
  switch (reason) {
    case 'length':
      return 'length';
    case 'content_filter':
      return 'filter';
    case 'error':
      throw new Unfinished('finish_reason: "error"');
    default:
      if (parts.some(({ type }) => type === 'toolCall')) return 'toolCalls';
      return parts.some(({ type }) => type === 'refusal') ? 'refusal' : 'stop';
  }
}
