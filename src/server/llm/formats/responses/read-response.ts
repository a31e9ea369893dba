import type { Answer, AnswerPart, ChatResponse, StopReason } from '../../chat/chat.ts';
import { type Json, Untranslatable } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { countOf, requiredName } from '../../chat/event-data.ts';
import { type MemberReader, readKnownMembers } from '../../chat/member-reader.ts';
import { argumentsText } from '../../chat/tool-arguments.ts';
import { parseUsage } from '../../usage.ts';

/** Reads a complete response. Throws `Untranslatable` if it is not one. */
export function readResponse(body: Json): ChatResponse {
  return readKnownMembers(body, '', (members) =>
    defined({
      id: members.text('id') ?? '',
      model: members.text('model') ?? '',
      created: countOf(members.value('created_at')),
      answers: [readAnswer(members)],
      usage: parseUsage(members.value('usage')),
      serviceTier: members.text('service_tier'),
    }),
  );
}

function readAnswer(members: MemberReader): Answer {
  members.required('output', members.value('output'));
  const missingId = `call_${members.text('id') ?? ''}`;
  const parts = members.objects('output', (item, index) => readItem(item, `${missingId}_${index}`)).flat();
  const reason = members.object('incomplete_details', (details) => details.text('reason'));
  return { parts, stop: stopReason(members.text('status'), reason, parts) };
}

function readItem(item: MemberReader, missingId: string): AnswerPart[] {
  const type = item.requiredText('type');
  switch (type) {
    case 'message':
      return item.objects('content', readContent);
    case 'function_call':
    case 'custom_tool_call':
      return [readCall(item, type === 'custom_tool_call', missingId)];
    case 'reasoning':
      return [readReasoning(item)];
    default:
      // Tools that run at the provider are refused in requests, so that it has nothing else to answer.
      throw new Untranslatable(`${item.pathOf('type')}: ${JSON.stringify(type.slice(0, 64))}`);
  }
}

function readContent(part: MemberReader): AnswerPart {
  const refusal = part.text('refusal');
  return (refusal ?? '') === ''
    ? { type: 'text', text: part.text('text') ?? '' }
    : { type: 'refusal', text: refusal ?? '' };
}

function readCall(item: MemberReader, isCustom: boolean, missingId: string): AnswerPart {
  return {
    type: 'toolCall',
    id: item.text('call_id') || item.text('id') || missingId,
    name: requiredName(item.value('name'), item.pathOf('name')),
    arguments: argumentsText(item.value(isCustom ? 'input' : 'arguments')) || (isCustom ? '' : '{}'),
    ...(isCustom ? { isCustom } : {}),
  };
}

/** Open models return the reasoning itself in `content`, OpenAI's only a summary. */
function readReasoning(item: MemberReader): AnswerPart {
  const content = item.objects('content', (part) => part.text('text'));
  const summary = item.objects('summary', (part) => part.text('text'));
  return defined({
    type: 'reasoning' as const,
    text: (content.length > 0 ? content : summary).join('\n\n'),
    isSummary: content.length > 0 ? undefined : true,
    encrypted: item.text('encrypted_content'),
    id: item.text('id'),
    origin: 'responses' as const,
  });
}

/** The reason for the end, from `status` and `incomplete_details.reason`. */
export function stopReason(
  status: string | undefined,
  reason: string | undefined,
  parts: readonly Pick<AnswerPart, 'type'>[],
): StopReason {
  if (status === 'incomplete') return reason === 'content_filter' ? 'filter' : 'length';
  if (parts.some(({ type }) => type === 'toolCall')) return 'toolCalls';
  return parts.some(({ type }) => type === 'refusal') ? 'refusal' : 'stop';
}
