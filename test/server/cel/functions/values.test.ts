import { describe, expect, it } from 'vitest';
import { reason, run } from '../run.ts';

describe('collection functions', () => {
  it.each([
    ['size([1, 2]) + {"a": 1}.size() + size(b"abc") + "ab".size()', 8],
    ['[1, 2].contains(2.0) && {"a": 1}.contains("a") && b"abc".contains(b"bc") && !"ab".contains("c")', true],
    ['{"a": 2, "k": "v"}.merge({"a": 3, "z": 1})', { a: 3, k: 'v', z: 1 }],
    ['toJson(jwt.merge({"b": 1}))', '{"a":1,"b":1,"c":2}'],
  ])('CEL collection function gives the expected value: %s', (source, expected) => {
    expect(run(source, { jwt: { a: 1, b: 9, c: 2 } })).toEqual(expected);
  });

  it.each([['size(1)'], ['1.size()'], ['[1].merge({})'], ['{}.merge([1])'], ['null.contains(1)']])(
    'CEL collection function %s fails',
    (source) => {
      expect(reason(source)).toBe('no_such_overload');
    },
  );
});

describe('conversion functions', () => {
  it.each([
    ['int("-42") + int(42u) + int(2.9) + int(-2.9) + int(timestamp("1970-01-01T00:01:00Z"))', 60],
    ['double("1.5") + double(1) + double(2u) + double("-2e3")', -1995.5],
    ['double("Infinity") > 1.0 && double("-inf") < 1.0 && double("NaN") != double("NaN")', true],
    ['uint("7") + uint(3) + uint(1.9)', 11],
    ['string(1) + string(1u) + string(1.5) + string(true) + string(b"x") + string("y")', '111.5truexy'],
    [
      'string(type(1)) + string(duration("90s")) + string(timestamp(0)) + string(ip("::1"))',
      'int90s1970-01-01T00:00:00Z::1',
    ],
    ['string(1.0 / 0.0) + string(-1.0 / 0.0) + string(0.0 / 0.0)', '+Inf-InfNaN'],
    ['string(b"a\\xff")', 'a\ufffd'],
    ['bool("t") && bool("TRUE") && !bool("0")', true],
    ['bytes("\u00e9") == b"\\xc3\\xa9" && dyn(1) == 1', true],
    [
      'type(1) == int && type([]) == list && type({}) == map && type(null) == null_type && type(type(1)) == type',
      true,
    ],
    ['type(timestamp(0)) == google.protobuf.Timestamp && type(b"") == bytes && type(1u) == uint', true],
  ])('CEL conversion gives the expected value: %s', (source, expected) => {
    expect(run(source)).toBe(expected);
  });

  it.each([
    ['int("x")', 'invalid_argument'],
    ['int("0x10")', 'invalid_argument'],
    ['int(" 1")', 'invalid_argument'],
    ['int("9223372036854775808")', 'overflow'],
    [`int("${'9'.repeat(5_000)}")`, 'invalid_argument'],
    ['int(1e99)', 'overflow'],
    ['int(0.0 / 0.0)', 'overflow'],
    ['int([1])', 'no_such_overload'],
    ['uint(-1)', 'overflow'],
    ['uint("-1")', 'invalid_argument'],
    ['double("1x")', 'invalid_argument'],
    ['double("")', 'invalid_argument'],
    ['double("constructor")', 'invalid_argument'],
    ['double("-__proto__")', 'invalid_argument'],
    ['bool("yes")', 'invalid_argument'],
    ['bool("__proto__")', 'invalid_argument'],
    ['string([1])', 'no_such_overload'],
    ['bytes(1)', 'no_such_overload'],
  ])('CEL conversion %s fails: %s', (source, expected) => {
    expect(reason(source)).toBe(expected);
  });
});

describe('time functions', () => {
  const t = 'timestamp("2024-02-29T23:59:58.123456789Z")';

  it.each([
    [`string(${t})`, '2024-02-29T23:59:58.123456789Z'],
    [`[${t}.getFullYear(), ${t}.getMonth(), ${t}.getDate(), ${t}.getDayOfMonth()]`, [2024, 1, 29, 28]],
    [`[${t}.getDayOfWeek(), ${t}.getDayOfYear(), ${t}.getHours(), ${t}.getMinutes()]`, [4, 59, 23, 59]],
    [`[${t}.getSeconds(), ${t}.getMilliseconds()]`, [58, 123]],
    [`[${t}.getHours("+02:30"), ${t}.getHours("-01:00"), ${t}.getDate("Asia/Tokyo")]`, [2, 22, 1]],
    ['timestamp("2024-06-01T12:00:00+02:00") == timestamp("2024-06-01T10:00:00Z")', true],
    ['timestamp(1700000000)', '2023-11-14T22:13:20Z'],
    ['timestamp("2024-01-01T00:00:00Z") - timestamp("2023-12-31T00:00:00Z")', '86400s'],
    ['duration("1h1m1s1ms") + duration("-0.5s")', '3660.501s'],
    [
      '[duration("90m").getHours(), duration("90m").getMinutes(), duration("1.5s").getMilliseconds()]',
      [1, 90, 500],
    ],
    ['duration("1.5h") > duration("89m") && duration("0") == duration("0s")', true],
  ])('CEL time function gives the expected value: %s', (source, expected) => {
    expect(run(source)).toEqual(expected);
  });

  it.each([
    ['timestamp("2024-02-30T00:00:00Z")', 'invalid_argument'],
    ['timestamp("2024-02-01")', 'invalid_argument'],
    ['timestamp("nonsense")', 'invalid_argument'],
    ['timestamp("9999-12-31T23:59:59Z") + duration("1s")', 'overflow'],
    ['timestamp(999999999999999)', 'overflow'],
    ['timestamp(1.5)', 'no_such_overload'],
    ['duration("1")', 'invalid_argument'],
    ['duration("")', 'invalid_argument'],
    ['duration("1h-1m")', 'invalid_argument'],
    // Took minutes while each number could be read in three ways.
    [`duration("${'111h'.repeat(15)}111")`, 'invalid_argument'],
    ['duration("99999999999h")', 'overflow'],
    ['timestamp(0).getHours("Nowhere/City")', 'invalid_argument'],
    ['duration("1s").getFullYear()', 'no_such_overload'],
  ])('CEL time function %s fails: %s', (source, expected) => {
    expect(reason(source)).toBe(expected);
  });
});

describe('optional values', () => {
  it.each([
    ['optional.of(1).value() + optional.ofNonZeroValue(2).value()', 3],
    ['[0, 0.0, "", false, null, [], {}, b"", 0u].exists(x, optional.ofNonZeroValue(x).hasValue())', false],
    ['[1, "a", [0], {"a": 0}].all(x, optional.ofNonZeroValue(x).hasValue())', true],
    [
      'optional.none() == optional.none() && optional.of(1) == optional.of(1.0) && optional.of(1) != optional.none()',
      true,
    ],
  ])('CEL optional gives the expected value: %s', (source, expected) => {
    expect(run(source)).toBe(expected);
  });

  it('CEL optional.none().value() fails with no_such_key', () => {
    expect(reason('optional.none().value()')).toBe('no_such_key');
  });
});
