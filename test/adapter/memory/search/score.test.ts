import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  coverage,
  queryWords,
  rarity,
  SIMILAR,
  scoreOf,
} from '../../../../src/adapter/memory/search/score.ts';
import { stemOf } from '../../../../src/adapter/memory/tokenizer.ts';

const part = fc.double({ min: 0, max: 1, noNaN: true });
const cosine = fc.double({ min: -1, max: 1, noNaN: true });
const scoring = fc.record({
  by: fc.constantFrom('words' as const, 'cosine' as const),
  pivot: fc.double({ min: 0.01, max: 0.99, noNaN: true }),
});

describe('the search score', () => {
  test('the search score is between 0 and 1 and never falls when the text is nearer or matches more words', () => {
    fc.assert(
      fc.property(scoring, cosine, cosine, part, part, (how, c1, c2, w1, w2) => {
        const less = scoreOf(how, Math.min(c1, c2), Math.min(w1, w2));
        const more = scoreOf(how, Math.max(c1, c2), Math.max(w1, w2));
        expect(less).toBeGreaterThanOrEqual(0);
        expect(more).toBeLessThanOrEqual(1);
        expect(more).toBeGreaterThanOrEqual(less);
      }),
    );
  });

  test('the search score is 0.7 at the pivot, 0 and 1 at the ends', () => {
    const words = { by: 'words', pivot: 0.33 } as const;
    expect(scoreOf(words, 1, 0.3 / 7)).toBeCloseTo(SIMILAR, 9);
    expect([scoreOf(words, -1, 0), scoreOf(words, 0, 0), scoreOf(words, 1, 1)]).toEqual([0, 0, 1]);
    const remote = { by: 'cosine', pivot: 0.4 } as const;
    expect(scoreOf(remote, 0.4, 0)).toBeCloseTo(SIMILAR, 9);
    expect(scoreOf(remote, 0.7, 0)).toBeCloseTo(0.85, 9);
    expect(scoreOf(remote, 0.2, 1)).toBeCloseTo(0.35, 9);
  });

  test('the search score treats a cosine that is not a number as missing', () => {
    expect(scoreOf({ by: 'cosine', pivot: 0.4 }, Number.NaN, 0)).toBe(0);
  });
});

describe('word coverage', () => {
  test('word coverage weighs words by rarity and matches their inflections', () => {
    const weights = new Map([
      [stemOf('limit'), 3],
      [stemOf('rates'), 1],
    ]);
    expect(coverage(weights, 'It limits requests.')).toBe(0.75);
    expect(coverage(weights, 'rate limiting, rate')).toBe(1);
    expect(coverage(weights, 'nothing of it')).toBe(0);
    expect(coverage(new Map([[stemOf('flies'), 1]]), 'It can fly.')).toBe(1);
    expect(coverage(new Map(), 'text')).toBe(0);
  });

  test('word coverage counts a word in a long text less than one in a short text, in a title or repeated', () => {
    const weights = new Map([[stemOf('zebra'), 1]]);
    const filler = 'word '.repeat(500);
    const once = coverage(weights, `Title\n\nzebra ${filler}`);
    const often = coverage(weights, `Title\n\nzebra zebra zebra ${filler}`);
    expect(coverage(weights, 'Title\n\nzebra')).toBe(1);
    expect(coverage(weights, `Zebra\n\n${filler}`)).toBe(1);
    expect(once).toBeGreaterThan(0);
    expect(often).toBeGreaterThan(once);
    expect(often).toBeLessThan(1);
  });

  test('word coverage is higher when words are adjacent as in the query', () => {
    const weights = new Map(['connection', 'string', 'parser'].map((word) => [stemOf(word), 1]));
    const filler = 'word '.repeat(400);
    const of = (text: string): number => coverage(weights, `Title\n\n${text} ${filler}`);
    const apart = of('string makes one connection');
    expect(of('a new connection string')).toBeCloseTo(apart + 0.15, 9);
    expect(of('string of a connection')).toBeCloseTo(apart + 0.15, 9);
    // Neighbours here, but not in the query.
    expect(of('the parser opens connection')).toBeCloseTo(apart, 9);
    expect(of('the new parser connection')).toBeCloseTo(apart, 9);
    expect(coverage(weights, 'connection\nstring')).toBeCloseTo(2 / 3, 9);
    expect(coverage(weights, 'A connection string parser')).toBe(1);
  });

  test('word coverage weighs rare words more than frequent ones and unknown words most, and is never negative', () => {
    fc.assert(
      fc.property(fc.nat(1_000), fc.nat(1_000), fc.nat(2_000), (a, b, total) => {
        expect(rarity(Math.min(a, b), total)).toBeGreaterThanOrEqual(rarity(Math.max(a, b), total));
        expect(rarity(Math.max(a, b), total)).toBeGreaterThan(0);
      }),
    );
  });
});

describe('query words', () => {
  const words = (query: string, limit = 64): string[] => queryWords(query, limit).map(({ word }) => word);
  test('query words exclude stop words and repetitions unless nothing else remains', () => {
    expect(words('How do I limit the limits of a gateway?')).toEqual(['limit', 'gateway']);
    expect(words('to be or not to be')).toEqual(['to', 'be', 'or', 'not']);
    expect(words('?!')).toEqual([]);
    expect(words('one two three four', 2)).toEqual(['one', 'two']);
  });
});
