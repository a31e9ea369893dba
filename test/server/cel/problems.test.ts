import { describe, expect, it } from 'vitest';
import { problem } from './run.ts';

const TOKEN_NAMES = /token|EOF|R?PAREN|BRACKET|BRACE|IDENTIFIER|DIVIDE|LPAREN/;

/** Source with the reported range between `«` and `»`, and the expected message and hint. */
const MISTAKES: readonly [string, string, string, RegExp?][] = [
  ['AGW0201', 'request.headers["x-team"] «=» "core"', 'unexpected `=`', /use `==`/],
  ['AGW0201', 'min(jwt.a, 1024«»', 'missing `)`'],
  ['AGW0201', 'min(jwt.a, [1, 2«»', 'missing `]`'],
  ['AGW0201', 'jwt.a ? 1«»', 'missing `:`'],
  ['AGW0201', '«/v1/check»', 'cannot start with `/`', /'"\/v1\/check"'/],
  ['AGW0201', '«https://idp.example/check»', 'a URL is not a CEL expression', /quote it/],
  ['AGW0201', 'jwt.a == "a" «&» jwt.b == "b"', 'unexpected single `&`', /use `&&`/],
  ['AGW0201', 'jwt.a == "a" «|» jwt.b == "b"', 'unexpected single `|`', /use `\|\|`/],
  ['AGW0201', 'jwt.a == "a" «and» jwt.b == "b"', 'unexpected `and`', /use `&&`/],
  ['AGW0201', 'jwt.a «jwt»', 'unexpected `jwt`', /an operator is missing/],
  ['AGW0201', '«"»abc', 'missing " at the end of a string'],
  ['AGW0201', '«\u201c»abc\u201d', 'unexpected', /straight quotes/],
  ['AGW0201', 'jwt.«»', 'a name must follow the `.`'],
  ['AGW0201', '1 +«» ', 'ends too early'],
  ['AGW0201', '«»', 'empty'],
  ['AGW0201', '"«\\d»+"', 'not a valid escape', /r"/],
  ['AGW0201', '«if»', 'reserved word'],
  ['AGW0201', '[1].map(«1», 2)', 'expected a new variable name'],
  ['AGW0201', 'has(«jwt»)', '`has` needs a member'],
  ['AGW0201', '«9223372036854775808»', 'does not fit in 64 bits'],
  ['AGW0201', 'jwt.a.matches(«"(?=a)"»)', 'not valid RE2', /look-around/],
  ['AGW0202', '«jwtt».sub == "a"', 'unknown variable `jwtt`', /similar name exists: `jwt`/],
  ['AGW0202', '«mcp».tool.name', '`mcp` is not available here', /available here: request, jwt/],
  ['AGW0202', '«respons».code', 'unknown variable', /`response`, which is not available here/],
  ['AGW0202', '«gpt4o»', 'unknown variable `gpt4o`', /"gpt4o"/],
  ['AGW0202', 'request.«header»["x"] == "a"', 'no member `header`', /`request\.headers`/],
  ['AGW0202', 'request[«"pth"»]', 'no member `pth`', /`request\.path`/],
  ['AGW0203', '«foo(1)»', 'unknown function `foo`'],
  ['AGW0203', '«jwt.a.startswith("x")»', 'unknown method `startswith`', /`startsWith`/],
  ['AGW0203', '«math.abss(1)»', 'unknown function `math.abss`', /`math.abs`/],
  ['AGW0203', '«size()»', '`size` cannot be called with no arguments', /1 argument/],
  [
    'AGW0203',
    '«"a".substring(1, 2, 3)»',
    '`substring` cannot be called with 3 arguments',
    /1 to 2 arguments/,
  ],
  ['AGW0203', '«split("a,b", ",")»', 'is a method, not a function', /value\.split/],
  ['AGW0203', '«jwt.a.json()»', 'is a function, not a method', /json\(value\)/],
  ['AGW0203', '«coalesce()»', '`coalesce` cannot be called with no arguments'],
];

describe('compile errors of CEL expressions', () => {
  it.each(MISTAKES)(
    'CEL compile error %s marks the fault and has a message and help: %s',
    (code, marked, message, help) => {
      const source = marked.replace(/[«»]/g, '');
      const found = problem(source);
      expect(found.code).toBe(code);
      const shown = `${source.slice(0, found.start)}«${source.slice(found.start, found.end)}»${source.slice(found.end)}`;
      expect(shown).toBe(marked);
      expect(found.message).toContain(message);
      expect(found.help ?? '').toMatch(help ?? /^/);
      expect(`${found.message} ${found.label} ${found.help}`).not.toMatch(TOKEN_NAMES);
    },
  );

  it('CEL compiler accepts an unknown member without a similar known name', () => {
    expect(() => problem('request.somethingElse')).toThrow('compiles');
  });

  it('CEL compiler does not check members of local variables', () => {
    expect(() => problem('[{"header": 1}].map(request, request.header)')).toThrow('compiles');
  });
});

describe('limits of CEL expressions', () => {
  it.each([
    ['length', `"${'a'.repeat(16 * 1024)}"`, /longer than 16384/],
    ['terms', Array(1_500).fill('true').join('&&'), /more than 1000 parts/],
    ['parentheses', `${'('.repeat(2_000)}1${')'.repeat(2_000)}`, /more than 48 levels/],
    ['lists', `${'['.repeat(100)}${']'.repeat(100)}`, /more than 48 levels/],
    ['members', `jwt${'.a'.repeat(60)}`, /more than 48 levels/],
    ['negations', `${'!'.repeat(16_000)}true`, /more than/],
    ['arguments', `min(${Array(40).fill('1').join()})`, /too many arguments/],
  ])('CEL compiler rejects an expression over the limit of %s', (_what, source, message) => {
    const found = problem(source);
    expect(found.code).toBe('AGW0204');
    expect(found.message).toMatch(message);
    expect(found.end).toBeLessThanOrEqual(source.length);
  });

  it('CEL compiler accepts 500 terms and 40 nesting levels', () => {
    expect(() => problem(Array(500).fill('true').join('&&'))).toThrow('compiles');
    expect(() => problem(`${'('.repeat(40)}1${')'.repeat(40)}`)).toThrow('compiles');
  });
});
