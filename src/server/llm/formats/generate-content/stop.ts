import type { StopReason } from '../../chat/chat.ts';
import { Unfinished } from '../../chat/chat-format.ts';
import { textOf } from '../../chat/event-data.ts';

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
  'IMAGE_OTHER',
  'NO_IMAGE',
  'MODEL_ARMOR',
]);

/** Reads `finishReason`. Throws `Unfinished` if the model failed, such as `MALFORMED_FUNCTION_CALL`, with `finishMessage`. */
export function readStop(reason: unknown, said: unknown, hasToolCalls: boolean): StopReason {
  if (reason === 'MAX_TOKENS') return 'length';
  if (typeof reason === 'string' && FILTERED.has(reason)) return 'filter';
  if (reason === 'STOP') return hasToolCalls ? 'toolCalls' : 'stop';
  throw new Unfinished(`finishReason: ${JSON.stringify(reason)}`, textOf(said));
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
