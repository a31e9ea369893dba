import { membersOf } from '../../../../core/foreign.ts';
import type { Answer, AnswerPart, ChatResponse, StopReason } from '../../chat/chat.ts';
import { type Json, Untranslatable } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { isBlank, requiredName } from '../../chat/event-data.ts';
import { type MemberReader, readKnownMembers } from '../../chat/member-reader.ts';
import { readUsage } from './usage.ts';

/** Reads a complete response. Throws `Untranslatable` if it is not one. */
export function readResponse(body: Json): ChatResponse {
  return readKnownMembers(body, '', (members) => {
    const usage = members.value('usage');
    return defined({
      id: members.text('id') ?? '',
      model: members.text('model') ?? '',
      answers: [readAnswer(members)],
      usage: readUsage(usage),
      serviceTier: readServiceTier(usage),
    });
  });
}

function readAnswer(members: MemberReader): Answer {
  // Some servers have null for no content. Without either, it is not a message.
  if (members.value('type') !== 'message') members.required('content', members.value('content'));
  const missingId = `call_${members.text('id') ?? ''}`;
  const parts = members.objects('content', (block, index) => readBlock(block, `${missingId}_${index}`));
  const reason = members.text('stop_reason');
  const explanation = members.object('stop_details', (details) => details.text('explanation'));
  return defined({
    parts: [
      ...parts,
      ...(reason === 'refusal' && explanation !== undefined
        ? [{ type: 'refusal' as const, text: explanation }]
        : []),
    ],
    stop: stopReason(reason),
    stopSequence: members.text('stop_sequence'),
  });
}

function readBlock(block: MemberReader, missingId: string): AnswerPart {
  const type = block.requiredText('type');
  switch (type) {
    case 'text':
      return { type: 'text', text: block.text('text') ?? '' };
    case 'thinking':
      return defined({
        type: 'reasoning' as const,
        text: block.text('thinking') ?? '',
        signature: block.text('signature'),
        origin: 'messages' as const,
      });
    case 'redacted_thinking':
      return { type: 'reasoning', text: '', encrypted: block.requiredText('data'), origin: 'messages' };
    case 'tool_use':
      return {
        type: 'toolCall',
        id: block.text('id') || missingId,
        name: requiredName(block.value('name'), block.pathOf('name')),
        arguments: isBlank(block.value('input')) ? '{}' : JSON.stringify(block.json('input')),
      };
    default:
      // Tools that run at the provider are refused in requests, so that it has nothing else to answer.
      throw new Untranslatable(`${block.pathOf('type')}: ${JSON.stringify(type.slice(0, 64))}`);
  }
}

/** `stop_reason`, also of a `message_delta` event. */
export function stopReason(reason: string | undefined): StopReason {
  switch (reason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length';
    case 'tool_use':
      return 'toolCalls';
    case 'stop_sequence':
      return 'stopSequence';
    case 'pause_turn':
      return 'pause';
    case 'refusal':
      return 'refusal';
    default:
      return 'stop';
  }
}

/** The tier that served the call, as OpenAI calls it. */
function readServiceTier(usage: unknown): string | undefined {
  const tier = membersOf(usage)['service_tier'];
  return tier === 'standard' ? 'default' : typeof tier === 'string' ? tier : undefined;
}
