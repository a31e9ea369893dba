import type { Scoring } from '../embed/embedder.ts';
import type { SearchFields } from '../store.ts';
import { isPair, stemOf, wordsOf } from '../tokenizer.ts';
import { LetterCounter, type SearchedLetters } from './letters.ts';

/** The default threshold of the specification; a result at the embedder's pivot gets this score. */
export const SIMILAR = 0.7;

// The constants of BM25 with fields. All were chosen on the development sets of `npm run bench memory-retrieval`.

/** Occurrences in a title and in headings count as so many in a text of average length. */
const IN_TITLE = 3;
const IN_HEADING = 2;
/** Occurrences at which a word counts half. */
const SATURATION = 1.2;
/** How much of a text's length counts, and the length in words for which an occurrence counts in full. */
const LENGTH = 0.5;
const AVERAGE_LENGTH = 110;
/**
 * A passage that covers as much as this many words that occur nowhere else covers enough: of a long query, it need not
 * have every word.
 */
const ENOUGH = 4;
/** Share of the words in the score; the rest is that of sequences of letters. */
const BY_WORDS = 0.35;
/** Texts without spaces: a question has pairs that belong to no word, so a passage that answers it covers less. */
const OF_PAIRS = 1.2;
/** How much better the best of ten times as many passages fits by chance, and for how many the scale is meant. */
const PER_TENFOLD = 0.2;
const TYPICAL = 2_000;
const FEWEST = 100;
/** Makes the score of a related passage about as high as it was when the pivots of models were chosen. */
const SCALE = 1.45;
/** Share of the score for words of the query that other passages of the same document have. */
const BY_CONTEXT = 0.2;
/**
 * What remains of the score if a passage has only one word of a query, and another one occurs nowhere: that other word is
 * probably the subject. Of two words, one is half of the query.
 */
const ONE_ALONE = 0.5;
const ONE_OF_TWO = 0.8;
/** Bonus if all neighboring words of the query are at most `NEAR` words apart in the text. */
const BY_NEIGHBORS = 0.2;
const NEAR = 2;
/** A number is compared faster than a part of the text. */
function firstLetters(word: string): number {
  return word.charCodeAt(0) * 65_536 + (word.length > 1 ? word.charCodeAt(1) : 0);
}

/** Letters at the end of a stem that its word may lack: `realised` becomes `realiz`. */
const PUT = 2;
const LETTERS = /^[a-z]+$/;

/**
 * What every word with this stem begins with. A stem keeps the first two letters of its word; a word with other characters
 * than a to z is its own stem.
 */
function beginningOf(stem: string): string {
  return LETTERS.test(stem) ? stem.slice(0, Math.max(2, stem.length - PUT)) : stem;
}

/** What a text has of a query. */
export interface Coverage {
  /** How well the text covers each word, by stem: 0 if it lacks the word, never quite 1. */
  readonly words: ReadonlyMap<string, number>;
  /** 0..1: share of the query's pairs of neighboring words that are close to each other in the text. */
  readonly neighbors: number;
  /** 0..1: share of the query's sequences of letters that the text has; 0 if none are searched. */
  readonly letters: number;
}

/**
 * Prepares the comparison of texts with a query. Texts share most of their words, so each distinct word is stemmed once.
 *
 * @param weights weights of the query's words by stem, in the order of the query
 * @param compounds stems of the parts of compounds among these words, by stem
 * @param letters the sequences of letters of these words
 */
