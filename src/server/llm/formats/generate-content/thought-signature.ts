import type { ReasoningPart } from '../../chat/chat.ts';
import { packReasoning, unpackReasoning } from '../../chat/reasoning-state.ts';

/** Signatures are bytes, and clients refuse a text that is not Base64. */
export function writeThoughtSignature(part: ReasoningPart): string | undefined {
  const packed = packReasoning(part);
  return packed === undefined ? undefined : Buffer.from(packed).toString('base64');
}

/** What `writeThoughtSignature` put in, or Gemini's own signature. */
export function readThoughtSignature(
  signature: string,
): Pick<ReasoningPart, 'origin' | 'signature' | 'encrypted' | 'id'> {
  return unpackReasoning(Buffer.from(signature, 'base64').toString('utf8')) ?? { signature };
}
