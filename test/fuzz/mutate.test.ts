import { describe, expect, test } from 'vitest';
import {
  type Change,
  changed,
  changesOf,
  MISSING,
  pieces,
  pointersOf,
  randomOf,
  shown,
  TWICE,
  VALUES,
} from './mutate.ts';

const DOCUMENT = { a: [1, { 'b/~c': null }], d: 'x' };

describe('changed documents of the shape fuzzer', () => {
  test('JSON pointers name a value and everything in it', () => {
    expect(pointersOf(DOCUMENT)).toEqual(['', '/a', '/a/0', '/a/1', '/a/1/b~1~0c', '/d']);
  });

  test.each<[string, Change[]]>([
    ['{"a":[1,{"b/~c":null}],"d":"x"}', []],
    ['{"a":[1,{"b/~c":1e400}],"d":"x"}', [{ at: '/a/1/b~1~0c', to: '1e400' }]],
    [
      '{"a":[{"b/~c":null}]}',
      [
        { at: '/a/0', to: MISSING },
        { at: '/d', to: MISSING },
      ],
    ],
    [
      '{"a":[1,1,{"b/~c":null}],"d":"x","d":"x"}',
      [
        { at: '/a/0', to: TWICE },
        { at: '/d', to: TWICE },
      ],
    ],
    [
      '5',
      [
        { at: '/d', to: '[]' },
        { at: '', to: '5' },
      ],
    ],
    ['', [{ at: '', to: MISSING }]],
  ])('a document becomes %j by its changes', (text, changes) => {
    expect(changed(DOCUMENT, changes)).toBe(text);
  });

  test('equal seeds give equal changes, and all values are used', () => {
    expect(changesOf(randomOf(7), DOCUMENT)).toEqual(changesOf(randomOf(7), DOCUMENT));
    const random = randomOf(1);
    const used = Array.from({ length: 2_000 }, () => changesOf(random, DOCUMENT)).flat();
    expect(VALUES.filter((value) => used.every(({ to }) => to !== value))).toEqual([]);
    expect(new Set(used.map(({ at }) => at)).size).toBe(6);
  });

  test('every change gives JSON, unless the whole document is missing', () => {
    const random = randomOf(2);
    for (let turn = 0; turn < 2_000; turn += 1) {
      const text = changed(DOCUMENT, changesOf(random, DOCUMENT));
      if (text !== '') JSON.parse(text);
    }
  });

  test('pieces of bytes are those bytes', () => {
    const random = randomOf(3);
    const bytes = Buffer.from('a text with é and \r\n');
    const cut = Array.from({ length: 200 }, () => pieces(random, bytes));
    for (const list of cut) expect(Buffer.concat(list).equals(bytes)).toBe(true);
    expect(Math.max(...cut.map(({ length }) => length))).toBe(6);
    expect(pieces(random, Buffer.alloc(0)).every(({ length }) => length === 0)).toBe(true);
  });

  test('a long value is abbreviated where a change is shown', () => {
    expect(shown({ at: '/a', to: `"${'x'.repeat(500)}"` })).toHaveLength(72);
    expect(shown({ at: '', to: MISSING })).toBe('all = (missing)');
  });
});
