import type { StopReason } from '../../chat/chat.ts';
import { Untranslatable } from '../../chat/chat-format.ts';

/** Reasons that concern the content of the answer or of the prompt (Gemini API, "FinishReason"). */
const FILTERED = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'MODEL_ARMOR',
]);

/**
 * Throws `Untranslatable` if the model failed, such as `MALFORMED_FUNCTION_CALL`: other formats have no stop reason for
 * that, and an empty answer that ends with `stop` would look like the end of the work.
 */
export function readStop(reason: unknown, hasToolCalls: boolean): StopReason {
  if (reason === 'MAX_TOKENS') return 'length';
  if (typeof reason === 'string' && FILTERED.has(reason)) return 'filter';
  if (reason === 'STOP') return hasToolCalls ? 'toolCalls' : 'stop';
  throw new Untranslatable(
    `finishReason: ${JSON.stringify(reason)}`,
    'the model ended without a complete answer',
  );
}

export function writeStop(stop: StopReason): string {
  switch (stop) {
    case 'length':
      return 'MAX_TOKENS';
    case 'filter':
    case 'refusal':
      return 'SAFETY';
    case 'pause':
      return 'OTHER';
    case 'stop':
    case 'toolCalls':
    case 'stopSequence':
      return 'STOP';
  }
}