export function coverageOf(
  weights: ReadonlyMap<string, number>,
  compounds: ReadonlyMap<string, readonly string[]> = new Map(),
  letters: SearchedLetters = { weights: new Map(), length: 1 },
): (fields: SearchFields) => Coverage {
  const stems = [...new Set([...weights.keys(), ...[...compounds.values()].flat()])];
  const places = new Map(stems.map((stem, place) => [stem, place]));
  // Most words are none of the query's, and stemming every word is slow.
  const beginnings = Map.groupBy(stems.map(beginningOf), firstLetters);
  const known = new Map<string, number>();
  /** Place of a word in the query, or -1. */
  const placeOf = (word: string): number => {
    const possible = beginnings.get(firstLetters(word));
    if (possible === undefined) return -1;
    // A loop, because a function would be called for each word of each text.
    let index = 0;
    while (index < possible.length && !word.startsWith(possible[index] ?? '')) index += 1;
    if (index === possible.length) return -1;
    let place = known.get(word);
    if (place === undefined) {
      place = places.get(stemOf(word)) ?? -1;
      known.set(word, place);
    }
    return place;
  };
  const counter = new LetterCounter(letters);
  return ({ title, heading, searchText }) => {
    counter.reset();
    const named = stems.map(() => 0);
    for (const word of wordsOf(title)) {
      add(named, placeOf(word), IN_TITLE);
      counter.add(word);
    }
    for (const word of wordsOf(heading)) {
      add(named, placeOf(word), IN_HEADING);
      counter.add(word);
    }
    const counts = stems.map(() => 0);
    const last = stems.map(() => Number.NEGATIVE_INFINITY);
    const near = new Set<number>();
    const words = wordsOf(searchText);
    for (let index = 0; index < words.length; index += 1) {
      const word = words[index] ?? '';
      counter.add(word);
      const place = placeOf(word);
      if (place === -1) continue;
      add(counts, place, 1);
      if (index - (last[place - 1] ?? Number.NEGATIVE_INFINITY) <= NEAR) near.add(place - 1);
      if (index - (last[place + 1] ?? Number.NEGATIVE_INFINITY) <= NEAR) near.add(place);
      last[place] = index;
    }
    const length = 1 - LENGTH + (LENGTH * words.length) / AVERAGE_LENGTH;
    const covered = new Map<string, number>();
    for (const [place, stem] of stems.entries()) {
      const occurrences = (counts[place] ?? 0) / length + (named[place] ?? 0);
      if (occurrences > 0) covered.set(stem, occurrences / (occurrences + SATURATION));
    }
    for (const [stem, parts] of compounds) {
      const byParts = Math.min(...parts.map((part) => covered.get(part) ?? 0));
      if (byParts > (covered.get(stem) ?? 0)) covered.set(stem, byParts);
    }
    for (const stem of covered.keys()) if (!weights.has(stem)) covered.delete(stem);
    return {
      words: covered,
      neighbors: neighborShare([...weights.values()], near),
      letters: counter.covered(),
    };
  };
}

function add(counts: number[], place: number, count: number): void {
  if (place !== -1) counts[place] = (counts[place] ?? 0) + count;
}

/** The share of neighboring pairs; a pair has the weight of its more common word. */
function neighborShare(weights: readonly number[], near: ReadonlySet<number>): number {
  let [found, total] = [0, 0];
  for (let index = 0; index + 1 < weights.length; index += 1) {
    const pair = Math.min(weights[index] ?? 0, weights[index + 1] ?? 0);
    total += pair;
    if (near.has(index)) found += pair;
  }
  return total === 0 ? 0 : found / total;
}

/** The best coverage of each word by any of several passages, which belong to one document. */
export function together(passages: readonly Coverage[]): ReadonlyMap<string, number> {
  const best = new Map<string, number>();
  for (const { words } of passages)
    for (const [stem, covered] of words) best.set(stem, Math.max(covered, best.get(stem) ?? 0));
  return best;
}

/** How well the best passage fits by chance, relative to a store of typical size. */
function byChance(highest: number): number {
  // The weight of a word that occurs nowhere is ln(2n + 2) for n passages.
  const passages = Math.max(FEWEST, Math.exp(highest) / 2 - 1);
  return 1 + PER_TENFOLD * Math.log10(passages / TYPICAL);
}

/**
 * How well the words of a query are covered: the weighted share that the passage covers, with a fifth of it for what its
 * document covers, and a bonus for neighboring words; and the share of their sequences of letters, by which inflected
 * words and parts of compounds count too. One word is not enough if another one occurs nowhere.
 *
 * @param highest weight of a word that occurs nowhere
 * @returns 0 or more, 1 for a short query that is covered completely; 0 for a query without words
 */
