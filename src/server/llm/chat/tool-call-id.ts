import { createHash, randomUUID } from 'node:crypto';

/**
 * Gemini signs its tool calls: Gemini 3 rejects a conversation whose calls come back without their signature (Gemini
 * API, "Thought signatures"). Other formats have no member for it, but every client returns the id of a call, so the
 * signature is a part of the id. Ids of the Messages API may contain letters, digits, `_` and `-` only.
 */
const SIGNED = /^(?<plain>.*?)__(?<form>sig|sigtext)_(?<bytes>.*)$/s;

/**
 * The id of a call for clients. The bytes of a signature in Base64 are a part of it, and the text of any other signature, so
 * that the provider gets back what it sent.
 */
export function toolCallId(id: string | undefined, signature: string | undefined): string {
  const plain = id ?? `call_${randomUUID().replaceAll('-', '')}`;
  if (signature === undefined) return plain;
  const bytes = Buffer.from(signature, 'base64');
  return bytes.toString('base64') === signature
    ? `${plain}__sig_${bytes.toString('base64url')}`
    : `${plain}__sigtext_${Buffer.from(signature).toString('base64url')}`;
}

/** The parts of an id that `toolCallId` made; the id itself if another provider did. */
export function partsOfId(id: string): { readonly id: string; readonly signature?: string } {
  const { plain, form, bytes } = SIGNED.exec(id)?.groups ?? {};
  if (plain === undefined || bytes === undefined) return { id };
  const signature = Buffer.from(bytes, 'base64url').toString(form === 'sig' ? 'base64' : 'utf8');
  return { id: plain, signature };
}

/** Longest id of a tool call at OpenAI and Bedrock. */
const LONGEST = 64;

/** The id for a provider that has no use for the signature of another one, and accepts no long ids. */
export const plainCallId = (id: string): string => shortCallId(partsOfId(id).id);

/**
 * An id of a tool call that is not too long: a digest of a longer one, which is the same in the call and in its result. Ids
 * are those of any provider that the conversation has seen.
 */
export function shortCallId(id: string): string {
  return id.length > LONGEST ? callIdDigest(id) : id;
}

export function callIdDigest(id: string): string {
  return `call_${createHash('sha256').update(id).digest('base64url')}`;
}
