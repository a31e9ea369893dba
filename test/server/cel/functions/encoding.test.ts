import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { reason, run } from '../run.ts';

describe('encoding functions', () => {
  it.each([
    ['base64.encode("hello") + base64Encode(b"\\xff")', 'aGVsbG8=/w=='],
    ['string(base64.decode("aGVsbG8=")) + string(base64Decode("Zg"))', 'hellof'],
    ['url.encode("a b/?x=1&y=\u00e9-._~!")', 'a%20b%2F%3Fx%3D1%26y%3D%C3%A9-._~%21'],
    ['url.decode("a%20b+c%2f%zz%")', 'a b+c/%zz%'],
    ['form.decode("a=1&b=x+y%21&a=2&a=3&c")', { a: ['1', '2', '3'], b: 'x y!', c: '' }],
    ['form.encode({"b": "x y", "a": ["1", "2"], "n": null})', 'a=1&a=2&b=x+y'],
    ['sha256.encode("hello")', createHash('sha256').update('hello').digest('hex')],
    ['sha1.encode(b"hello")', 'aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d'],
    ['md5.encode("hello")', '5d41402abc4b2a76b9719d911017c592'],
    [
      'uuid().matches("^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$") && uuid() != uuid()',
      true,
    ],
  ])('CEL encoding function gives the expected value: %s', (source, expected) => {
    expect(run(source)).toEqual(expected);
  });

  it.each([
    ['base64.decode("a")', 'invalid_argument'],
    ['base64.decode("a b=")', 'invalid_argument'],
    ['base64.encode(1)', 'no_such_overload'],
    ['url.decode("%FF")', 'invalid_argument'],
    ['url.decode(b"a")', 'no_such_overload'],
    ['form.encode([])', 'no_such_overload'],
    ['form.encode({"a": 1})', 'no_such_overload'],
    ['form.decode({})', 'no_such_overload'],
    ['fail("x")', 'failed'],
  ])('CEL encoding function %s fails: %s', (source, expected) => {
    expect(reason(source)).toBe(expected);
  });
});

describe('JSON functions', () => {
  it.each([
    ['json("{\\"a\\": {\\"b\\": [1, 2.5]}}").a.b[0] + 1', 2],
    ['json(b"[1]")[0]', 1],
    ['jsonField("{\\"a\\": 1}", "a")', 1],
    [
      'toJson({"a": [1, 2.5, null, true], "b": b"x", "t": timestamp(0)})',
      '{"a":[1,2.5,null,true],"b":"eA==","t":"1970-01-01T00:00:00Z"}',
    ],
    ['to_json("a\\"b")', '"a\\"b"'],
    ['json(toJson({"__proto__": 1})).__proto__', 1],
    ['unvalidatedJwtPayload(jwt).sub + string(unvalidatedJwtPayload(jwt).admin)', '~~~true'],
  ])('CEL JSON function gives the expected value: %s', (source, expected) => {
    const jwt = `x.${Buffer.from('{"sub":"~~~","admin":true}').toString('base64url')}.y`;
    expect(run(source, { jwt })).toEqual(expected);
  });

  it.each([
    ['json("{")', 'invalid_argument'],
    ['json("")', 'invalid_argument'],
    ['json(1)', 'no_such_overload'],
    ['json("[{\\"a\\": 1, \\"a\\": 2}]")', 'invalid_argument'],
    ['json(b"{\\"a\\": 1, \\"\\\\u0061\\": 2}")', 'invalid_argument'],
    ['jsonField("{\\"b\\": {\\"a\\": 1, \\"a\\": 2}, \\"c\\": 1}", "c")', 'invalid_argument'],
    ['jsonField("{}", "a")', 'no_such_key'],
    ['jsonField("[1]", "a")', 'no_such_key'],
    ['unvalidatedJwtPayload("a.b")', 'invalid_argument'],
    ['unvalidatedJwtPayload("a.b.c")', 'invalid_argument'],
  ])('CEL JSON function %s fails: %s', (source, expected) => {
    expect(reason(source)).toBe(expected);
  });

  it.each([
    ['short', 129],
    ['long', 100_000],
  ])('CEL json() rejects %s strings that nest too deeply', (_what, depth) => {
    expect(reason('json(body)', { body: '['.repeat(depth) + ']'.repeat(depth) })).toBe('invalid_argument');
  });

  it.each([
    ['30,000 members are read', 30_000, true],
    ['one more is refused', 30_001, false],
  ])('CEL json() member limit: %s', (_what, count, accepted) => {
    const body = `{${Array.from({ length: count }, (_, index) => `"k${index}":":"`).join(',')}}`;
    if (accepted) expect(run('json(body).k29999', { body })).toBe(':');
    else expect(reason('json(body)', { body })).toBe('invalid_argument');
  });

  it('CEL json() does not count brackets inside strings as nesting', () => {
    const body = JSON.stringify({ text: `\\"${'[{'.repeat(5_000)}`, sub: 'a' });
    expect(run('json(body).sub', { body })).toBe('a');
  });
});
