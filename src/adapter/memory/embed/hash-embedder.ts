import { DIMENSIONS } from '../store.ts';
import { isStopWord, stemOf, wordsOf } from '../tokenizer.ts';
import { type Embedder, normalise, WORDS_PIVOT } from './embedder.ts';

/** Texts embedded before other work gets a turn: one core embeds 9,000 chunks per second. */
const YIELD_AFTER = 32;
/**
 * Weight of a word's letter sequences relative to the word itself, so that typing errors and word forms still match.
 */
const LETTERS = 0.3;
/** Weight of a chunk's first line, which contains its title and headings. Has no effect on a one-line query. */
const FIRST_LINE = 2;
const STOP_WORD = 0.1;
/** Number of dimensions per word, so that two words rarely collide. */
const PLACES = 2;
/** Its vectors know no meanings, and the score knows the letters better: they mainly find candidates. */
const SCORING = { vectorShare: 0.1, pivot: 0.26, wordsPivot: WORDS_PIVOT };

const FNV_START = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

function hash(text: string, seed: number): number {
  let value = FNV_START ^ seed;
  for (let index = 0; index < text.length; index += 1)
    value = Math.imul(value ^ text.charCodeAt(index), FNV_PRIME);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

function add(vector: Float32Array, feature: string, weight: number, seed: number): void {
  for (let place = 0; place < PLACES; place += 1) {
    const value = hash(feature, seed + place);
    const index = value % DIMENSIONS;
    vector[index] = (vector[index] ?? 0) + (value & 0x8000_0000 ? -weight : weight);
  }
}

/** Occurrences of each word; the first line has more weight. */
function counts(text: string): Map<string, number> {
  const found = new Map<string, number>();
  const lineEnd = text.indexOf('\n');
  const parts = lineEnd === -1 ? [text] : [text.slice(0, lineEnd), text.slice(lineEnd)];
  for (const [index, part] of parts.entries()) {
    const weight = index === 0 ? FIRST_LINE : 1;
    for (const word of wordsOf(part)) found.set(word, (found.get(word) ?? 0) + weight);
  }
  return found;
}

/** The vector of one text. Uses only integers, sums and roots, so that every machine computes the same numbers. */
export function hashVector(text: string): Float32Array {
  const vector = new Float32Array(DIMENSIONS);
  for (const [word, count] of counts(text)) {
    const weight = Math.sqrt(count) * (isStopWord(word) ? STOP_WORD : 1);
    add(vector, stemOf(word), weight, 1);
    const padded = `<${word}>`;
    const grams = Math.max(1, 2 * padded.length - 5);
    const share = (LETTERS * weight) / Math.sqrt(grams);
    for (let size = 3; size <= 4; size += 1)
      for (let start = 0; start + size <= padded.length; start += 1)
        add(vector, padded.slice(start, start + size), share, 101);
  }
  return normalise(vector);
}

/**
 * Embeds texts by hashing their words and letter sequences into 128 numbers: no model, no network, no download. It
 * knows no synonyms, so search never relies on it alone.
 */
export function createHashEmbedder(): Embedder {
  return {
    id: `hash-v2/${DIMENSIONS}`,
    scoring: SCORING,
    isImmediate: true,
    // On one line, because the first line of a text has more weight and a query has no first line.
    embedQuery: async (text) => hashVector(text.replace(/\s+/g, ' ').trim()),
    async embed(texts, signal, progress) {
      const vectors: Float32Array[] = [];
      for (const text of texts) {
        vectors.push(hashVector(text));
        if (vectors.length % YIELD_AFTER !== 0) continue;
        await new Promise((resolve) => setImmediate(resolve));
        signal?.throwIfAborted();
        progress?.(vectors.length);
      }
      progress?.(vectors.length);
      return vectors;
    },
    close: () => Promise.resolve(),
  };
}
