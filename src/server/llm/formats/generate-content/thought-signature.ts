import type { ReasoningPart } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { packReasoning, unpackReasoning } from '../../chat/reasoning-state.ts';

/** Signatures are bytes, and clients refuse a text that is not Base64. */
export function writeThoughtSignature(part: ReasoningPart): string | undefined {
  // Gemini's own, in an answer that only changes between a stream and a whole one.
  if (part.origin === 'generateContent') return part.signature;
  const packed = packReasoning(part);
  return packed === undefined ? undefined : Buffer.from(packed).toString('base64');
}

/** What `writeThoughtSignature` put in, or Gemini's own signature. */
export function readThoughtSignature(
  signature: string,
): Pick<ReasoningPart, 'origin' | 'signature' | 'encrypted' | 'id'> {
  return unpackReasoning(Buffer.from(signature, 'base64').toString('utf8')) ?? { signature };
}

/**
 * The parts of one message of the model. Gemini 3 and later refuse a message whose first call has no signature. A call that
 * another model made has none; it gets the placeholder that Google documents for such calls (Gemini API, "Thought signatures",
 * FAQ).
 */
export function signed(parts: readonly Json[], model: string): Json[] {
  const first = parts.findIndex((part) => 'functionCall' in part);
  if (first === -1 || parts.some((part) => 'thoughtSignature' in part) || !NEEDS_SIGNATURES.test(model))
    return [...parts];
  return parts.with(first, { ...parts[first], thoughtSignature: UNSIGNED });
}

/** Also names without a version, such as `gemini-flash-latest`. */
const NEEDS_SIGNATURES = /\bgemini-(?![12]\b)/;
const UNSIGNED = 'skip_thought_signature_validator';
