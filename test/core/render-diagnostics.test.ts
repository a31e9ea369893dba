import { describe, expect, it } from 'vitest';
import { renderDiagnostics } from '../../src/cli/render/diagnostics.ts';
import type { Diagnostic } from '../../src/core/diagnostic.ts';
import { displayWidth, escapeControls } from '../../src/core/render/width.ts';
import { LineIndex } from '../../src/core/yaml/lines.ts';

function diagnostic(text: string, start: number, end: number, more: Partial<Diagnostic> = {}): Diagnostic {
  const range = new LineIndex(text).range(start, end);
  return { severity: 'error', code: 'AGW0104', message: 'wrong', file: 'x.yaml', path: [], range, ...more };
}

function excerpt(text: string, start: number, end: number, width = 60): [string, string] {
  const sources = new Map([['x.yaml', { text }]]);
  const lines = renderDiagnostics([diagnostic(text, start, end)], sources, {
    format: 'text',
    color: false,
    width,
  }).split('\n');
  return [lines.at(-2) ?? '', lines.at(-1) ?? ''];
}

describe('displayWidth', () => {
  it.each([
    ['abc', 3],
    ['漢字', 4],
    ['한국', 4],
    ['Ａ', 2],
    ['é', 1],
    ['e\u0301', 1],
    ['😀', 2],
    ['👩‍👩‍👧', 2],
    ['❤️', 2],
    ['🇨🇭', 2],
    ['1#*', 3],
    ['─│', 2],
  ])('displayWidth of %j is %i', (text, width) => {
    expect(displayWidth(text)).toBe(width);
  });
});

describe('escapeControls', () => {
  it('escapeControls escapes control, bidirectional and zero-width characters', () => {
    expect(escapeControls('a\x1b[2J\r\n\x07\u009b\u202e\u2066\u200b\u2028')).toBe(
      'a\\u{1b}[2J\\u{d}\\u{a}\\u{7}\\u{9b}\\u{202e}\\u{2066}\\u{200b}\\u{2028}',
    );
  });

  it('escapeControls keeps letters, accents and composed emoji', () => {
    const text = 'Grüße, 漢字, e\u0301, 👩‍👩‍👧, ❤️';
    expect(escapeControls(text)).toBe(text);
  });
});

describe('renderDiagnostics text format', () => {
  it('of warnings that say the same, five are shown in full and the lines of the others are listed', () => {
    const text = 'key: value\n'.repeat(100);
    const all = Array.from({ length: 100 }, (_, line) =>
      diagnostic(text, line * 11 + 5, line * 11 + 10, { severity: 'warning' }),
    );
    const options = { format: 'text', color: false, width: 60 } as const;
    const shown = renderDiagnostics(all, new Map([['x.yaml', { text }]]), options).split('\n\n');
    expect(shown).toHaveLength(6);
    expect(shown.at(-1)).toBe(
      'warning[AGW0104]: 95 more places with the same: lines 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, …',
    );
    const others = { concise: 100, github: 100 } as const;
    for (const [format, count] of Object.entries(others) as ['concise' | 'github', number][])
      expect(renderDiagnostics(all, new Map(), { ...options, format }).split('\n')).toHaveLength(count);
  });

  it('errors that say the same of different places are all shown in full', () => {
    const text = 'key: value\n'.repeat(10);
    const all = Array.from({ length: 10 }, (_, line) => diagnostic(text, line * 11 + 5, line * 11 + 10));
    const options = { format: 'text', color: false, width: 60 } as const;
    expect(renderDiagnostics(all, new Map(), options).split('\n\n')).toHaveLength(10);
  });

  it('the excerpt has a caret for an empty range and at the end of a line', () => {
    expect(excerpt('a: b', 4, 4)).toEqual(['1 │ a: b', '  │     ^']);
  });

  it('the excerpt marks the first line of a multi-line range', () => {
    expect(excerpt('a:\n  b: 1\n  c: 2\n', 5, 16)).toEqual(['2 │   b: 1', '  │   ^^^^']);
  });

  it('the excerpt aligns the caret behind tabs and wide characters', () => {
    expect(excerpt('a\t漢: x', 5, 6)).toEqual(['1 │ a   漢: x', '  │         ^']);
  });

  it.each([
    ['at the start', 0],
    ['in the middle', 500],
    ['at the end', 999],
  ])('the excerpt truncates a long line around a caret %s', (_name, at) => {
    const text = `${'-'.repeat(at)}X${'-'.repeat(999 - at)}`;
    const [row, caret] = excerpt(text, at, at + 1);
    expect(displayWidth(row)).toBeLessThanOrEqual(60);
    expect(row[caret.indexOf('^')]).toBe('X');
  });

  it('the excerpt of a 5 MB line is rendered without reading all of it', () => {
    const text = `a: ${'漢'.repeat(5_000_000)}`;
    const started = process.threadCpuUsage();
    const [row] = excerpt(text, 2_500_000, 2_500_001);
    expect(process.threadCpuUsage(started).user / 1000).toBeLessThan(500);
    expect(displayWidth(row)).toBeLessThanOrEqual(60);
  });

  it('renderDiagnostics escapes names, messages and the file name in every format', () => {
    const bad = '\x1b[31m';
    const each = diagnostic('a: b', 0, 1, {
      message: bad,
      label: bad,
      help: bad,
      notes: [bad],
      file: `${bad}.yaml`,
    });
    const sources = new Map([[each.file, { text: `${bad}: x` }]]);
    for (const format of ['text', 'concise', 'github', 'json', 'sarif'] as const) {
      expect(renderDiagnostics([each], sources, { format, color: false, width: 80 })).not.toContain('\x1b');
    }
  });

  it('renderDiagnostics omits the excerpt of a file without text', () => {
    const each = diagnostic('a: b', 0, 1, { help: 'look there' });
    expect(renderDiagnostics([each], new Map(), { format: 'text', color: false, width: 80 })).toBe(
      'error[AGW0104]: wrong\n  ┌─ x.yaml:1:1\n  = help: look there',
    );
  });

  it('renderDiagnostics masks every line of a multi-line secret', () => {
    const text = 'key: |\n  line one\n  line two\nx: 1\n';
    const index = new LineIndex(text);
    const sources = new Map([
      ['x.yaml', { text, secretRanges: [index.range(5, 29)], valueRange: () => index.range(5, 29) }],
    ]);
    const shown = renderDiagnostics([diagnostic(text, 20, 24)], sources, {
      format: 'text',
      color: false,
      width: 80,
    });
    expect(shown).not.toContain('line');
    expect(shown.match(/\*{4}/g)).toHaveLength(3);
  });
});

describe('renderDiagnostics github format', () => {
  it('the github format escapes property and command delimiters', () => {
    const each = diagnostic('a: b', 0, 1, { file: 'a,b:c%.yaml', message: '50% of a: b, c', help: 'next' });
    expect(renderDiagnostics([each], new Map(), { format: 'github', color: false, width: 80 })).toBe(
      '::error file=a%2Cb%3Ac%25.yaml,line=1,endLine=1,col=1,endColumn=2,title=AGW0104::50%25 of a: b, c%0Anext',
    );
  });

  it('the github format omits columns of a multi-line range', () => {
    const each = diagnostic('a:\n  b: 1\n', 0, 9);
    expect(renderDiagnostics([each], new Map(), { format: 'github', color: false, width: 80 })).toBe(
      '::error file=x.yaml,line=1,endLine=2,title=AGW0104::wrong',
    );
  });
});
