import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import {
  elementsOf,
  entryIn,
  errorCode,
  isJson,
  isRecord,
  membersOf,
  numberIn,
  parseJson,
  shownValue,
  stringIn,
  textIn,
} from '../../src/core/foreign.ts';

const OTHERS: readonly unknown[] = [
  undefined,
  null,
  true,
  7,
  Number.POSITIVE_INFINITY,
  'a',
  '',
  ['a'],
  { a: 1 },
];
const kept = (check: (value: unknown) => unknown): unknown[] =>
  OTHERS.filter((value) => check(value) === value);

describe('values from outside', () => {
  test('only objects that are neither an array nor null have members', () => {
    expect(OTHERS.filter(isRecord)).toEqual([{ a: 1 }]);
    expect(OTHERS.map(membersOf)).toEqual(OTHERS.map((value) => (isRecord(value) ? value : {})));
    expect(Object.isFrozen(membersOf(null))).toBe(true);
  });

  test('a string, a finite number and the elements of an array are what they are, and nothing else is', () => {
    expect(kept(stringIn).slice(1)).toEqual(['a', '']);
    expect(OTHERS.map(textIn)).toEqual(OTHERS.map((value) => (typeof value === 'string' ? value : '')));
    expect(OTHERS.map(numberIn).filter((value) => value !== undefined)).toEqual([7]);
    expect(numberIn(Number.NaN)).toBeUndefined();
    expect(OTHERS.map(elementsOf).filter(({ length }) => length > 0)).toEqual([['a']]);
  });

  test('a table has its own entries only', () => {
    const table = { a: 1 };
    expect(['a', 'b', 'constructor', '__proto__'].map((name) => entryIn(table, name))).toEqual([
      1,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('a text is JSON, or it is not', () => {
    expect(['{"a":[1]}', '1e999', 'null', '', '{', "{'a':1}", 'undefined'].map(isJson)).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
    expect(() => parseJson('{')).toThrow(SyntaxError);
  });

  test.each(['[', '{"a":'])('a text that begins with 1,000 %s is JSON, and with 1,001 it is none', (open) => {
    const nested = (levels: number): string =>
      `${open.repeat(levels)}12345678901234567890${(open === '[' ? ']' : '}').repeat(levels)}`;
    const inside = (levels: number): string => `[7,{"b":${nested(levels - 2)},"c":[]}]`;
    for (const text of [nested, inside]) {
      expect([1_000, 1_001, 100_000].map((levels) => isJson(text(levels)))).toEqual([true, false, false]);
      expect(() => parseJson(text(1_001), (_, value) => value)).toThrow(
        'lists and objects are nested deeper than 1000',
      );
    }
  });

  test('only one function of the program calls JSON.parse, which has no bound of depth', () => {
    const root = fileURLToPath(new URL('../../src', import.meta.url));
    const callers = globSync('**/*.{ts,tsx}', { cwd: root }).filter((path) =>
      /^(?!\s*(?:\/\/|\*)).*\bJSON\.parse\(/m.test(readFileSync(join(root, path), 'utf8')),
    );
    expect(callers).toEqual(['core/foreign.ts']);
  });

  test('the code of what was thrown is a text', () => {
    const errors = [
      Object.assign(new Error('e'), { code: 'ECONNREFUSED' }),
      { code: 7 },
      null,
      'ECONNREFUSED',
      undefined,
    ];
    expect(errors.map(errorCode)).toEqual(['ECONNREFUSED', '', '', '', '']);
  });

  test('a value is shown without calling its members', () => {
    expect(OTHERS.map(shownValue)).toEqual([
      'undefined',
      'null',
      'true',
      '7',
      'null',
      'a',
      '',
      '["a"]',
      '{"a":1}',
    ]);
    expect(shownValue(parseJson('{"toString":7}'))).toBe('{"toString":7}');
  });
});
