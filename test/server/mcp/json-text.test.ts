import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  edit,
  elements,
  exceedsStructure,
  members,
  valueAt,
} from '../../../src/server/kernel/json/json-text.ts';
import { type ItemKind, inwardName, outwardName } from '../../../src/server/mcp/names/names.ts';
import { AT_ONCE } from '../../kit/at-once.ts';

/** JSON text with white space in every place that allows it. */
const spaced = fc.tuple(fc.json(), fc.constantFrom('', ' ', '\n', '\t \r\n')).map(([text, space]) => {
  const value: unknown = JSON.parse(text);
  return { value, text: space === '' ? text : `${space}${JSON.stringify(value, null, space)}${space}` };
});
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

describe('reading JSON text without parsing it', () => {
  test('the JSON text reader finds the members of every object with their values', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), (object) => {
        const text = JSON.stringify(object);
        const found = members(text).map(([key, { start, end }]) => [key, JSON.parse(text.slice(start, end))]);
        expect(found).toEqual(Object.entries(JSON.parse(text)));
      }),
    );
  });

  test('the JSON text reader finds the elements of every array', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (array) => {
        const text = JSON.stringify(array, null, 1);
        const found = elements(text).map(({ start, end }) => JSON.parse(text.slice(start, end)));
        expect(found).toEqual(JSON.parse(text));
      }),
    );
  });

  test('the JSON text reader finds the value at a path with any white space', () => {
    fc.assert(
      fc.property(spaced, ({ value, text }) => {
        const visit = (at: unknown, path: string[]): void => {
          const span = valueAt(text, path);
          expect(span && JSON.parse(text.slice(span.start, span.end))).toEqual(at);
          if (isObject(at)) for (const key of Object.keys(at)) visit(at[key], [...path, key]);
        };
        visit(value, []);
      }),
    );
  });

  test('the JSON text reader uses the last of duplicate keys, as JSON.parse does', () => {
    expect(valueAt('{"a":1,"a":2}', ['a'])).toEqual({ start: 11, end: 12 });
    for (const text of ['[]', '1', '"a"', 'null', '{"a":[1]}', '{}'])
      expect(valueAt(text, ['a', 'b'])).toBeUndefined();
  });
});

test('an edit of JSON text changes the value at its path and no byte elsewhere', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }),
      fc.jsonValue(),
      (object, replacement) => {
        const text = JSON.stringify(object, null, 2);
        const [key, span] = members(text).at(-1) as [string, { start: number; end: number }];
        const edited = edit(text, [{ ...span, text: JSON.stringify(replacement) }]);
        expect(JSON.parse(edited)).toEqual({
          ...JSON.parse(text),
          [key]: JSON.parse(JSON.stringify(replacement)),
        });
        expect(edited.startsWith(text.slice(0, span.start))).toBe(true);
        expect(edited.endsWith(text.slice(span.end))).toBe(true);
      },
    ),
  );
});

describe('depth and member limits of JSON text', () => {
  test('depth and member counts of JSON text equal those of a parser', () => {
    const depthOf = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
    const keysOf = (value: unknown): number =>
      typeof value === 'object' && value !== null
        ? Object.values(value).reduce(
            (sum: number, each) => sum + keysOf(each),
            Array.isArray(value) ? 0 : Object.keys(value).length,
          )
        : 0;
    fc.assert(
      fc.property(spaced, ({ value, text }) => {
        const [depth, keys] = [depthOf(value), keysOf(value)];
        expect(exceedsStructure(text, depth, keys)).toBe(false);
        if (depth > 0) expect(exceedsStructure(text, depth - 1, keys)).toBe(true);
        if (keys > 0) expect(exceedsStructure(text, depth, keys - 1)).toBe(true);
      }),
    );
  });

  test('depth and member counts work for any text in linear time', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void exceedsStructure(text, 10, 10)));
    const started = performance.now();
    for (const text of ['"'.repeat(2e6), '\\"'.repeat(1e6), `"${'\\'.repeat(2e6)}"`, '"\\'.repeat(1e6)])
      exceedsStructure(text, 128, 100_000);
    expect(performance.now() - started).toBeLessThan(AT_ONCE);
  });
});

test('a prefixed name resolves to its target and original name', () => {
  const target = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?$/);
  const kind = fc.constantFrom<ItemKind>('tool', 'prompt', 'resource', 'template');
  const name = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string().map((rest) => `ui://${rest}`),
  );
  fc.assert(
    fc.property(kind, target, name, (of, at, inner) => {
      expect(inwardName(of, outwardName(of, at, inner))).toEqual({ target: at, name: inner });
    }),
  );
});
