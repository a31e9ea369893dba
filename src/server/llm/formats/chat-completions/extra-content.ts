import { membersOf } from '../../../../core/foreign.ts';
import type { Json } from '../../chat/chat-format.ts';
import { textOf } from '../../chat/event-data.ts';

/**
 * Signature of a tool call of Gemini, which has to come back with it: in its OpenAI-compatible API ("Thought signatures",
 * "OpenAI compatibility"), or as LiteLLM passes it on.
 */
export function signatureOf(extraContent: unknown, providerFields: unknown): string | undefined {
  const google = membersOf(membersOf(extraContent)['google']);
  return textOf(google['thought_signature']) ?? textOf(membersOf(providerFields)['thought_signature']);
}

/** The member that carries a signature back. */
export const extraContent = (signature: string): Json => ({
  google: { thought_signature: signature },
});
