import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { YamlSource } from '../../src/core/yaml/source.ts';
import { repeats } from '../kit/thorough.ts';

/** Text that is valid unquoted, in single quotes and in blocks; the styles add text that only they can hold. */
const word = fc.stringMatching(/^[a-zA-Zé漢/.()=+<]{1,6}$/);
const emoji = fc.constantFrom('😀', '👩‍👩‍👧', '🇨🇭');
const eol = fc.constantFrom('\n', '\r\n');
const blanks = fc.constantFrom(' ', '  ', ' \t', '\t ', '   ');

function pieces(...extra: fc.Arbitrary<string>[]): fc.Arbitrary<string> {
  return fc
    .array(fc.oneof(word, word, emoji, ...extra), { minLength: 1, maxLength: 8 })
    .map((list) => list.join(''));
}

const lineBreak = fc
  .tuple(
    fc.constantFrom('', ' ', '\t', '  '),
    fc.array(fc.tuple(eol, fc.constantFrom('', '  ')), { minLength: 1, maxLength: 3 }),
  )
  .map(([before, ends]) => `${before}${ends.map(([end, after]) => `${end}${after}`).join('')}   `);
/** Whitespace only between words, because it is ignored at the ends. */
const inner = fc.tuple(word, fc.oneof(blanks, lineBreak), word).map((parts) => parts.join(''));
const escaped = fc.constantFrom(
  '\\n',
  '\\t',
  '\\"',
  '\\\\',
  '\\/',
  '\\x41',
  '\\u00e9',
  '\\U0001F600',
  '\\0',
  '\\e',
  '\\_',
  '\\ ',
  '\\N',
  '\\L',
);
const escapedBreak = eol.map((end) => `\\${end}   `);

const flow = {
  plain: pieces(inner),
  single: pieces(inner, fc.constant("''"), fc.constant('# '), fc.constant(': ')).map((text) => `'${text}'`),
  double: pieces(inner, escaped, escapedBreak, fc.constant('# ')).map((text) => `"${text}"`),
};

const blockLine = fc.oneof(
  { weight: 5, arbitrary: pieces(fc.constant('# '), fc.constant(' "'), fc.constant("'")) },
  { weight: 1, arbitrary: pieces(blanks).map((text) => `${text} `) },
  { weight: 1, arbitrary: pieces().map((text) => `  ${text}`) },
  { weight: 1, arbitrary: pieces().map((text) => `\t${text}`) },
  { weight: 2, arbitrary: fc.constant('') },
);
const block = (mark: string) =>
  fc
    .record({
      first: pieces(),
      lines: fc.array(blockLine, { maxLength: 6 }),
      blankFirst: fc.boolean(),
      chomp: fc.constantFrom('', '-', '+'),
      indicator: fc.boolean(),
      comment: fc.constantFrom('', ' # why'),
      end: eol,
    })
    .map(({ first, lines, blankFirst, chomp, indicator, comment, end }) => {
      const body = [...(blankFirst ? [''] : []), first, ...lines].map((line) =>
        line === '' ? '' : `      ${line}`,
      );
      // The parent mapping is at column 2, so a width of 4 makes 6.
      return [`${mark}${indicator ? '4' : ''}${chomp}${comment}`, ...body].join(end);
    });

const ESCAPED: Readonly<Record<string, string>> = {
  '\\x41': 'A',
  '\\0': '\0',
  '\\e': '\x1b',
  '\\_': '\u00a0',
  '\\ ': ' ',
  '\\N': '\u0085',
  '\\L': '\u2028',
  '\\U0001F600': '😀',
};

/** Whether the source text `piece` is a spelling of the decoded unit `char`. */
function standsFor(piece: string, char: string, style: string): boolean {
  if (style === 'single' && char === "'") return piece === "''";
  if (piece === char) return true;
  if (char === ' ' && /^\r?\n$/.test(piece)) return style !== 'literal';
  if (char === '\n' && piece === '\r\n') return true;
  if (style !== 'double' || !piece.startsWith('\\')) return false;
  return (ESCAPED[piece] ?? JSON.parse(`"${piece}"`)).includes(char);
}

