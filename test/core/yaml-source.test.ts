// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is what people write in their files.
import { describe, expect, it } from 'vitest';
import type { Diagnostic, Path, Range } from '../../src/core/diagnostic.ts';
import { YamlSource } from '../../src/core/yaml/source.ts';

const ENV = { PORT: '8080', EMPTY: '', LIST: '[1, 2]', DOLLAR: '$PORT', YES: 'true' };

function read(text: string): { value: unknown; source: YamlSource; diagnostics: readonly Diagnostic[] } {
  const { source, diagnostics } = YamlSource.parse(text, 'gateway.yaml', ENV);
  return { value: source.value, source, diagnostics };
}

/** A problem as code, marked text and message. */
function problems(text: string): string[] {
  return read(text).diagnostics.map(
    ({ code, range, message }) => `${code} «${marked(text, range)}» ${message}`,
  );
}

function marked(text: string, range: Range): string {
  return text.slice(range.start.offset, range.end.offset);
}

describe('YamlSource environment variables', () => {
  it.each([
    ['a: $PORT', 8080],
    ['a: ${PORT}', 8080],
    ['a: $YES', true],
    ['a: "$PORT"', '8080'],
    ["a: '$PORT'", '8080'],
    ['a: !!str $PORT', '8080'],
    ['a: |-\n  $PORT', '8080'],
    ['a: http://h:$PORT/x', 'http://h:8080/x'],
    ['a: ${NOPE:-3000}', 3000],
    ['a: ${NOPE:-}', null],
    ['a: ${EMPTY:-x}', 'x'],
    ['a: $EMPTY', null],
    ['a: "$EMPTY"', ''],
    ['a: $$PORT', '$PORT'],
    ['a: $$$PORT', '$8080'],
    ['a: costs $5 or $', 'costs $5 or $'],
    ['a: ${no-name} ${', '${no-name} ${'],
    ['a: $LIST', '[1, 2]'],
    ['a: $DOLLAR', '$PORT'],
    ['a: x # $NOPE', 'x'],
  ])('YamlSource expands %j to %j', (text, expected) => {
    const { value, diagnostics } = read(text);
    expect(diagnostics).toEqual([]);
    expect(value).toEqual({ a: expected });
  });

  it('YamlSource does not expand variables in keys and comments', () => {
    const { value, diagnostics } = read('# $NOPE\n$PORT: 1 # $NOPE\n');
    expect([value, diagnostics]).toEqual([{ $PORT: 1 }, []]);
  });

  it('an undefined environment variable is reported at its position inside the text', () => {
    expect(problems('a: "x\\t${ONE} $TWO"\nb: $ONE\n')).toEqual([
      'AGW0004 «${ONE}» the environment variable `ONE` is not defined',
      'AGW0004 «$TWO» the environment variable `TWO` is not defined',
    ]);
  });

  it("an undefined environment variable's help mentions a default value and escaping", () => {
    const [diagnostic] = read('a: $NOPE').diagnostics;
    expect(diagnostic?.help).toContain('${NOPE:-');
    expect(diagnostic?.help).toContain('$$');
  });

  it('names of Object.prototype members are not defined environment variables', () => {
    expect(problems('a: $constructor')).toEqual([
      'AGW0004 «$constructor» the environment variable `constructor` is not defined',
    ]);
  });

  it('YamlSource records which values come from the environment or are references', () => {
    const { source } = read('a: x$PORT\nb: x\nc: $PORT\nd: ${NOPE:-secret}\n');
    const ask = (test: (path: Path) => boolean) => ['a', 'b', 'c', 'd'].filter((key) => test([key]));
    expect(ask((path) => source.isFromEnvironment(path))).toEqual(['a', 'c', 'd']);
    expect(ask((path) => source.variableAt(path) !== undefined)).toEqual(['c']);
  });
});

