import type { Entity } from '../store.ts';
import { wordsOf } from '../tokenizer.ts';

/** Share of common words from which two passages count as the same. */
const SAME = 0.9;
/** Different passages that are compared with each other, as a multiple of the requested results: more are hardly ever returned. */
const COMPARED = 3;

/** A passage, and those that say almost the same. */
export interface Distinct<T> {
  readonly passage: T;
  /** Best first. */
  readonly copies: readonly Copy<T>[];
}

export interface Copy<T> {
  readonly passage: T;
  /** Words that it has and the better passage has not, in the order of its text. */
  readonly differs: readonly string[];
}

interface Seen<T> extends Distinct<T> {
  readonly words: ReadonlySet<string>;
  readonly copies: Copy<T>[];
}

/**
 * Merges passages that almost repeat a better one: the same page in two versions, or a paragraph that several pages share. Their place
 * is better used by another passage. One that has a word of the query that the other lacks stays by itself: pages made from a
 * template differ only in such words.
 *
 * @param passages best first
 * @param limit number of results that are returned of them
 */
export function distinct<
  T extends { readonly entity: Pick<Entity, 'content'>; readonly covered: ReadonlyMap<string, number> },
>(passages: readonly T[], limit: number): Distinct<T>[] {
  const kept: Seen<T>[] = [];
  for (const passage of passages) {
    const words = new Set(kept.length < COMPARED * limit ? wordsOf(passage.entity.content) : []);
    const adds = (better: T): boolean =>
      [...passage.covered.keys()].some((stem) => !better.covered.has(stem));
    const same =
      words.size === 0
        ? undefined
        : kept.find(
            (better) =>
              isSame(words, better.words) &&
              deniesLike(passage.entity.content, better.passage.entity.content) &&
              !adds(better.passage),
          );
    if (same === undefined) kept.push({ passage, words, copies: [] });
    else same.copies.push({ passage, differs: [...words].filter((word) => !same.words.has(word)) });
  }
  return kept;
}

/** Words of denial, in English, German, Chinese and Japanese. */
const DENIALS =
  /\b(?:not|no|never|none|without|cannot|nicht|kein\w*|nie|niemals|ohne)\b|n['’]t\b|不|没|沒|ない|なく|ません/giu;

/** Whether both deny equally often: `may enter` and `may not enter` differ in one word and are no copies. */
function deniesLike(one: string, other: string): boolean {
  return (one.match(DENIALS)?.length ?? 0) === (other.match(DENIALS)?.length ?? 0);
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

const collator = new Intl.Collator('en', { numeric: true });
const NUMBER = /\d+/g;

/**
 * Which of two equal passages comes first: that of the docs folder, that of the less deep folder, and of paths that differ in numbers
 * only, that of the higher one. So the current version of a documentation precedes earlier ones and translations.
 */
export function currentFirst(left: Pick<Entity, 'id' | 'metadata'>, right: typeof left): number {
  const [a, b] = [left.metadata['path'], right.metadata['path']];
  if (typeof a !== 'string' || typeof b !== 'string') {
    if (typeof a !== typeof b) return typeof a === 'string' ? -1 : 1;
    return left.id < right.id ? -1 : 1;
  }
  const depth = a.split('/').length - b.split('/').length;
  if (depth !== 0) return depth;
  const order = collator.compare(a, b);
  const isVersion = a.replace(NUMBER, '0') === b.replace(NUMBER, '0');
  return (isVersion ? -order : order) || (left.id < right.id ? -1 : 1);
}
