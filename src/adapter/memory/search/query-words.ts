import { compoundWordsOf, isPair, isStopWord, stemOf } from '../tokenizer.ts';

/** A word, in the form used for lookups in the store, and its stem. */
export interface SearchedWord {
  readonly word: string;
  readonly stem: string;
}

/** A word of a query. */
export interface QueryWord extends SearchedWord {
  /**
   * The parts of a compound, if it has several that say something. A text that has all of them has the compound; they
   * are not further words, because a compound would count several times.
   */
  readonly parts: readonly SearchedWord[];
}

/**
 * Weight of a pair of letters of a script without spaces, compared with a word: a word has about two letters, and the
 * pairs at its ends belong to no word.
 */
const PAIR = 1 / 3;
/** The same of a pair of Hiragana, in which Japanese writes mostly endings, particles and questions. */
const HIRAGANA_PAIR = 1 / 8;
const HIRAGANA = /^\p{Script=Hiragana}+$/u;

/** The share of a word's weight that counts. */
export function shareOf(word: string): number {
  if (!isPair(word)) return 1;
  return HIRAGANA.test(word) ? HIRAGANA_PAIR : PAIR;
}

/** Words of questions, besides the stop words, that say nothing about their subject. */
const QUESTION_WORDS = new Set('many much per tell show explain anything something somehow'.split(' '));

/** The distinct words of a query, without stop words unless it has no others. With parts, at most `limit`. */
export function queryWords(query: string, limit: number): QueryWord[] {
  const all = new Map<string, QueryWord>();
  for (const { word, parts } of compoundWordsOf(query)) {
    const searched = { ...searchedWord(word), parts: tellingParts(parts) };
    if (!all.has(searched.stem)) all.set(searched.stem, searched);
  }
  const words = [...all.values()];
  const telling = words.filter(isTelling);
  const used = (telling.length > 0 ? telling : words).slice(0, limit);
  let room = limit - used.length;
  return used.map((word) => {
    room -= word.parts.length;
    return room < 0 ? { ...word, parts: [] } : word;
  });
}

function searchedWord(word: string): SearchedWord {
  return { word, stem: stemOf(word) };
}

/**
 * Characters of Chinese that mostly build questions and sentences. A pair with one of them says nothing: it is across the
 * end of a word.
 */
const CHINESE_FUNCTION =
  /[的了吗呢吧是把被在和与或有用里个怎么样什为如何哪些可以能会要我你他她它这那就都也很没不让给对从到着过]/u;

function isTelling({ word }: SearchedWord): boolean {
  if (isPair(word)) return !CHINESE_FUNCTION.test(word);
  return word.length > 1 && !isStopWord(word) && !QUESTION_WORDS.has(word);
}

function tellingParts(parts: readonly string[]): SearchedWord[] {
  const telling = parts.map(searchedWord).filter(isTelling);
  return telling.length > 1 ? telling : [];
}

/** Weight of a word that occurs in `count` of `total` entities; 0 only if there are none. */
export function rarity(count: number, total: number): number {
  const known = Math.min(Math.max(count, 0), total);
  return Math.log(1 + (total - known + 0.5) / (known + 0.5));
}

/** Rounds down to four digits, so that a displayed score is never above the threshold that it failed. */
export function rounded(value: number): number {
  return Math.floor(value * 10_000) / 10_000;
}