describe('YamlSource values', () => {
  it('YamlSource applies the YAML 1.2 core schema regardless of a %YAML directive', () => {
    const text = '%YAML 1.1\n---\n[yes, on, 010, 0o10, 0x1F, 1_000, 12:30, 2001-01-01, ~, .inf, 1e3, "1"]\n';
    expect(read(text).value).toEqual([
      'yes',
      'on',
      10,
      8,
      31,
      '1_000',
      '12:30',
      '2001-01-01',
      null,
      Number.POSITIVE_INFINITY,
      1000,
      '1',
    ]);
  });

  it('YamlSource parses JSON', () => {
    const value = { a: [1, 'two', { b: null }], 'c d': true };
    expect(read(JSON.stringify(value)).value).toEqual(value);
    expect(read(JSON.stringify(value, null, '  ')).value).toEqual(value);
  });

  it('YamlSource accepts a byte order mark and CRLF', () => {
    const { value, source } = read('\uFEFFa: 1\r\nb:\r\n  c: 2\r\n');
    expect(value).toEqual({ a: 1, b: { c: 2 } });
    expect(source.keyRange(['b', 'c']).start).toMatchObject({ line: 3, column: 3 });
  });

  it('YamlSource value is null for an empty file and undefined after a syntax error', () => {
    expect([read('').value, read('# nothing\n').value, read('a: [').value]).toEqual([null, null, undefined]);
  });

  it.each([
    [`a: ''`, ''],
    [`a: ''''`, "'"],
    [`a: 'b'''`, "b'"],
    [`a: ""`, ''],
    [String.raw`a: "\\"`, '\\'],
    [String.raw`a: "\"\\\""`, '"\\"'],
    [`a: |-\n  "b`, '"b'],
    [`a: b"c`, 'b"c'],
  ])('YamlSource distinguishes a closing quote from an escaped one: %j', (text, expected) => {
    expect(read(text).value).toEqual({ a: expected });
  });

  it('YamlSource reads keys as strings', () => {
    expect(read('200: a\ntrue: b\n"x y": c\n').value).toEqual({ 200: 'a', true: 'b', 'x y': 'c' });
  });

  it('YamlSource merges mappings with own keys first, then earlier merges', () => {
    const text = 'a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  <<: [*a, *b, {w: 3}]\n  x: 0\n"<<": plain\n';
    expect(read(text).value).toMatchObject({ c: { x: 0, y: 1, z: 2, w: 3 }, '<<': 'plain' });
  });
});

describe('YamlSource ranges', () => {
  const TEXT = [
    'shared: &shared',
    '  timeout: 5s',
    'routes:',
    '- name: one',
    '  <<: *shared',
    '- *shared',
    'empty:',
    'list: [a, "b c"]',
  ].join('\n');
  const { source } = read(TEXT);
  const at = (range: Range) => marked(TEXT, range);

  it('keyRange and valueRange cover the key and the value in the source', () => {
    expect(at(source.keyRange(['routes', 0, 'name']))).toBe('name');
    expect(at(source.valueRange(['routes', 0, 'name']))).toBe('one');
    expect(at(source.valueRange(['list', 1]))).toBe('"b c"');
    expect(at(source.keyRange(['list', 1]))).toBe('"b c"');
    expect(at(source.valueRange(['shared']))).toBe('timeout: 5s');
  });

  it('ranges of merged and aliased keys point to their definition', () => {
    expect(source.valueRange(['routes', 0, 'timeout'])).toEqual(source.valueRange(['shared', 'timeout']));
    expect(source.keyRange(['routes', 1, 'timeout'])).toEqual(source.keyRange(['shared', 'timeout']));
    expect(at(source.valueRange(['routes', 1]))).toBe('*shared');
  });

  it('ranges of a duplicate key point to its first occurrence, whose value is used', () => {
    const text = 'a: 1\na: 2\nb: {<<: {c: 3}, c: 4}\n';
    const twice = read(text);
    expect(twice.value).toEqual({ a: 1, b: { c: 4 } });
    expect(marked(text, twice.source.valueRange(['a']))).toBe('1');
    expect(marked(text, twice.source.valueRange(['b', 'c']))).toBe('4');
  });

  it('the range of an empty value is that of its key', () => {
    expect(at(source.valueRange(['empty']))).toBe('empty');
  });

  it('ranges of a path that does not exist are those of its nearest ancestor', () => {
    expect(source.keyRange(['routes', 0, 'nope', 'deeper'])).toEqual(source.keyRange(['routes', 0]));
    expect(at(source.keyRange(['shared', 'timeout', 'x']))).toBe('timeout');
    expect(source.valueRange(['routes', 7])).toEqual(source.valueRange(['routes']));
    expect(source.valueRange([]).start).toEqual({ line: 1, column: 1, offset: 0 });
  });
});

