import type { Scoring } from '../embed/embedder.ts';
import { isStopWord, stemOf, wordsOf } from '../words.ts';

/** The default threshold of the specification; a similarity at the embedder's pivot is shown as this. */
export const SIMILAR = 0.7;
/** How much meaning and how much shared words weigh, for an embedder that scores by `words`. */
const BY_COSINE = 0.3;
const BY_WORDS = 0.7;

/** A word of a query and how much it tells: rare words tell more. */
export interface QueryWord {
  /** As looked up in the store. */
  readonly word: string;
  readonly stem: string;
}

/** The words of a query that count, without repetition. A query of stop words only keeps them all. */
export function queryWords(query: string, limit: number): QueryWord[] {
  const all = new Map<string, QueryWord>();
  for (const word of wordsOf(query)) {
    const stem = stemOf(word);
    if (!all.has(stem)) all.set(stem, { word, stem });
  }
  const words = [...all.values()];
  const telling = words.filter(({ word }) => !isStopWord(word) && word.length > 1);
  return (telling.length > 0 ? telling : words).slice(0, limit);
}

/** How much a word tells that occurs in `count` of `total` entities; 0 only when there are none. */
export function rarity(count: number, total: number): number {
  const known = Math.min(Math.max(count, 0), total);
  return Math.log(1 + (total - known + 0.5) / (known + 0.5));
}

/** Words of a text up to which one occurrence counts in full; a long table has every word once. */
const PLAIN_LENGTH = 100;
const LENGTH_DISCOUNT = 0.6;
/** What the words of a query that stand side by side in the text add, when they all do. */
const BY_NEIGHBOURS = 0.3;
/**
 * Words are compared when they begin as one of the query does: cutting the ending of every word is slow. A stem always
 * begins with the first two letters of its word: `flies` is `fly`.
 */
const BEGINNING = 2;

function beginningsOf(stems: Iterable<string>): ReadonlySet<string> {
  return new Set([...stems].map((stem) => stem.slice(0, BEGINNING)));
}

interface Occurrences {
  readonly counts: ReadonlyMap<string, number>;
  /** In the first line: the title and the headings. */
  readonly named: ReadonlySet<string>;
  /** Words that follow one another in the query and are neighbours here, by the first one's stem. */
  readonly neighbours: ReadonlySet<string>;
  readonly length: number;
}

/** The stem after each in the query, by that. */
function followersOf(stems: Iterable<string>): ReadonlyMap<string, string> {
  const all = [...stems];
  return new Map(all.slice(1).map((stem, index) => [all[index] as string, stem]));
}

function occurrencesOf(weights: ReadonlyMap<string, number>, text: string): Occurrences {
  const beginnings = beginningsOf(weights.keys());
  const counts = new Map<string, number>();
  const named = new Set<string>();
  const neighbours = new Set<string>();
  const followers = followersOf(weights.keys());
  let length = 0;
  const lineEnd = text.indexOf('\n');
  const parts = lineEnd === -1 ? [text] : [text.slice(0, lineEnd), text.slice(lineEnd)];
  for (const [index, part] of parts.entries()) {
    let previous = '';
    for (const word of wordsOf(part)) {
      length += 1;
      const stem = beginnings.has(word.slice(0, BEGINNING)) ? stemOf(word) : '';
      if (!weights.has(stem)) {
        // `string of a connection` has them side by side.
        if (previous !== '' && word.length > 1 && !isStopWord(word)) previous = '';
        continue;
      }
      counts.set(stem, (counts.get(stem) ?? 0) + 1);
      if (index === 0) named.add(stem);
      if (followers.get(previous) === stem) neighbours.add(previous);
      else if (followers.get(stem) === previous) neighbours.add(stem);
      previous = stem;
    }
  }
  return { counts, named, neighbours, length };
}

/**
 * The share of a query that a text has, its words weighed by rarity. Words of the first line count in full; in a long
 * text one occurrence counts for less. Words side by side, as in the query, count for more.
 * @param weights by stem, in the order of the query
 * @returns 0..1; 0 for a query without words
 */
export function coverage(weights: ReadonlyMap<string, number>, text: string): number {
  let total = 0;
  for (const weight of weights.values()) total += weight;
  if (total === 0) return 0;
  const { counts, named, neighbours, length } = occurrencesOf(weights, text);
  const discount = LENGTH_DISCOUNT * Math.max(0, length / PLAIN_LENGTH - 1);
  let found = 0;
  for (const [stem, count] of counts)
    found += (weights.get(stem) ?? 0) * (named.has(stem) ? 1 : count / (count + discount));
  return Math.min(1, found / total + BY_NEIGHBOURS * neighbourShare(weights, neighbours));
}

/** Share of the query's pairs of neighbours; one tells as much as the commoner word of it. */
function neighbourShare(weights: ReadonlyMap<string, number>, neighbours: ReadonlySet<string>): number {
  if (neighbours.size === 0) return 0;
  let [found, total] = [0, 0];
  let previous: [stem: string, weight: number] | undefined;
  for (const [stem, weight] of weights) {
    if (previous !== undefined) {
      const pair = Math.min(previous[1], weight);
      total += pair;
      if (neighbours.has(previous[0])) found += pair;
    }
    previous = [stem, weight];
  }
  return found / total;
}

/**
 * The one number that results are ranked, filtered and shown by. Grows with the cosine and with the coverage, and
 * is 0.7 at the embedder's pivot, so that the default threshold means "similar enough" for every embedder.
 * @param cosine -1..1
 * @param covered 0..1
 * @returns 0..1
 */
export function scoreOf({ by, pivot }: Scoring, cosine: number, covered: number): number {
  const near = Math.min(1, Math.max(0, Number.isFinite(cosine) ? cosine : 0));
  const raw = by === 'cosine' ? near : BY_COSINE * near + BY_WORDS * covered;
  const score =
    raw < pivot ? (SIMILAR * raw) / pivot : SIMILAR + ((1 - SIMILAR) * (raw - pivot)) / (1 - pivot);
  return Math.min(1, Math.max(0, score));
}

/** Down to four digits, so that a shown score is never above the threshold that it failed. */
export function rounded(value: number): number {
  return Math.floor(value * 10_000) / 10_000;
}