function checkEveryCharacter(text: string, style: string): void {
  const { source, diagnostics } = YamlSource.parse(text, 'x.yaml', {});
  expect(diagnostics).toEqual([]);
  const path = ['a', 'b'];
  const value = (source.value as { a: { b: string } }).a.b;
  let previous = 0;
  for (let unit = 0; unit < value.length; unit++) {
    const { start, end } = source.rangeInside(path, unit, unit + 1);
    const piece = text.slice(start.offset, end.offset);
    // The last line break of a block is implied when the file ends without one.
    const isImplied =
      piece === '' && value[unit] === '\n' && start.offset === text.length && unit === value.length - 1;
    if (!isImplied && !standsFor(piece, value[unit] ?? '', style)) {
      expect.fail(`unit ${unit} (${JSON.stringify(value[unit])}) maps to ${JSON.stringify(piece)}`);
    }
    expect(start.offset).toBeGreaterThanOrEqual(previous);
    previous = start.offset;
  }
}

const AFTER = fc.constantFrom('', '\n', '\r\n', '\n  c: 1\n', '\r\n\r\n  c: 1\r\n');

describe('rangeInside', () => {
  for (const [style, scalar] of Object.entries(flow)) {
    it(`rangeInside maps every character of a ${style} scalar to its source`, () => {
      const document = fc.tuple(scalar, AFTER).map(([text, after]) => `a:\n  b: ${text}${after}`);
      fc.assert(
        fc.property(document, (text) => checkEveryCharacter(text, style)),
        { numRuns: repeats(150, 2_000) },
      );
    });
  }

  for (const [style, mark] of [
    ['literal', '|'],
    ['folded', '>'],
  ] as const) {
    it(`rangeInside maps every character of a ${style} block to its source`, () => {
      const document = fc.tuple(block(mark), AFTER).map(([text, after]) => `a:\n  b: ${text}${after}`);
      fc.assert(
        fc.property(document, (text) => checkEveryCharacter(text, style)),
        { numRuns: repeats(150, 2_000) },
      );
    });
  }

  it('rangeInside gives the exact position of an error in a folded block', () => {
    const text = 'rules:\n- >-\n  "admin" in roles &&\n  x = "core"\n';
    const { source } = YamlSource.parse(text, 'x.yaml', {});
    const value = (source.value as { rules: string[] }).rules[0] ?? '';
    const at = value.indexOf('=');
    expect(source.rangeInside(['rules', 0], at, at + 1)).toEqual({
      start: { line: 4, column: 5, offset: 38 },
      end: { line: 4, column: 6, offset: 39 },
    });
  });

  it('rangeInside points behind the last character for an error at the end', () => {
    const { source } = YamlSource.parse('a: "f(x"\nb: 1\n', 'x.yaml', {});
    expect(source.rangeInside(['a'], 3, 3).start).toEqual({ line: 1, column: 8, offset: 7 });
    expect(source.rangeInside(['a'], 3, 3).end.offset).toBe(7);
  });

  it('rangeInside falls back to the whole value when a variable changed the text', () => {
    const { source } = YamlSource.parse('a: x $LONG = y\n', 'x.yaml', { LONG: 'a much longer text' });
    const { start, end } = source.rangeInside(['a'], 20, 21);
    expect([start.offset, end.offset]).toEqual([3, 14]);
  });

  it('rangeInside clamps offsets outside the text', () => {
    const { source } = YamlSource.parse('a: abc\n', 'x.yaml', {});
    const { start, end } = source.rangeInside(['a'], -5, 99);
    expect([start.offset, end.offset]).toEqual([3, 6]);
  });
});