describe('YamlSource problems', () => {
  it.each([
    ['a: 1\nb: 2\na: 3\n', 'AGW0002 «a» duplicate key `a`'],
    ['a:\n  {x: 1, "x": 2}', 'AGW0002 «"x"» duplicate key `x`'],
    ['__proto__: {a: 1}', 'AGW0101 «__proto__» `__proto__` cannot be used as a key'],
    ['a: {constructor: {prototype: 1}}', 'AGW0101 «constructor» `constructor` cannot be used as a key'],
    ['a: !!js/function "x"', 'AGW0003 «"x"» the tag `!!js/function` is not supported'],
    ['a: !!binary aGk=', 'AGW0003 «aGk=» the tag `!!binary` is not supported'],
    ['a: !vault {b: c}', 'AGW0003 «{b: c}» the tag `!vault` is not supported'],
    ['a: *nope', 'AGW0003 «*nope» no anchor `&nope` before this alias'],
    ['a: &x [*x]', 'AGW0003 «*x» alias `*x` refers to itself'],
    ['a: {<<: 1}', 'AGW0003 «1» only mappings can be merged with `<<`'],
    ['? [a]\n: b', 'AGW0003 «[a]» a key must be plain text'],
    ['a: [1, 2', 'AGW0001 «[» this `[` is not closed'],
    ['a: {b: 1', 'AGW0001 «{» this `{` is not closed'],
    ['a: "b\nc: d\n', 'AGW0001 «"» this `"` is not closed'],
    ["a: 'b\nc: d\n", "AGW0001 «'» this `'` is not closed"],
    ['a: "b\\"\nc: d\n', 'AGW0001 «"» this `"` is not closed'],
    ['a: "b\\"', 'AGW0001 «"» this `"` is not closed'],
    ["a: 'b''", "AGW0001 «'» this `'` is not closed"],
    ["a: 'b''\nc: d\n", "AGW0001 «'» this `'` is not closed"],
    ['a: "\\d"', 'AGW0001 «\\d» unknown escape sequence in double quotes'],
    ['a:\n\tb: 1', 'AGW0001 «\t» a tab cannot be used for indentation'],
    ['a: @b', 'AGW0001 «@» text cannot start with this character'],
    ['a: b: c', 'AGW0001 «b» a mapping is not allowed here'],
    ['a: |\n  b\n c', 'AGW0001 «c» wrong indentation'],
    ['a: 1\n---\nb: 2', 'AGW0001 «---» the file contains more than one YAML document'],
    ['a: \u001b[31m', 'AGW0001 «\u001b» the control character U+001B is not allowed in YAML'],
    ['a: 1\rb: 2', 'AGW0001 «\r» the control character U+000D is not allowed in YAML'],
  ])('YamlSource reports the problem of %j', (text, expected) => {
    expect(problems(text)).toEqual([expected]);
  });

  it('an unknown alias is reported with the nearest anchor name', () => {
    expect(read('a: &limits {}\nb: *limit').diagnostics[0]?.help).toContain('`&limits`');
  });

  it('problems of several kinds are reported at once in source order', () => {
    expect(problems('a: $ONE\na: 2\nb: *c\nd: !x y\n').map((each) => each.slice(0, 7))).toEqual([
      'AGW0004',
      'AGW0002',
      'AGW0003',
      'AGW0003',
    ]);
  });

  it('encoding problems are reported as not UTF-8', () => {
    const utf16 = Buffer.from('\uFEFFa: 1\n', 'utf16le').toString('utf8');
    expect(problems(utf16)).toEqual(['AGW0001 «» the file is not UTF-8 text']);
    expect(problems(Buffer.from('a: 1\n', 'utf16le').toString('utf8'))).toEqual([
      'AGW0001 «» the file is not UTF-8 text',
    ]);
  });

  it('values with problems are marked as poisoned for later checks', () => {
    const { source } = read('a: {b: $NOPE}\nc: *x\nd: {e: 1}\n');
    const isPoisoned = (...path: string[]) => source.isPoisoned(path);
    expect([isPoisoned('a', 'b'), isPoisoned('c'), isPoisoned('c', 'd')]).toEqual([true, true, true]);
    expect([isPoisoned('a'), isPoisoned('d', 'e'), isPoisoned('d', 'f')]).toEqual([false, false, false]);
  });
});
