import { describe, expect, it } from 'vitest';
import { reason, run } from '../run.ts';

describe('numeric functions', () => {
  it.each([
    ['min(2000, 1024)', 1024],
    ['min(3, 1.5, 2u) == 1.5 && max([1, 5, 2]) == 5 && min("b", "a") == "a"', true],
    ['min()', null],
    ['math.least(1, -2.0) == -2.0 && math.greatest([1u, 0.0]) == 1', true],
    [
      '[math.ceil(1.2), math.floor(-1.2), math.trunc(-1.7), math.round(1.5), math.round(-1.5)]',
      [2, -2, -1, 2, -2],
    ],
    [
      '[math.abs(-3), math.abs(2u), math.abs(-1.5), math.sign(-42), math.sign(0.5), math.sqrt(81)]',
      [3, 2, 1.5, -1, 1, 9],
    ],
    [
      'math.isNaN(0.0 / 0.0) && math.isInf(-1.0 / 0.0) && math.isFinite(1.0) && !math.isFinite(1.0 / 0.0)',
      true,
    ],
    ['random() >= 0.0 && random() < 1.0', true],
  ])('CEL numeric function gives the expected value: %s', (source, expected) => {
    expect(run(source)).toEqual(expected);
  });

  it.each([
    ['min(1, "a")', 'no_such_overload'],
    ['min(true, false)', 'no_such_overload'],
    ['math.least("a")', 'no_such_overload'],
    ['math.greatest([])', 'no_such_overload'],
    ['math.ceil(1)', 'no_such_overload'],
    ['math.abs(-9223372036854775808)', 'overflow'],
    ['math.sqrt("4")', 'no_such_overload'],
  ])('CEL numeric function %s fails: %s', (source, expected) => {
    expect(reason(source)).toBe(expected);
  });
});

describe('bit functions', () => {
  it.each([
    ['[math.bitAnd(-3, -5), math.bitOr(-2, -4), math.bitXor(1, 3), math.bitNot(1)]', [-7, -2, 2, -2]],
    ['[math.bitAnd(3u, 2u), math.bitOr(1u, 2u), math.bitXor(3u, 5u)]', [2, 3, 6]],
    ['string(math.bitNot(0u))', '18446744073709551615'],
    [
      '[math.bitShiftLeft(1, 2), math.bitShiftLeft(-1, 2), math.bitShiftLeft(1, 64), math.bitShiftRight(1024, 2)]',
      [4, -4, 0, 256],
    ],
    ['string(math.bitShiftRight(-1024, 3))', '2305843009213693824'],
    [
      'math.bitAnd(b"\\x05", b"\\x03") == b"\\x01" && math.bitOr(b"\\x00\\x01", b"\\x02") == b"\\x00\\x03"',
      true,
    ],
    ['[math.bitAnd(4, b"\\x05"), math.bitAnd(b"\\x01\\x00\\x05", 4)]', [4, 4]],
    ['math.bitAnd(4u, b"\\x05") == 4u', true],
  ])('CEL bit function gives the expected value: %s', (source, expected) => {
    expect(run(source)).toEqual(expected);
  });

  it.each([
    ['math.bitAnd(1, 2u)', 'no_such_overload'],
    ['math.bitAnd(-1, b"\\x01")', 'invalid_argument'],
    [`math.bitOr(b"${'a'.repeat(33)}", b"a")`, 'invalid_argument'],
    ['math.bitShiftLeft(1, -1)', 'invalid_argument'],
    ['math.bitNot(1.5)', 'no_such_overload'],
  ])('CEL bit function %s fails: %s', (source, expected) => {
    expect(reason(source)).toBe(expected);
  });
});
