import type { Scoring } from '../embed/embedder.ts';
import { isStopWord, stemOf, wordsOf } from '../tokenizer.ts';

/** The default threshold of the specification; a similarity at the embedder's pivot gets this score. */
export const SIMILAR = 0.7;
/** Weights of meaning and shared words, for an embedder that scores by `words`. */
const BY_COSINE = 0.3;
const BY_WORDS = 0.7;

/** A word of a query and its weight: rare words have more weight. */
export interface QueryWord {
  /** In the form used for lookups in the store. */
  readonly word: string;
  readonly stem: string;
}

/** The distinct words of a query, without stop words unless it has no others. */
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

/** Weight of a word that occurs in `count` of `total` entities; 0 only if there are none. */
export function rarity(count: number, total: number): number {
  const known = Math.min(Math.max(count, 0), total);
  return Math.log(1 + (total - known + 0.5) / (known + 0.5));
}

/** Number of words up to which one occurrence counts in full; a long table contains every word once. */
const PLAIN_LENGTH = 100;
const LENGTH_DISCOUNT = 0.6;
/** Bonus if all neighboring words of the query are neighbors in the text. */
const BY_NEIGHBOURS = 0.3;
/**
 * Only words with the same first letters as one of the query are compared, because stemming every word is slow. A stem
 * always keeps the first two letters of its word: `flies` becomes `fly`.
 */
const BEGINNING = 2;

function beginningsOf(stems: Iterable<string>): ReadonlySet<string> {
  return new Set([...stems].map((stem) => stem.slice(0, BEGINNING)));
}

interface Occurrences {
  readonly counts: ReadonlyMap<string, number>;
  /** Words in the first line, which contains the title and the headings. */
  readonly named: ReadonlySet<string>;
  /** Consecutive words of the query that are neighbors in the text, by the stem of the first. */
  readonly neighbours: ReadonlySet<string>;
  readonly length: number;
}

/** Maps each stem to the next one in the query. */
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
        // In `string of a connection`, `string` and `connection` are neighbors.
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
 * The share of a query that a text contains, with words weighted by rarity. Words in the first line count in full; in a
 * long text, a single occurrence counts less. Neighboring words of the query count more if they are neighbors in the
 * text.
 *
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

/** The share of neighboring pairs of the query; a pair has the weight of its more common word. */
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
 * The score by which results are ranked, filtered and displayed. Increases with cosine and coverage, and is 0.7 at the
 * embedder's pivot, so that the default threshold means "similar enough" for every embedder.
 *
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

/** Rounds down to four digits, so that a displayed score is never above the threshold that it failed. */
export function rounded(value: number): number {
  return Math.floor(value * 10_000) / 10_000;
}
