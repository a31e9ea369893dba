import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { queryWords, rarity } from '../../../../src/adapter/memory/search/query-words.ts';
import {
  besideBest,
  coverageOf,
  SIMILAR,
  scoreOf,
  together,
  wordScore,
} from '../../../../src/adapter/memory/search/score.ts';
import { stemOf } from '../../../../src/adapter/memory/tokenizer.ts';

const share = fc.double({ min: 0, max: 1, noNaN: true });
const cosine = fc.double({ min: -1, max: 1, noNaN: true });
const pivot = fc.double({ min: 0.01, max: 0.99, noNaN: true });
const scoring = fc.record({ vectorShare: share, pivot, wordsPivot: pivot });
const MODEL = { vectorShare: 0.5, pivot: 0.2, wordsPivot: 0.27 };

describe('the search score', () => {
  test('the search score is between 0 and 1 and never falls when the text is nearer or matches more words', () => {
    fc.assert(
      fc.property(scoring, cosine, cosine, share, share, share, (how, c1, c2, w1, w2, unrelated) => {
        const base = unrelated * 0.9;
        const less = scoreOf(how, Math.min(w1, w2), Math.min(c1, c2), base);
        const more = scoreOf(how, Math.max(w1, w2), Math.max(c1, c2), base);
        expect(less.score).toBeGreaterThanOrEqual(0);
        expect(more.score).toBeLessThanOrEqual(1);
        expect(more.score).toBeGreaterThanOrEqual(less.score);
      }),
    );
  });

  test('the search score is 0.7 where words and vector together reach the pivot', () => {
    expect(scoreOf(MODEL, 0.1, 0.3, 0)).toEqual({ score: SIMILAR, words: 0.1, vector: 0.3, fused: 0.2 });
    expect(scoreOf(MODEL, 0, -1, 0).score).toBe(0);
    // A passage with every word of the query is related, and one that fits better comes first.
    const [long, longer] = [0.1, 0.05].map((words) => scoreOf(MODEL, words, undefined, 0, true).score);
    expect(long).toBeGreaterThan(longer ?? 1);
    expect(longer).toBeGreaterThan(SIMILAR);
    expect(scoreOf(MODEL, 0.27, undefined, 0)).toEqual({
      score: SIMILAR,
      words: 0.27,
      vector: null,
      fused: expect.closeTo(0.2, 9),
    });
    expect(scoreOf(MODEL, 3, 1, 0).score).toBe(1);
  });

  test('a passage whose cosine reaches minScore is never removed, and neither is one that has the words', () => {
    fc.assert(
      fc.property(cosine, share, (near, words) => {
        expect(scoreOf(MODEL, words, near, 0).score).toBeGreaterThanOrEqual(Math.max(0, near));
      }),
    );
    expect(scoreOf(MODEL, 0.45, -0.2, 0).score).toBeGreaterThan(SIMILAR);
  });

  test('cosines count as far as they are above that of unrelated texts', () => {
    const narrow = scoreOf(MODEL, 0, 0.85, 0.7);
    expect(narrow.vector).toBeCloseTo(0.5, 9);
    expect(narrow.score).toBeCloseTo(scoreOf(MODEL, 0, 0.5, 0).score, 9);
    expect(scoreOf(MODEL, 0, 0.7, 0.7).score).toBe(0);
  });

  test('the search score treats a cosine that is not a number as missing', () => {
    expect(scoreOf(MODEL, 0, Number.NaN, 0)).toMatchObject({ score: 0, vector: null });
  });
});

describe('the search score beside the best passage', () => {
  const scored = (words: number) => scoreOf(MODEL, words, undefined, 0);

  test('a passage needs less if the best one is clearly related, and no less if the best one hardly is', () => {
    const near = scored(0.2);
    expect(near.score).toBeLessThan(SIMILAR);
    expect(besideBest(near, scored(0.5), MODEL).score).toBeGreaterThan(SIMILAR);
    expect(besideBest(near, scored(0.27), MODEL).score).toBeCloseTo(near.score, 9);
    expect(besideBest(scored(0.05), scored(3), MODEL).score).toBeLessThan(SIMILAR);
  });

  test('the order of passages and whether the best one passes stay the same', () => {
    fc.assert(
      fc.property(share, share, share, (a, b, more) => {
        const best = scored(Math.max(a, b) + more);
        const [less, higher] = [scored(Math.min(a, b)), scored(Math.max(a, b))];
        expect(besideBest(higher, best, MODEL).score).toBeGreaterThanOrEqual(
          besideBest(less, best, MODEL).score,
        );
        expect(besideBest(best, best, MODEL).score >= SIMILAR).toBe(best.score >= SIMILAR);
      }),
    );
  });
});

