import { isStopWord, stemOf, wordsOf } from '../tokenizer.ts';

/** Occurrences of one word that are looked at: a long text may consist of nothing else. */
const OCCURRENCES = 200;
/** How far a part may begin before its first match, so that it begins with a line. */
const LEAD = 200;

/**
 * The part of a text that has most of the query's words, at most `length` characters, with `…` where the beginning is left out.
 * A text that is not longer is returned as it is; one without a match from its beginning.
 */
export function matchingPart(text: string, query: string, length: number): string {
  if (text.length <= length) return text;
  const start = startOf(text, query, length - 1);
  const part = text.slice(start, start + length - (start > 0 ? 1 : 0)).toWellFormed();
  return start > 0 ? `…${part}` : part;
}

function startOf(text: string, query: string, length: number): number {
  const lower = text.toLowerCase();
  const words = [...new Set(wordsOf(query))].filter((word) => !isStopWord(word));
  const matches = words
    .flatMap((word, index) => occurrences(lower, commonPart(word)).map((at) => ({ at, index })))
    .sort((left, right) => left.at - right.at);
  // Rare words, which tell more, are usually longer.
  const weights = words.map((word) => word.length);
  let best = { at: 0, end: 0, weight: 0 };
  const counts = words.map(() => 0);
  let weight = 0;
  let first = 0;
  for (const { at, index } of matches) {
    counts[index] = (counts[index] ?? 0) + 1;
    if (counts[index] === 1) weight += weights[index] ?? 0;
    for (let oldest = matches[first]; oldest !== undefined && at - oldest.at > length - LEAD; ) {
      counts[oldest.index] = (counts[oldest.index] ?? 0) - 1;
      if (counts[oldest.index] === 0) weight -= weights[oldest.index] ?? 0;
      first += 1;
      oldest = matches[first];
    }
    if (weight > best.weight) best = { at: matches[first]?.at ?? at, end: at, weight };
  }
  // The beginning says what a text is about.
  if (best.end < length - LEAD) return 0;
  const line = text.lastIndexOf('\n', best.at) + 1;
  const start = best.at - line <= LEAD ? line : best.at - LEAD;
  return Math.min(start, text.length - length);
}

/** What the forms of a word begin with. */
function commonPart(word: string): string {
  const stem = stemOf(word);
  return word.startsWith(stem) ? stem : word.slice(0, Math.max(2, word.length - 2));
}

function occurrences(text: string, part: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(part); at !== -1 && found.length < OCCURRENCES; at = text.indexOf(part, at + 1))
    found.push(at);
  return found;
}
