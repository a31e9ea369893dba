import type { SearchFields } from '../store.ts';
import { wordsOf } from '../tokenizer.ts';
import { type QueryWord, rarity } from './query-words.ts';

/**
 * Letters of a sequence. Sequences of four find inflected words and parts of compounds in any language, without a list
 * of words (McNamee and Mayfield, 2004).
 */
const LENGTH = 4;

/** The sequences of letters of a word, with its ends: `<cat>` has `<cat` and `cat>`. */
function sequencesOf(word: string): string[] {
  const padded = `<${word}>`;
  if (padded.length <= LENGTH) return [padded];
  return Array.from({ length: padded.length - LENGTH + 1 }, (_, start) =>
    padded.slice(start, start + LENGTH),
  );
}

/** How often sequences occur in some texts of the store: in how many, and how many of them a text has. */
export interface LetterSample {
  readonly texts: number;
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

export function letterSample(texts: readonly SearchFields[]): LetterSample {
  const counts = new Map<string, number>();
  const known = new Map<string, string[]>();
  let length = 0;
  for (const { title, heading, searchText } of texts) {
    const found = new Set<string>();
    for (const word of wordsOf(`${title} ${heading} ${searchText}`)) {
      let sequences = known.get(word);
      if (sequences === undefined) {
        sequences = sequencesOf(word);
        known.set(word, sequences);
      }
      length += sequences.length;
      for (const sequence of sequences) found.add(sequence);
    }
    for (const sequence of found) counts.set(sequence, (counts.get(sequence) ?? 0) + 1);
  }
  return { texts: texts.length, counts, length: texts.length === 0 ? 1 : Math.max(1, length / texts.length) };
}

/** The sequences of a query with their weights. */
export interface SearchedLetters {
  readonly weights: ReadonlyMap<string, number>;
  /** Sequences of an average text. */
  readonly length: number;
}

/**
 * Weighs the sequences of a query by their rarity in the sample. One that no text of the sample has is as rare as its word.
 *
 * @param weightOf weight of a word
 * @param share of a pair of letters, compared with a word
 */
export function searchedLetters(
  words: readonly QueryWord[],
  { texts, counts, length }: LetterSample,
  weightOf: (word: QueryWord) => number,
  shareOf: (word: string) => number,
): SearchedLetters {
  const weights = new Map<string, number>();
  for (const word of words)
    for (const sequence of sequencesOf(word.word)) {
      const count = counts.get(sequence) ?? 0;
      const inSample = shareOf(word.word) * rarity(count, texts);
      const weight = count === 0 ? Math.max(inSample, weightOf(word)) : inSample;
      weights.set(sequence, Math.max(weight, weights.get(sequence) ?? 0));
    }
  return { weights, length };
}

/** The usual constants of BM25. */
const SATURATION = 1.2;
const BY_LENGTH = 0.75;

/** Odd and large, so that the sequences of any script are spread over 32 bits. */
const FACTOR = 0x9e37_79b1;

/** A number of 32 bits for four UTF-16 units. That two sequences of a search share one is about as likely as 1 in 10 million. */
function hashOf(first: number, second: number, third: number, fourth: number): number {
  return (Math.imul(Math.imul(Math.imul(first, FACTOR) + second, FACTOR) + third, FACTOR) + fourth) | 0;
}

function sequenceHash(sequence: string): number {
  const [first = 0, second = 0, third = 0, fourth = 0] = Array.from({ length: LENGTH }, (_, index) =>
    index < sequence.length ? sequence.charCodeAt(index) : 0,
  );
  return hashOf(first, second, third, fourth);
}

const BEGIN = '<'.charCodeAt(0);
const END = '>'.charCodeAt(0);

/** First bits of a hash, by which most sequences are known not to be in the query. A table of 4 KiB stays in the processor's cache. */
const TABLE_BITS = 12;

/**
 * Counts the sequences of a query in one text after another. As numbers, because a search counts those of about 10,000 words: as
 * strings they took half of its time.
 */
export class LetterCounter {
  readonly #length: number;
  readonly #weights: readonly number[];
  /** Place of a sequence in the query, by its hash. */
  readonly #places: ReadonlyMap<number, number>;
  /** 1 where a hash in `#places` has these first bits. */
  readonly #table = new Uint8Array(2 ** TABLE_BITS);
  readonly #total: number;
  readonly #counts: Float64Array;
  #counted = 0;

  constructor({ weights, length }: SearchedLetters) {
    this.#length = length;
    this.#weights = [...weights.values()];
    this.#places = new Map([...weights.keys()].map((sequence, place) => [sequenceHash(sequence), place]));
    for (const hash of this.#places.keys()) this.#table[hash >>> (32 - TABLE_BITS)] = 1;
    this.#total = this.#weights.reduce((sum, weight) => sum + weight, 0);
    this.#counts = new Float64Array(weights.size);
  }

  reset(): void {
    this.#counts.fill(0);
    this.#counted = 0;
  }

  /** Counts the sequences of `<word>`, as `sequencesOf` has them. */
  add(word: string): void {
    if (word.length === 1) {
      this.#count(hashOf(BEGIN, word.charCodeAt(0), END, 0));
      return;
    }
    let [first, second, third] = [BEGIN, word.charCodeAt(0), word.charCodeAt(1)];
    for (let index = 2; index <= word.length; index += 1) {
      const fourth = index < word.length ? word.charCodeAt(index) : END;
      this.#count(hashOf(first, second, third, fourth));
      [first, second, third] = [second, third, fourth];
    }
  }

  #count(hash: number): void {
    this.#counted += 1;
    if (this.#table[hash >>> (32 - TABLE_BITS)] === 0) return;
    const place = this.#places.get(hash);
    if (place !== undefined) this.#counts[place] = (this.#counts[place] ?? 0) + 1;
  }

  /** 0..1: the share of the query's sequences that the counted text covers, by weight. */
  covered(): number {
    if (this.#total === 0) return 0;
    const length = 1 - BY_LENGTH + (BY_LENGTH * this.#counted) / this.#length;
    let sum = 0;
    for (const [place, weight] of this.#weights.entries()) {
      const count = this.#counts[place] ?? 0;
      sum += (weight * count) / (count + SATURATION * length);
    }
    return sum / this.#total;
  }
}
