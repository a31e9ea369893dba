import { describe, expect, it } from 'vitest';
import { HeadersView } from '../../../src/server/expressions/cel/expression.ts';
import { reason, run } from './run.ts';

const request = {
  headers: new HeadersView([
    'Single',
    'z',
    'Multi',
    'a,b',
    'multi',
    'c',
    'Authorization',
    'Bearer token',
    'Cookie',
    'a=1; session="s p"; broken; =x',
    'COOKIE',
    'late=2',
    'X-Empty',
    '',
    'X-Latin',
    'caf\u00e9',
  ]),
};

describe('HeadersView', () => {
  it.each([
    ['request.headers["SINGLE"]', 'z'],
    ['request.headers.single', 'z'],
    ['request.headers.multi', ['a,b', 'c']],
    ['request.headers["x-empty"]', ''],
    ['request.headers["x-latin"] == "caf\u00e9"', true],
    ['request.headers.join().multi', 'a,b,c'],
    ['request.headers.raw().single', ['z']],
    ['request.headers.raw().multi', ['a,b', 'c']],
    ['request.headers.split().multi', ['a', 'b', 'c']],
    ['request.headers.raw().join().multi + request.headers.split().join().single', 'a,b,cz'],
    ['request.headers.redacted().authorization', '<redacted>'],
    ['request.headers.redacted().raw()["Authorization"]', ['<redacted>']],
    ['request.headers.redacted().single', 'z'],
    ['request.headers.authorization', 'Bearer token'],
    ['request.headers.cookie("a") + request.headers.cookie("late")', '12'],
    ['request.headers.cookie("session")', 's p'],
    ['"single" in request.headers && "MULTI" in request.headers && !("x" in request.headers)', true],
    ['has(request.headers.single) && has(request.headers["single"]) && !has(request.headers.x)', true],
    ['size(request.headers)', 6],
    ['request.headers.map(name, name)', ['single', 'multi', 'authorization', 'cookie', 'x-empty', 'x-latin']],
    ['request.headers.filterKeys(k, k == "single")', { single: 'z' }],
    ['type(request.headers) == map', true],
    ['default(request.headers["missing"], "anonymous")', 'anonymous'],
  ])('CEL header access gives the expected value: %s', (source, expected) => {
    expect(run(source, { request })).toEqual(expected);
  });

  it('CEL access to a missing header or cookie fails with no_such_key', () => {
    expect(reason('request.headers["missing"]', { request })).toBe('no_such_key');
    expect(reason('request.headers.cookie("missing")', { request })).toBe('no_such_key');
    expect(reason('request.headers.cookie("")', { request })).toBe('no_such_key');
  });

  it('CEL header access with a key that is not a string fails with no_such_key', () => {
    expect(reason('request.headers[1]', { request })).toBe('no_such_key');
  });
});
