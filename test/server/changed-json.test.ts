import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { writeChanged } from '../../src/server/kernel/json/changed-json.ts';

const parse = (text: string): never => JSON.parse(text) as never;
const changed = (text: string, change: (value: never) => unknown): string =>
  writeChanged(text, parse(text), change(parse(text)));

describe('changed JSON', () => {
  test.each<[string, string, (value: never) => unknown, string]>([
    [
      'a member beside long numbers and spaces',
      ' {"a" : [1.0, 9007199254740993 ], "b":"x", "c": {"d":-0.0}}\n',
      (value: { b: string }) => ({ ...value, b: 'y' }),
      '{"a":[1.0,9007199254740993],"b":"y","c":{"d":-0.0}}',
    ],
    [
      'one of several items',
      '[{"n":9007199254740993,"t":"x"},{"n":1e400,"t":"y"}]',
      ([first, second]: { t: string }[]) => [first, { ...second, t: 'z' }],
      '[{"n":9007199254740993,"t":"x"},{"n":1e400,"t":"z"}]',
    ],
    [
      'items around those of before',
      '[{"n":1.0},{"n":2.0}]',
      (list: unknown[]) => ['before', ...list, 'after'],
      '["before",{"n":1.0},{"n":2.0},"after"]',
    ],
    [
      'a removed item',
      '[{"n":1.0},{"n":2.0},{"n":3.0}]',
      ([first, , last]: unknown[]) => [first, last],
      '[{"n":1.0},{"n":3.0}]',
    ],
    [
      'removed and added members',
      '{"a":1.0,"b":2.0}',
      ({ b }: { b: number }) => ({ b, c: 3 }),
      '{"b":2.0,"c":3}',
    ],
    [
      'the last of duplicate members',
      '{"a":1.0,"a":2.0,"b":0}',
      (value: object) => ({ ...value, b: 1 }),
      '{"a":2.0,"b":1}',
    ],
    ['a value of another kind', '{"a":[1.0]}', () => ({ a: { '0': 1 } }), '{"a":{"0":1}}'],
    ['an escaped name', '{"\\u0061":1.0,"b":0}', (value: object) => ({ ...value, b: 1 }), '{"a":1.0,"b":1}'],
  ])('%s', (_, text, change, expected) => {
    expect(changed(text, change)).toBe(expected);
  });

  test('any value can become any other', () => {
    const space = fc.constantFrom('', ' ', '\n');
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.json({ maxDepth: 4 }), space, (text, other, around) => {
        const spaced = `${around}${JSON.stringify(parse(text), null, around)}${around}`;
        // `JSON.stringify` writes -0 as 0.
        const after = parse(JSON.stringify(parse(other)));
        expect(JSON.parse(writeChanged(spaced, parse(spaced), after))).toEqual(after);
      }),
    );
  });

  test('a changed string leaves everything else as it is', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.string(), (rest, said) => {
        const text = `{"n":1.0,"rest":${rest},"said":"","more":[ ${rest} ,""]}`;
        const value = parse(text) as { rest: unknown };
        const after = { ...value, said, more: [value.rest, said] };
        const plain = (spaced: string): string => JSON.stringify(JSON.parse(spaced));
        const written = writeChanged(text, value, after);
        expect(written.startsWith(`{"n":1.0,"rest":${rest.trim()},"said":`)).toBe(true);
        expect(plain(written)).toBe(plain(JSON.stringify(after)));
      }),
    );
  });
});