describe('word coverage', () => {
  const fields = (searchText: string, title = '', heading = '') => ({ title, heading, searchText });
  const weigh = (...words: string[]) => new Map(words.map((word) => [stemOf(word), 1]));
  const of = (
    weights: ReadonlyMap<string, number>,
    text: string,
    title?: string,
    heading?: string,
  ): number => {
    const passage = coverageOf(weights)(fields(text, title, heading));
    return wordScore(weights, 10, passage, passage.words);
  };

  test('the same coverage is worth less in a larger store, where a passage fits better by chance', () => {
    const weights = weigh('zebra', 'panda');
    const passage = coverageOf(weights)(fields('a zebra'));
    const inStore = (passages: number) => wordScore(weights, rarity(0, passages), passage, passage.words);
    expect(inStore(100_000)).toBeLessThan(inStore(2_000));
    expect(inStore(2_000)).toBeLessThan(inStore(100));
    expect(inStore(50)).toBeCloseTo(inStore(100), 2);
  });

  test('the same coverage is worth more of pairs of letters, of which some belong to no word', () => {
    const worth = (one: string, other: string) => of(new Map([one, other].map((word) => [word, 1])), one);
    expect(worth('設定', '定変')).toBeGreaterThan(1.1 * worth('ab', 'cd'));
  });

  test('word coverage weighs words by rarity and matches their inflections', () => {
    const weights = new Map([
      [stemOf('limit'), 3],
      [stemOf('rates'), 1],
    ]);
    expect(of(weights, 'It limits requests.')).toBeCloseTo(3 * of(weights, 'It rates requests.'), 9);
    expect(of(weights, 'rate limiting, rate')).toBeGreaterThan(of(weights, 'It limits requests.'));
    expect(of(weights, 'nothing of it')).toBe(0);
    expect(of(weigh('flies'), 'It can fly.')).toBeGreaterThan(0);
    expect(of(new Map(), 'text')).toBe(0);
  });

  test('a word counts most in the title, then in headings, then in a short text, then in a long one', () => {
    const weights = weigh('zebra');
    const filler = 'word '.repeat(500);
    const inOrder = [
      of(weights, filler),
      of(weights, `zebra ${filler}`),
      of(weights, `zebra zebra zebra ${filler}`),
      of(weights, filler, '', 'Zebra'),
      of(weights, filler, 'Zebra'),
      of(weights, filler, 'Zebra', 'Zebra'),
    ];
    expect(inOrder).toEqual([...inOrder].sort((a, b) => a - b));
    expect(new Set(inOrder).size).toBe(inOrder.length);
    expect(inOrder.at(-1)).toBeLessThan(1);
  });

  test('word coverage is higher when words are near each other as in the query', () => {
    const weights = weigh('connection', 'string', 'parser');
    const neighbors = (text: string): number => coverageOf(weights)(fields(text)).neighbors;
    expect(neighbors('a connection string parser')).toBe(1);
    expect(neighbors('a new connection string')).toBe(0.5);
    expect(neighbors('string of connection')).toBe(0.5);
    expect(neighbors('a string that needs some connection')).toBe(0);
    // Neighbors here, but not in the query.
    expect(neighbors('the parser connection')).toBe(0);
    expect(of(weights, 'connection string')).toBeGreaterThan(of(weights, 'connection of some other string'));
  });

  test('a text with all parts of a compound has the compound, as far as the rarest part', () => {
    const weights = weigh('maxsessions', 'gateway');
    const compounds = new Map([[stemOf('maxsessions'), ['max', stemOf('sessions')]]]);
    const covered = (text: string) => coverageOf(weights, compounds)(fields(text)).words;
    expect([...covered('maxSessions of a gateway').keys()]).toEqual([...weights.keys()]);
    expect(covered('max 7 sessions, sessions')).toEqual(
      new Map([[stemOf('maxsessions'), covered('max 7 session, other').get(stemOf('maxsessions'))]]),
    );
    expect(covered('sessions').size).toBe(0);
  });

  test('one word of three is worth half if another of them occurs nowhere, and one of two most of it', () => {
    const unknown = 10;
    const known = new Map([
      ['zebra', 5],
      ['panda', 5],
      ['koala', 9],
    ]);
    const withUnknown = new Map(known).set('koala', unknown);
    const two = new Map([
      ['zebra', 5],
      ['koala', unknown],
    ]);
    const shareOf = (weights: ReadonlyMap<string, number>, text: string): number => {
      const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
      return of(weights, text) * total;
    };
    const one = shareOf(known, 'a zebra');
    expect(shareOf(withUnknown, 'a zebra')).toBeCloseTo(one / 2, 9);
    expect(shareOf(two, 'a zebra')).toBeCloseTo(0.8 * one, 9);
    expect(shareOf(withUnknown, 'a zebra is no panda')).toBeCloseTo(shareOf(known, 'a zebra is no panda'), 9);
  });

  test('words that other passages of the document have count a little', () => {
    const weights = weigh('zebra', 'stripes');
    const [one, other] = [coverageOf(weights)(fields('zebra')), coverageOf(weights)(fields('stripes'))];
    const alone = wordScore(weights, 10, one, one.words);
    const inContext = wordScore(weights, 10, one, together([one, other]));
    expect(inContext).toBeGreaterThan(alone);
    expect(inContext).toBeLessThan(
      wordScore(weights, 10, coverageOf(weights)(fields('zebra stripes')), one.words),
    );
  });

  test('of a long query, a passage need not have every word', () => {
    const short = weigh('one', 'two', 'three', 'four');
    const long = weigh(
      'one',
      'two',
      'three',
      'four',
      ...'abcdefghij'.split('').map((letter) => `${letter}word`),
    );
    const text = 'one, two, three, four';
    const need = (weights: ReadonlyMap<string, number>): number => {
      const passage = coverageOf(weights)(fields(text));
      return wordScore(weights, 1, { ...passage, neighbors: 0 }, passage.words);
    };
    expect(need(long)).toBeCloseTo(need(short), 9);
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

  test('the parts of a compound are no further words, and are limited together with the words', () => {
    const withParts = (query: string, limit = 64) =>
      queryWords(query, limit).map(({ word, parts }) => [word, ...parts.map((part) => part.word)].join(' '));
    expect(withParts('TypeScript types of an iPhone')).toEqual(['typescript type script', 'types', 'iphone']);
    expect(withParts('maxSessions minSessions', 4)).toEqual(['maxsessions max sessions', 'minsessions']);
    expect(withParts('東京駅')).toEqual(['東京', '京駅']);
  });
});
