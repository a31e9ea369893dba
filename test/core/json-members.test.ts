import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findRepeated, foldedName, repeatedMember, structureOf } from '../../src/core/json-members.ts';
import { repeats } from '../kit/thorough.ts';

interface Sample {
  readonly text: string;
  readonly isRepeated: boolean;
}

/** A JSON text built from the spelling of its members, with the expected `isRepeated`. */
const NAMES = ['a', 'b', '\\u0061', '__proto__', 'x\\"y', '1', '', 'é', '\\u00e9', '{', ',"a":'].map(
  (written) => (written.startsWith(',') ? JSON.stringify(written).slice(1, -1) : written),
);
const leaf = fc
  .constantFrom('1', '1.50', 'null', 'true', '""', '"a"', '"{\\"a\\":1,\\"a\\":2}"', '"\\\\"', '[]', '{}')
  .map((text): Sample => ({ text, isRepeated: false }));
const { value: sample } = fc.letrec<{ value: Sample }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 3 }).map(
      (items): Sample => ({
        text: `[ ${items.map(({ text }) => text).join(' ,')}]`,
        isRepeated: items.some(({ isRepeated }) => isRepeated),
      }),
    ),
    fc.array(fc.tuple(fc.constantFrom(...NAMES), tie('value')), { maxLength: 3 }).map((members): Sample => {
      const names = members.map(([name]) => JSON.parse(`"${name}"`) as string);
      return {
        text: `{${members.map(([name, { text }]) => ` "${name}" : ${text}`).join(',')} }`,
        isRepeated: new Set(names).size < names.length || members.some(([, { isRepeated }]) => isRepeated),
      };
    }),
  ),
}));

test('repeatedMember and findRepeated find a duplicate key in any JSON', () => {
  fc.assert(
    fc.property(sample, ({ text, isRepeated }) => {
      const found = repeatedMember(text, JSON.parse(text), structureOf(text, 128, 1_000));
      expect(found !== undefined).toBe(isRepeated);
      expect(findRepeated(text)).toBe(found);
    }),
    { numRuns: repeats(150, 2_000) },
  );
});

test('findRepeated reads arbitrary text to its end', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void findRepeated(text)));
  expect(findRepeated('{"a":1,"a"')).toBe('a');
  expect(findRepeated('}}]]{"a":1}{"a":1}')).toBeUndefined();
});

describe('foldedName', () => {
  // No character from U+20000 on has a case.
  const characters = Array.from({ length: repeats(0x2_00_00, 0x11_00_00) }, (_, code) => code)
    .filter((code) => code < 0xd8_00 || code > 0xdf_ff)
    .map((code) => String.fromCodePoint(code));

  test('makes each character equal to its lower and its upper case', () => {
    const differing = characters.filter((each) =>
      [each.toLowerCase(), each.toUpperCase(), foldedName(each)].some(
        (other) => foldedName(other) !== foldedName(each) && each !== '\u0130',
      ),
    );
    expect(differing).toEqual([]);
  });

  test('makes each character equal to the ASCII letter that is its lower or upper case in a simple mapping', () => {
    // U+0130 is the only character whose simple and full mappings to lower case differ.
    const simple = (text: string): string => text.replace(/\u0307$/u, '');
    const differing = characters.filter((each) =>
      [simple(each.toLowerCase()), each.toUpperCase()].some(
        (other) => /^[a-z]$/i.test(other) && foldedName(each) !== other.toLowerCase(),
      ),
    );
    expect(differing).toEqual([]);
    expect(characters.filter((each) => !/[a-z]/i.test(each) && /^[a-z]$/.test(foldedName(each)))).toEqual([
      '\u0130',
      '\u0131',
      '\u017f',
      '\u212a',
    ]);
  });
});