export function wordScore(
  weights: ReadonlyMap<string, number>,
  highest: number,
  passage: Coverage,
  document: ReadonlyMap<string, number>,
): number {
  let [found, total, inPairs] = [0, 0, 0];
  let lacksUnknown = false;
  for (const [stem, weight] of weights) {
    total += weight;
    if (isPair(stem)) inPairs += weight;
    if (weight >= highest && !passage.words.has(stem)) lacksUnknown = true;
    found += weight * (1 - BY_CONTEXT) * (passage.words.get(stem) ?? 0);
    found += weight * BY_CONTEXT * (document.get(stem) ?? 0);
  }
  const needed = Math.min(total, ENOUGH * highest);
  const words = needed === 0 ? 0 : found / needed + BY_NEIGHBORS * passage.neighbors;
  const letters = needed === 0 ? 0 : (passage.letters * total) / needed;
  const pairs = total === 0 ? 0 : inPairs / total;
  const scale = (SCALE * (1 + (OF_PAIRS - 1) * pairs)) / byChance(highest);
  const score = scale * (BY_WORDS * words + (1 - BY_WORDS) * letters);
  const isAlone = lacksUnknown && passage.words.size === 1;
  return isAlone ? (weights.size === 2 ? ONE_OF_TWO : ONE_ALONE) * score : score;
}

/** Whether a passage has every word of a query, however long it is. */
export function coversAll(weights: ReadonlyMap<string, number>, passage: Coverage): boolean {
  return weights.size > 0 && [...weights.keys()].every((stem) => passage.words.has(stem));
}

/** Of passages that are related because they have every word of a query, those that fit better come first. */
const BY_FIT = 0.1;
const atLeast = (pivot: number, value: number): number => Math.max(value, pivot + BY_FIT * value);

/** A score with its parts, which explain it. */
export interface Score {
  /** 0..1: by which results are ranked, filtered and displayed. */
  readonly score: number;
  /** 0 or more: from the words; see `wordScore`. */
  readonly words: number;
  /** 0..1: from the vectors: the cosine, above that of unrelated texts; null if there is no vector. */
  readonly vector: number | null;
  /** 0 or more: both together. */
  readonly fused: number;
}

/**
 * The score of a passage. It increases with both parts and is 0.7 at the embedder's pivot, so that the default threshold
 * means "related" for every embedder. It is never below the vector's part, so a `minScore` never removes a passage whose
 * cosine reaches it, if the embedder's cosines of unrelated texts are near 0.
 *
 * @param words see `wordScore`
 * @param cosine -1..1; undefined without a vector, which is scored by words alone
 * @param unrelated cosine of unrelated texts, of this embedder
 * @param isComplete whether the passage has every word of the query; then it is related, although each word counts little in a long one
 */
export function scoreOf(
  { vectorShare, pivot, wordsPivot }: Scoring,
  words: number,
  cosine: number | undefined,
  unrelated: number,
  isComplete = false,
): Score {
  if (cosine === undefined || Number.isNaN(cosine)) {
    const value = isComplete ? atLeast(wordsPivot, words) : words;
    return { score: calibrated(value, wordsPivot), words, vector: null, fused: (value * pivot) / wordsPivot };
  }
  const vector = Math.min(1, Math.max(0, (cosine - unrelated) / (1 - unrelated)));
  const both = (1 - vectorShare) * words + vectorShare * vector;
  const fused = isComplete ? atLeast(pivot, both) : both;
  // Of a hash, the cosine of unrelated texts varies too much to count by itself.
  const least = vectorShare < 0.5 ? 0 : vector;
  return { score: Math.max(least, calibrated(fused, pivot)), words, vector, fused };
}

/** What the next passages need of what the best one needs, and how far above that the best one must be for it. */
const NEXT = 0.4;
const SURE = 1.1;

/**
 * The score of a passage besides the best one of the same search. Whether anything stored is related shows in the best
 * passage; the next ones, which often have the answer too, need less.
 */
export function besideBest(one: Score, best: Score, { pivot }: Scoring): Score {
  const sure = Math.min(1, Math.max(0, (best.fused / pivot - 1) / (SURE - 1)));
  return { ...one, score: Math.max(one.score, calibrated(one.fused, pivot * (1 - (1 - NEXT) * sure))) };
}

/** 0.7 at the pivot; above it, 1 is approached but never reached, so that better passages keep a higher score. */
export function calibrated(value: number, pivot: number): number {
  if (value < pivot) return Math.max(0, (SIMILAR * value) / pivot);
  return 1 - ((1 - SIMILAR) * (1 - pivot)) / (1 - pivot + (value - pivot));
}
