import { stemOf, wordsOf } from '../memory/tokenizer.ts';

/** Characters of an excerpt: about 100 tokens, which is a third of a long passage. */
const EXCERPT = 400;

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' });

/**
 * The part of a text that has most of the query: whole sentences around the best one, at most `EXCERPT` characters, with `…` where
 * something is left out. A text that is hardly longer is returned as it is.
 *
 * @param text at most a few thousand characters
 */
export function excerptOf(text: string, query: string): string {
  if (text.length <= EXCERPT * 1.1) return text;
  const wanted = new Set(wordsOf(query).map(stemOf));
  const parts = [...sentences.segment(text)].map(({ segment }) => segment);
  const found = parts.map((part) => {
    const stems = new Set(wordsOf(part).map(stemOf));
    return [...wanted].filter((stem) => stems.has(stem)).length;
  });
  const best = found.indexOf(Math.max(...found));
  let [first, last] = [best, best];
  let length = parts[best]?.length ?? 0;
  // What follows a sentence explains it more often than what precedes it.
  for (let grows = true; grows; ) {
    grows = false;
    for (const next of [last + 1, first - 1]) {
      const size = parts[next]?.length ?? EXCERPT;
      if (length + size > EXCERPT) continue;
      length += size;
      [first, last] = [Math.min(first, next), Math.max(last, next)];
      grows = true;
    }
  }
  const whole = parts
    .slice(first, last + 1)
    .join('')
    .trim();
  const cut = whole.length > EXCERPT ? whole.slice(0, EXCERPT).toWellFormed() : whole;
  const isCut = cut !== whole || last < parts.length - 1;
  return `${first > 0 ? '…' : ''}${cut}${isCut ? '…' : ''}`;
}
