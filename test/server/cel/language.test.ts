import { describe, expect, it } from 'vitest';
import { reason, run } from './run.ts';

describe('operators', () => {
  it.each([
    ['true ? 1 : "a"', 1],
    ['1 == 1.0 && 1u == 1 && 2.5 > 2', true],
    ['1 == "1"', false],
    ['"a" == 1 || true', true],
    ['1 / 0 == 1 || true', true],
    ['false && 1 / 0 == 1', false],
    ['1 / 0 == 1 && false', false],
    ['7 / 2', 3],
    ['-7 / 2', -3],
    ['-7 % 3', -1],
    ['7.0 / 2.0', 3.5],
    ['"a" in ["a", "b"] && !("c" in ["a"])', true],
    ['"a" in {"a": 1} && !("b" in {"a": 1})', true],
    ['{"a": 1}["a"] + {"b": 2}.b', 3],
    ['{1: "x"}[1.0]', 'x'],
    ['[1, 2] + [3]', [1, 2, 3]],
    ['b"a" + b"\\xff" == b"a\\xff"', true],
    ['b"\u00e9" == bytes("\u00e9")', true],
    ['"\u{1f600}" > "\uff5e"', true],
    ['timestamp("2026-01-31T00:00:00Z") + duration("36h") < timestamp("2026-02-02T00:00:00Z")', true],
    ['{"a": [1, {"b": 2}]} == {"a": [1.0, {"b": 2u}]}', true],
    ['0.0 / 0.0 == 0.0 / 0.0', false],
  ])('CEL operator gives the expected value: %s', (source, expected) => {
    expect(run(source)).toEqual(expected);
  });

  it.each([
    ['1 + 1.0', 'no_such_overload'],
    ['1 / 0', 'division_by_zero'],
    ['1 % 0', 'division_by_zero'],
    ['9223372036854775807 + 1', 'overflow'],
    ['-(-9223372036854775808)', 'overflow'],
    ['0u - 1u', 'overflow'],
    ['[1][1]', 'index_out_of_range'],
    ['[1][-1]', 'index_out_of_range'],
    ['[1]["0"]', 'no_such_overload'],
    ['{"a": 1}.b', 'no_such_key'],
    ['"a".b', 'no_such_key'],
    ['null.b', 'no_such_key'],
    ['1 ? 2 : 3', 'no_such_overload'],
    ['"a" || false', 'no_such_overload'],
    ['1 < "a"', 'no_such_overload'],
    ['1 in 1', 'no_such_overload'],
    ['"bc" in "abcd"', 'no_such_overload'],
    ['{"a": 1, "a": 2}', 'invalid_argument'],
    ['{1.5: 1}', 'no_such_overload'],
    ['!1', 'no_such_overload'],
  ])('CEL operator %s fails: %s', (source, expected) => {
    expect(reason(source)).toBe(expected);
  });
});

describe('macros', () => {
  const jwt = { roles: ['a', 'b'], empty: null, nested: { n: 1 } };

  it.each([
    ['has(jwt.roles) && !has(jwt.other) && has(jwt.empty) && has(jwt.nested["n"])', true],
    ['has(json("{\\"a\\":1}").a)', true],
    ['!has(jwt.?other.n) && !has(jwt.nested.m)', true],
    ['default(jwt.empty.n, 1) + jwt.?empty.?n.orValue(1)', 2],
    ['jwt.roles.all(r, r < "c") && jwt.roles.exists(r, r == "b")', true],
    ['jwt.roles.exists_one(r, r == "a") && jwt.roles.existsOne(r, r == "a")', true],
    ['[1, 0].exists(x, 1 / x == 1) && ![0, 3].all(x, 1 / x == 1)', true],
    ['[].all(e, e > 0)', true],
    ['jwt.roles.map(r, r + "!")', ['a!', 'b!']],
    ['[1, 2, 3].map(x, x > 1, x * 10)', [20, 30]],
    ['[1, 2, 3].filter(x, x != 2)', [1, 3]],
    ['{"a": 1, "b": 2}.map(k, k)', ['a', 'b']],
    [
      '[1, 2].map(x, [3, 4].map(y, x * y))',
      [
        [3, 4],
        [6, 8],
      ],
    ],
    ['[1, 2].map(x, [x].map(x, x + 1)[0] + x)', [3, 5]],
    ['{"a": 1}.mapValues(v, v + 1)', { a: 2 }],
    ['{"a": 1, "b": 2}.filterKeys(k, k != "a")', { b: 2 }],
    ['{"a": 1, "b": 2}.removeKeys(k, k == "a")', { b: 2 }],
    ['jwt.nested.with(x, x.n + x.n)', 2],
    ['cel.bind(x, 2, x * x)', 4],
    ['default(jwt.other, 1) + default(jwt.nested.n, 5)', 2],
    ['default(jwt.empty, "d")', 'd'],
    ['coalesce(jwt.other, 1 / 0, jwt.empty, 3)', 3],
    ['coalesce(jwt.empty, 1 / 0)', null],
    ['optional.of(1).or(optional.of(1 / 0)).value() + optional.none().orValue(2)', 3],
    ['jwt.?nested.?n.orValue(0) + jwt.?other.?n.orValue(5)', 6],
    ['[1, 2][?5].hasValue()', false],
    ['variables().jwt.nested.n', 1],
  ])('CEL macro gives the expected value: %s', (source, expected) => {
    expect(run(source, { jwt })).toEqual(expected);
  });

  it.each([
    ['has(jwt.other.n)', 'no_such_key'],
    ['has("a".b)', 'no_such_overload'],
    ['has(jwt.roles[0].b)', 'no_such_overload'],
    ['has(jwt.nested.n.b)', 'no_such_overload'],
    ['has(jwt.empty.b)', 'no_such_overload'],
    ['has(cel.bind(x, null, x).b)', 'no_such_overload'],
    ['[null].exists(x, has(x.b))', 'no_such_overload'],
    ['has(jwt.roles.b)', 'no_such_overload'],
    ['has(true.b)', 'no_such_overload'],
    ['has(jwt.?nested.n.b)', 'no_such_overload'],
    ['default(jwt.nested.n.b, 1)', 'no_such_key'],
    ['default(jwt.roles.b, 1)', 'no_such_key'],
    ['jwt.?nested.?n.?b.orValue(1)', 'no_such_key'],
    ['default(1 / 0, 1)', 'division_by_zero'],
    ['default([1][3], 1)', 'index_out_of_range'],
    ['coalesce(jwt.other, 1 / 0)', 'division_by_zero'],
    ['[1, 0].all(x, 1 / x == 1)', 'division_by_zero'],
    ['[1].all(x, x)', 'no_such_overload'],
    ['[1].filter(x, x)', 'no_such_overload'],
    ['1.map(x, x)', 'no_such_overload'],
    ['[1].mapValues(v, v)', 'no_such_overload'],
    ['{"a": 1}.filterKeys(k, 42)', 'no_such_overload'],
    ['[1, 1].exists_one(x, 1 / 0 == 1)', 'division_by_zero'],
    ['"a".orValue("b")', 'no_such_overload'],
  ])('CEL macro %s fails: %s', (source, expected) => {
    expect(reason(source, { jwt })).toBe(expected);
  });

  it('CEL variables() omits roots that are not set', () => {
    expect(run('variables()', { jwt: { sub: 'a' }, request: null })).toEqual({ jwt: { sub: 'a' } });
  });
});
