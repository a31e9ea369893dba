import { createHash } from 'node:crypto';
import type { Part, Turn } from '../../chat/chat.ts';
import { partsOfId } from '../../chat/tool-call-id.ts';

/**
 * A conversation for a model. Mistral's API, and chat templates of its models, refuse ids of tool calls that are not nine letters
 * and digits, such as those of other models that the conversation has seen (anomalyco/opencode#1680, ml-explore/mlx-lm#1375).
 */
export function withAcceptedCallIds(turns: readonly Turn[], model: string): readonly Turn[] {
  if (!OF_MISTRAL.test(model)) return turns;
  return turns.map((turn) => ({ ...turn, parts: turn.parts.map(withAcceptedCallId) }));
}

const OF_MISTRAL = /mistral|mixtral|ministral|magistral|devstral|codestral|pixtral|voxtral/i;

function withAcceptedCallId(part: Part): Part {
  if (part.type === 'toolCall') return { ...part, id: acceptedId(part.id) };
  return part.type === 'toolResult' ? { ...part, callId: acceptedId(part.callId) } : part;
}

function acceptedId(id: string): string {
  const { id: plain } = partsOfId(id);
  return /^[A-Za-z0-9]{9}$/.test(plain)
    ? plain
    : createHash('sha256').update(plain).digest('hex').slice(0, 9);
}
