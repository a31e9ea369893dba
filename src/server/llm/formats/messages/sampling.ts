import type { ChatRequest } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { hasSampling } from './claude-models.ts';

type Sampling = Pick<ChatRequest, 'temperature' | 'topP' | 'topK'>;

/** The smallest `top_p` beside thinking. */
const MIN_TOP_P = 0.95;

/**
 * The sampling parameters that a Claude model takes (Anthropic: "Extended thinking", "Migration guide"). A model that has
 * none gets none. While it thinks, it has no `temperature` and no `top_k`, and a client that wants reasoning gets it. Since
 * Claude 4.1, `temperature` and `top_p` exclude each other, and many clients send the default of one, 1, beside the other.
 */
export function writeSampling(request: ChatRequest, thinking: Json | undefined): Sampling {
  const { model, temperature, topP, topK } = request;
  if (!model.includes('claude')) return defined({ temperature, topP, topK });
  if (!hasSampling(model)) return {};
  const thinks = thinking !== undefined && thinking['type'] !== 'disabled';
  if (thinks) return topP !== undefined && topP >= MIN_TOP_P ? { topP } : {};
  if (temperature === undefined || topP === undefined) return defined({ temperature, topP, topK });
  if (topP === 1) return defined({ temperature, topK });
  return defined({ temperature: temperature === 1 ? undefined : temperature, topP, topK });
}
