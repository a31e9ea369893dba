import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findRepeated, repeatedMember, structureOf } from '../../src/core/json-members.ts';
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
    { numRuns: repeats(500, 2_000) },
  );
});

test('findRepeated reads arbitrary text to its end', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void findRepeated(text)));
  expect(findRepeated('{"a":1,"a"')).toBe('a');
  expect(findRepeated('}}]]{"a":1}{"a":1}')).toBeUndefined();
});
