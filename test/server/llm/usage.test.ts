import { describe, expect, test } from 'vitest';
import { withoutPlaceholder } from '../../../src/server/llm/formats/messages/usage.ts';
import {
  inputUsage,
  isZero,
  largerUsage,
  MAX_TOKENS,
  mergedReport,
  parseUsage,
  tokenCount,
} from '../../../src/server/llm/usage.ts';

// Every shape check of the reader of usage reports, which answers of all formats would take minutes to reach.

const NO_COUNTS = [
  undefined,
  null,
  '5',
  true,
  -1,
  0.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  MAX_TOKENS + 1,
  [5],
  {},
];

describe('a token count', () => {
  test('is a whole number from 0 to a bound', () => {
    for (const value of [0, 5, MAX_TOKENS]) expect(tokenCount(value)).toBe(value);
    for (const value of NO_COUNTS) expect(tokenCount(value)).toBeUndefined();
  });
});

describe('a usage report', () => {
  test.each<[report: object, usage: object | undefined]>([
    [
      { prompt_tokens: 5, completion_tokens: 3 },
      { input: 5, output: 3 },
    ],
    [
      { input_tokens: 5, output_tokens: 3 },
      { input: 5, output: 3 },
    ],
    [
      { prompt_tokens: null, input_tokens: 5, completion_tokens: -1, output_tokens: 3 },
      { input: 5, output: 3 },
    ],
    [{ prompt_tokens: 5 }, { input: 5, output: 0 }],
    [{ completion_tokens: 3 }, { input: 0, output: 3 }],
    [{ total_tokens: 3 }, undefined],
    [{}, undefined],
    // Details.
    [
      {
        prompt_tokens: 9,
        prompt_tokens_details: {
          cached_tokens: 4,
          cache_write_tokens: 2,
          audio_tokens: 3,
          cached_tokens_details: { audio_tokens: 1 },
        },
        completion_tokens: 8,
        completion_tokens_details: { audio_tokens: 5, reasoning_tokens: 2 },
      },
      {
        input: 9,
        cachedInput: 4,
        cacheWrite: 2,
        inputAudio: 3,
        cachedInputAudio: 1,
        output: 8,
        outputAudio: 5,
        reasoning: 2,
      },
    ],
    [
      {
        input_tokens: 9,
        input_tokens_details: { cached_tokens: 4 },
        output_tokens: 8,
        output_tokens_details: { reasoning_tokens: 2 },
      },
      { input: 9, cachedInput: 4, output: 8, reasoning: 2 },
    ],
    [
      {
        input_tokens: 9,
        input_token_details: { audio_tokens: 3 },
        output_tokens: 8,
        output_token_details: { audio_tokens: 5 },
      },
      { input: 9, inputAudio: 3, output: 8, outputAudio: 5 },
    ],
    [
      { prompt_tokens: 9, prompt_cache_hit_tokens: 4, prompt_tokens_details: { cache_creation_tokens: 2 } },
      { input: 9, output: 0, cachedInput: 4, cacheWrite: 2 },
    ],
    [
      { prompt_tokens: 9, prompt_cache_hit_tokens: 4, prompt_tokens_details: null },
      { input: 9, output: 0, cachedInput: 4 },
    ],
    [
      { prompt_tokens: 9, prompt_tokens_details: 'none', completion_tokens_details: 7 },
      { input: 9, output: 0 },
    ],
    [
      { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: '4', cached_tokens_details: 'none' } },
      { input: 9, output: 0 },
    ],
    [
      { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: 4, cached_tokens_details: null } },
      { input: 9, output: 0, cachedInput: 4 },
    ],
    // Reasoning besides the output.
    [
      { prompt_tokens: 5, completion_tokens: 3, total_tokens: 10 },
      { input: 5, output: 5, reasoning: 2 },
    ],
    [
      { prompt_tokens: 5, completion_tokens: 3, total_tokens: 10, prompt_tokens_details: null },
      { input: 5, output: 5, reasoning: 2 },
    ],
    [
      { prompt_tokens: 5, completion_tokens: 3, total_tokens: 10, prompt_tokens_details: {} },
      { input: 5, output: 3 },
    ],
    [
      {
        prompt_tokens: 5,
        completion_tokens: 3,
        total_tokens: 10,
        completion_tokens_details: { reasoning_tokens: 2 },
      },
      { input: 5, output: 5, reasoning: 2 },
    ],
    [
      {
        prompt_tokens: 5,
        completion_tokens: 3,
        total_tokens: 8,
        completion_tokens_details: { reasoning_tokens: 2 },
      },
      { input: 5, output: 3, reasoning: 2 },
    ],
    [
      { prompt_tokens: 5, completion_tokens: 3, total_tokens: 7 },
      { input: 5, output: 3 },
    ],
    [
      { completion_tokens: 3, total_tokens: 10 },
      { input: 0, output: 10, reasoning: 7 },
    ],
    [
      { prompt_tokens: 5, total_tokens: 10 },
      { input: 5, output: 0 },
    ],
  ])('%j is read as %j', (report, usage) => {
    expect(parseUsage(report)).toEqual(usage);
  });

  test('is none if it is no object or has no counts', () => {
    for (const value of NO_COUNTS) {
      expect(parseUsage(value)).toBeUndefined();
      expect(parseUsage({ prompt_tokens: value, completion_tokens: value })).toBeUndefined();
    }
  });

  test('may have only a total if there is no output', () => {
    expect(inputUsage({ total_tokens: 5 })).toEqual({ input: 5, output: 0 });
    expect(inputUsage({ total_tokens: 5, prompt_tokens: 4 })).toEqual({ input: 4, output: 0 });
    for (const value of NO_COUNTS) expect(inputUsage({ total_tokens: value })).toBeUndefined();
  });

  test('of nothing has no input and no output', () => {
    expect(isZero({ input: 0, output: 0, cachedInput: 1 })).toBe(true);
    for (const usage of [undefined, { input: 1, output: 0 }, { input: 0, output: 1 }])
      expect(isZero(usage)).toBe(false);
  });

  test('of a start has no output yet', () => {
    expect(withoutPlaceholder({ input_tokens: 2, output_tokens: 1 })).toEqual({ input_tokens: 2 });
    expect(withoutPlaceholder({ output_tokens: 2 })).toEqual({ output_tokens: 2 });
  });
});

