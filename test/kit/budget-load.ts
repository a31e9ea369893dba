import {
  answering,
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  llmProvider,
  streaming,
  USAGE,
} from './llm-provider.ts';
import type { HttpUpstream } from './upstream.ts';

/** What one call uses, and what it may use. */
export const USED = USAGE.total_tokens;
const CALL = { ...CHAT, max_tokens: 20 };

/** What clients have seen of one gateway. */
export interface Seen {
  /** Answers that were received completely. */
  complete: number;
  refused: number;
  other: string[];
}

/** Answers every call, streamed or not, with `USED` tokens. */
export function usedProvider(): Promise<HttpUpstream> {
  const stream = streaming((response) =>
    response.end(chunk({ content: 'Hello' }) + chunk(undefined, { usage: USAGE }) + DONE),
  );
  const whole = answering(completion('Hi'));
  return llmProvider((request, response, received) =>
    (received.body.includes('"stream":true') ? stream : whole)(request, response, received),
  );
}

/** Calls, with this value of the header `x-cycle`, until the gateway is gone or `isOver` returns true. */
export async function callUntilGone(
  url: string,
  cycle: string,
  seen: Seen,
  isOver: () => boolean = () => false,
): Promise<void> {
  for (let count = 0; !isOver(); count++) {
    const isStream = count % 2 === 0;
    try {
      const { status, text } = await chat({ url }, { ...CALL, stream: isStream }, { 'x-cycle': cycle });
      const isComplete = isStream ? text.includes('[DONE]') : text.includes('"usage"');
      if (status === 200 && isComplete) seen.complete += 1;
      else if (status === 429) seen.refused += 1;
      else seen.other.push(`${status} ${text}`);
    } catch {
      return;
    }
  }
}
