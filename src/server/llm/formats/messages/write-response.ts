import type {
  Answer,
  AnswerPart,
  ChatRequest,
  ChatResponse,
  ChatUsage,
  ReasoningPart,
  StopReason,
} from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { packReasoning } from '../../chat/reasoning-state.ts';
import { callArguments } from '../../chat/tool-arguments.ts';
import { joinTexts } from '../../chat/turns.ts';

/** Writes a complete response. Requests of this format have one answer. */
export function writeResponse(
  { id, model, answers, usage, serviceTier }: ChatResponse,
  _request: ChatRequest,
): Json {
  const answer = answers[0] ?? { parts: [], stop: 'stop' };
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: answer.parts.flatMap(writePart),
    stop_reason: writeStopReason(answer.stop),
    stop_sequence: answer.stopSequence ?? null,
    ...stopDetails(answer),
    usage: { ...writeUsage(usage ?? { input: 0, output: 0 }), ...writeServiceTier(serviceTier) },
  };
}

function writePart(part: AnswerPart): Json[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text }];
    case 'reasoning':
      return [writeReasoning(part)];
    case 'toolCall':
      return [{ type: 'tool_use', id: part.id, name: part.name, input: callArguments(part) }];
  }
}

/** A thinking block. Its signature is what another provider wants back; '' if that is nothing. */
function writeReasoning(part: ReasoningPart): Json {
  const { origin, text, signature, encrypted } = part;
  if (origin !== 'messages')
    return { type: 'thinking', thinking: text, signature: packReasoning(part) ?? '' };
  return encrypted === undefined
    ? { type: 'thinking', thinking: text, signature: signature ?? '' }
    : { type: 'redacted_thinking', data: encrypted };
}

export function writeStopReason(stop: StopReason): string {
  return STOP_REASONS[stop];
}

const STOP_REASONS: Readonly<Record<StopReason, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  toolCalls: 'tool_use',
  stopSequence: 'stop_sequence',
  pause: 'pause_turn',
  refusal: 'refusal',
  filter: 'refusal',
};

/** `stop_details`. The text of a refusal is also in the content, where all clients show it. */
export function stopDetails({ stop, parts }: Answer): Json {
  if (stop !== 'refusal' && stop !== 'filter') return {};
  const texts = parts.flatMap((part) => (part.type === 'refusal' ? [part.text] : []));
  const explanation = texts.length === 0 ? null : joinTexts(texts);
  return { stop_details: { type: 'refusal', category: null, explanation } };
}

export function writeUsage({ input, output, cachedInput = 0, cacheWrite = 0, reasoning }: ChatUsage): Json {
  return defined({
    input_tokens: Math.max(0, input - cachedInput - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cachedInput,
    output_tokens: output,
    output_tokens_details: reasoning === undefined ? undefined : { thinking_tokens: reasoning },
  });
}

function writeServiceTier(tier: string | undefined): Json {
  return tier === 'priority' || tier === 'default'
    ? { service_tier: tier === 'default' ? 'standard' : tier }
    : {};
}