describe('two usage reports', () => {
  test('count as the larger of each', () => {
    const one = { input: 5, output: 3, cachedInput: 2 };
    expect(largerUsage(undefined, undefined)).toBeUndefined();
    expect(largerUsage(one, undefined)).toBe(one);
    expect(largerUsage(undefined, one)).toBe(one);
    const more = { ...one, output: 4, reasoning: 0 };
    expect(largerUsage(one, more)).toBe(more);
    expect(largerUsage(one, { input: 0, output: 9, reasoning: 0 })).toEqual({
      ...one,
      output: 9,
      reasoning: 0,
    });
    expect(largerUsage(one, { input: 5, output: 3 })).toEqual(one);
    expect(largerUsage({ input: 5, output: 3 }, { input: 4, output: 3 })).toEqual({ input: 5, output: 3 });
  });

  test('of one response are merged', () => {
    expect(mergedReport({ a: 5, b: 2, c: 'x' }, { a: 0, b: 3, c: 'y', d: 1, e: null })).toEqual({
      a: 5,
      b: 3,
      c: 'y',
      d: 1,
    });
    expect(mergedReport({ a: 5, b: 'x', c: {} }, { a: 'x', b: null, c: 1 })).toEqual({ a: 5, b: 'x', c: 1 });
    expect(mergedReport({ a: { b: 5, c: 1 }, d: 'x' }, { a: { b: 4, e: 2 }, d: { f: 1 } })).toEqual({
      a: { b: 5, c: 1, e: 2 },
      d: { f: 1 },
    });
  });

  test('are merged within bounds', () => {
    const wide = (from: number, count: number): Record<string, number> =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${from + at}`, from]));
    const merged = mergedReport(wide(0, 60), wide(60, 60));
    expect(Object.keys(merged)).toHaveLength(64);
    expect(mergedReport(merged, { k0: 7 })).toMatchObject({ k0: 7 });
    const deep = (inner: object): object => ({ a: { a: { a: { a: inner } } } });
    expect(mergedReport({ ...deep({ b: 1 }) }, { ...deep({ c: 1 }) })).toEqual(deep({ c: 1 }));
    const less = (inner: object): object => ({ a: { a: { a: inner } } });
    expect(mergedReport({ ...less({ b: 1 }) }, { ...less({ c: 1 }) })).toEqual(less({ b: 1, c: 1 }));
  });
});
