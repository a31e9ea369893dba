import { describe, expect, it } from 'vitest';
import { reason, run } from '../run.ts';

describe('string methods', () => {
  it.each([
    ['"abc".startsWith("ab") && "abc".endsWith("bc") && "abc".contains("b")', true],
    ['"tacocat".charAt(3) + "tacocat".charAt(7)', 'o'],
    ['"tacocat".indexOf("ac") + "tacocat".indexOf("a", 2) + "tacocat".indexOf("z")', 5],
    ['"tacocat".indexOf("") + "tacocat".indexOf("", 7)', 7],
    ['"tacocat".indexOf("a", 30)', -1],
    ['"tacocat".lastIndexOf("c") + "tacocat".lastIndexOf("c", 3)', 6],
    ['"tacocat".lastIndexOf("at", 99)', -1],
    ['"tacocat".substring(4) + "tacocat".substring(0, 2) + "tacocat".substring(7)', 'catta'],
    ['"\u{1f600}b\u00e9".charAt(1) + "\u{1f600}b\u00e9".substring(0, 1)', 'b\u{1f600}'],
    ['"\u{1f600}b\u{1f600}".indexOf("b") + "\u{1f600}b\u{1f600}".lastIndexOf("\u{1f600}")', 3],
    ['size("\u{1f600}b\u00e9") + "\u{1f600}".size()', 4],
    ['"a,b,c".split(",")', ['a', 'b', 'c']],
    ['"a,b,c".split(",", 2)', ['a', 'b,c']],
    ['"a,b,c".split(",", 0)', []],
    ['"a,b,c".split(",", -1)', ['a', 'b', 'c']],
    ['"a,b,c".split(",", 9)', ['a', 'b', 'c']],
    ['"\u{1f600}b".split("")', ['\u{1f600}', 'b']],
    ['"abcd".split("", 2)', ['a', 'bcd']],
    ['"".split(",")', ['']],
    ['"aaa".replace("a", "b") + "aaa".replace("a", "b", 1) + "aaa".replace("a", "b", -1)', 'bbbbaabbb'],
    ['"ab".replace("", "_") + "ab".replace("", "_", 1)', '_a_b__ab'],
    ['"abab".replace("b", "$1", 0)', 'abab'],
    ['["a", "b"].join() + ["a", "b"].join("-") + [].join(",")', 'aba-b'],
    ['"A\u00c6z".lowerAscii() + "a\u00e6Z".upperAscii()', 'a\u00c6zA\u00e6Z'],
    ['" \\t\u0085\u2003a b\\n ".trim()', 'a b'],
    ['"Bearer x".stripPrefix("Bearer ") + "x".stripPrefix("y") + "a.js".stripSuffix(".js")', 'xxa'],
    ['"token".unredacted()', 'token'],
  ])('CEL string method gives the expected value: %s', (source, expected) => {
    expect(run(source)).toEqual(expected);
  });

  it.each([
    ['"abc".charAt(4)', 'index_out_of_range'],
    ['"abc".charAt(-1)', 'index_out_of_range'],
    ['"abc".substring(2, 1)', 'index_out_of_range'],
    ['"abc".substring(1, 4)', 'index_out_of_range'],
    ['"abc".substring(-1)', 'index_out_of_range'],
    ['"abc".indexOf("a", -1)', 'index_out_of_range'],
    ['"abc".indexOf(1)', 'no_such_overload'],
    ['1.split(",")', 'no_such_overload'],
    ['["a", 1].join(",")', 'no_such_overload'],
    ['"abc".startsWith(1)', 'no_such_overload'],
  ])('CEL string method %s fails: %s', (source, expected) => {
    expect(reason(source)).toBe(expected);
  });
});

describe('regular expressions', () => {
  it.each([
    ['"/api/v1/x".matches("^/api/v[0-9]+/") && "xay".matches("a") && !"abc".matches("^b")', true],
    ['"ABC".matches("(?i)abc")', true],
    ['"blah id=1234 bar id=5".regexReplace("id=(.+?) ", "[$1] ")', 'blah [1234] bar id=5'],
    ['"/id/1/x".regexReplace("/id/[0-9]*/", "/id/{id}/")', '/id/{id}/x'],
    ['"abc".regexReplace("z", "y")', 'abc'],
    ['"ab".matches("a" + "b")', true],
  ])('CEL regular expression gives the expected value: %s', (source, expected) => {
    expect(run(source)).toBe(expected);
  });

  it('CEL regular expression from a variable is checked at evaluation', () => {
    expect(run('"aa".matches(jwt.p)', { jwt: { p: '^a+$' } })).toBe(true);
    expect(reason('"aa".matches(jwt.p)', { jwt: { p: '(?=a)' } })).toBe('invalid_argument');
    expect(reason('"aa".matches(jwt.p)', { jwt: { p: 'a'.repeat(1_001) } })).toBe('invalid_argument');
  });
});
