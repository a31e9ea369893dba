import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
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

/**
 * Sequences of words as numbers. Texts share most of their words, and cutting them up again for every search would take
 * longer than the rest of it.
 */
class Cut {
  readonly #words = new Map<string, Uint32Array>();
  readonly #numbers = new Map<string, number>();

  get isFull(): boolean {
    return this.#words.size >= MEMORY_STORE_LIMITS.cutWords;
  }

  word(word: string): Uint32Array {
    let found = this.#words.get(word);
    if (found === undefined) {
      found = Uint32Array.from(sequencesOf(word), (sequence) => this.number(sequence));
      this.#words.set(word, found);
    }
    return found;
  }

  number(sequence: string): number {
    let number = this.#numbers.get(sequence);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(sequence, number);
    }
    return number;
  }
}

let cut = new Cut();

/** Counts the sequences of a query in one text after another. */
export class LetterCounter {
  readonly #cut: Cut;
  readonly #length: number;
  readonly #weights: number[];
  /** Place of a sequence in the query, from 1, by its number; beyond the end, or 0, if it is not in the query. */
  readonly #places: Uint16Array;
  readonly #total: number;
  readonly #counts: Float64Array;
  #counted = 0;

  constructor({ weights, length }: SearchedLetters) {
    // Searches in progress keep theirs.
    if (cut.isFull) cut = new Cut();
    this.#cut = cut;
    this.#length = length;
    this.#weights = [...weights.values()];
    const own = [...weights.keys()].map((sequence) => this.#cut.number(sequence));
    this.#places = new Uint16Array(own.reduce((most, number) => Math.max(most, number), 0) + 1);
    for (const [place, number] of own.entries()) this.#places[number] = place + 1;
    this.#total = this.#weights.reduce((sum, weight) => sum + weight, 0);
    this.#counts = new Float64Array(own.length + 1);
  }

  reset(): void {
    this.#counts.fill(0);
    this.#counted = 0;
  }

  add(word: string): void {
    const sequences = this.#cut.word(word);
    this.#counted += sequences.length;
    for (let index = 0; index < sequences.length; index += 1) {
      const place = this.#places[sequences[index] ?? -1] ?? 0;
      if (place !== 0) this.#counts[place] = (this.#counts[place] ?? 0) + 1;
    }
  }

  /** 0..1: the share of the query's sequences that the counted text covers, by weight. */
  covered(): number {
    if (this.#total === 0) return 0;
    const length = 1 - BY_LENGTH + (BY_LENGTH * this.#counted) / this.#length;
    let sum = 0;
    for (const [place, weight] of this.#weights.entries()) {
      const count = this.#counts[place + 1] ?? 0;
      sum += (weight * count) / (count + SATURATION * length);
    }
    return sum / this.#total;
  }
}
