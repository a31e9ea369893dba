import { matchingPart } from '../memory/search/matching-part.ts';

/** Characters that are not letters of an alphabet: of Chinese or Japanese, each is a token. Of others, about four make one. */
const OTHER_SCRIPTS = /[\u0500-\uffff]/g;
const PER_TOKEN = 4;

/** Tokens that a text takes in a model, roughly. */
function tokensOf(text: string): number {
  const others = text.match(OTHER_SCRIPTS)?.length ?? 0;
  return others + Math.ceil((text.length - others) / PER_TOKEN);
}

interface Passage {
  readonly content: string;
  readonly truncated?: boolean | undefined;
}

/** The part of about so many tokens that fits the query best. */
function cut(text: string, query: string, tokens: number): string {
  const share = tokens / tokensOf(text);
  return matchingPart(text, query, Math.floor(text.length * share));
}

/** Fewer tokens than this are not a passage that says something. */
const LEAST = 20;

/**
 * The first passages whose texts have so many tokens together, the best first. The last of them is shortened to what is left for it,
 * and further ones are left out.
 */
export function withinTokens<P extends Passage>(passages: readonly P[], query: string, budget: number): P[] {
  const kept: P[] = [];
  let left = budget;
  for (const passage of passages) {
    const tokens = tokensOf(passage.content);
    if (tokens <= left) kept.push(passage);
    else if (left >= LEAST)
      kept.push({ ...passage, content: cut(passage.content, query, left), truncated: true });
    left -= tokens;
    if (left <= 0) break;
  }
  return kept;
}
