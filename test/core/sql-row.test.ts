import { expect, test } from 'vitest';
import {
  bytes,
  integer,
  json,
  jsonObject,
  number,
  oneOf,
  optionalNumber,
  optionalText,
  type Row,
  RowError,
  rowsOf,
  text,
  time,
} from '../../src/core/sql-row.ts';

const VALUES = [
  undefined,
  null,
  true,
  0,
  -1.5,
  1e300,
  9n,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  '',
  'text',
  '7',
  '-7.5e3',
  '7 ',
  'NaN',
  '{"a":1}',
  '[1]',
  'null',
  new Uint8Array([1]),
  {},
  [],
];

/** What a reader returns of the values that it accepts; it must refuse all others with the name of the column. */
function accepted(read: (row: Row, column: string) => unknown): unknown[] {
  return VALUES.flatMap((value) => {
    try {
      return [[value, read(value === undefined ? {} : { c: value }, 'c')]];
    } catch (error) {
      expect(error).toBeInstanceOf(RowError);
      expect(error).toMatchObject({ code: 'database_unavailable' });
      expect((error as RowError).detail).toMatch(/^column c of the database contains no /);
      return [];
    }
  });
}

// brianc/node-postgres#1300, #1943, #26: numbers arrive as text, as `NaN` or as null.
test('each reader of a column accepts the values of its type alone', () => {
  const texts = VALUES.filter((value) => typeof value === 'string').map((value) => [value, value]);
  const numbers = [
    [0, 0],
    [-1.5, -1.5],
    [1e300, 1e300],
    [9n, 9],
    ['7', 7],
    ['-7.5e3', -7500],
  ];
  expect(accepted(text)).toEqual(texts);
  expect(accepted(optionalText)).toEqual([[null, null], ...texts]);
  expect(accepted(number)).toEqual(numbers);
  expect(accepted(optionalNumber)).toEqual([[null, null], ...numbers]);
  expect(accepted(integer)).toEqual([
    [0, 0n],
    [9n, 9n],
    ['7', 7n],
  ]);
  expect(accepted(bytes)).toEqual([[new Uint8Array([1]), new Uint8Array([1])]]);
  expect(accepted((row, column) => oneOf(row, column, ['text', 'other']))).toEqual([['text', 'text']]);
  expect(accepted(json)).toEqual([
    ['7', 7],
    ['-7.5e3', -7500],
    ['7 ', 7],
    ['{"a":1}', { a: 1 }],
    ['[1]', [1]],
    ['null', null],
  ]);
  expect(accepted(jsonObject)).toEqual([['{"a":1}', { a: 1 }]]);
});

test('a time of a column is one that a Date has', () => {
  expect(time({ c: '86400' }, 'c', 1000).toISOString()).toBe('1970-01-02T00:00:00.000Z');
  expect(time({ c: -8.64e15 }, 'c').getTime()).toBe(-8.64e15);
  for (const value of [8.64e15 + 1000, '1e300', null, 'now'])
    expect(() => time({ c: value }, 'c')).toThrow(RowError);
});

test('a result without a list of rows is refused', () => {
  expect(rowsOf({ rows: [{ a: 1 }] })).toEqual([{ a: 1 }]);
  for (const rows of [undefined, null, 'row', {}, [null], [[]], [{}, 5]])
    expect(() => rowsOf({ rows })).toThrow(RowError);
});
