import { createHash } from 'node:crypto';

/** Longest id of a tool call at OpenAI and Bedrock. */
const LONGEST = 64;

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
