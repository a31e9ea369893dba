import type { Entity } from '../store.ts';
import { wordsOf } from '../tokenizer.ts';

/** Share of common words from which two passages count as the same. */
const SAME = 0.9;
/** Passages compared with each other, as a multiple of the requested results: the rest is hardly ever returned. */
const COMPARED = 3;

/**
 * Leaves out passages that almost repeat a better one: the same page in two versions, or a paragraph that several pages
 * share. Their place is better used by another passage. One that has a word of the query that the other lacks stays:
 * pages made from a template differ only in such words.
 *
 * @param passages best first
 * @param limit number of results that are returned of them
 */
export function distinct<
  T extends { readonly entity: Pick<Entity, 'content'>; readonly covered: ReadonlyMap<string, number> },
>(passages: readonly T[], limit: number): T[] {
  const kept: T[] = [];
  const seen: { readonly words: ReadonlySet<string>; readonly passage: T }[] = [];
  for (const [place, passage] of passages.entries()) {
    if (place >= COMPARED * limit) {
      kept.push(passage);
      continue;
    }
    const words = new Set(wordsOf(passage.entity.content));
    const adds = (better: T): boolean =>
      [...passage.covered.keys()].some((stem) => !better.covered.has(stem));
    if (seen.some((better) => isSame(words, better.words) && !adds(better.passage))) continue;
    kept.push(passage);
    if (words.size > 0) seen.push({ words, passage });
  }
  return kept;
}

/** Whether the Jaccard index of two texts' words is at least `SAME`. */
function isSame(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  const [small, large] = a.size < b.size ? [a, b] : [b, a];
  const needed = (SAME * (a.size + b.size)) / (1 + SAME);
  // Most texts have little in common: the comparison ends as soon as too few words remain.
  let possible = small.size;
  for (const word of small) {
    if (possible < needed) return false;
    if (!large.has(word)) possible -= 1;
  }
  return possible >= needed;
}
