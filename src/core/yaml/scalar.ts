import type { Scalar } from 'yaml';

/**
 * Maps each decoded character of a YAML scalar to its place in the source. The YAML library gives only the range of a
 * scalar; a CEL error at its 42nd character needs the place of that character, in each of the five styles.
 */

type ScalarStyle = 'plain' | 'single' | 'double' | 'literal' | 'folded';

/** A scalar in its source: `[start, end)` includes quotes or the block header (`>-`). */
interface ScalarSite {
  readonly style: ScalarStyle;
  readonly start: number;
  readonly end: number;
  /** Indentation of the parent in columns, for block scalars with an explicit indentation indicator. */
  readonly parentIndent: number;
}

/** Source offsets per UTF-16 unit of `value`: unit `i` comes from `[starts[i], ends[i])`. */
export interface DecodedScalar {
  readonly value: string;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

class Trace {
  value = '';
  readonly starts: number[] = [];
  readonly ends: number[] = [];

  /** Adds decoded `text`, all of whose units come from `[start, end)`. */
  add(text: string, start: number, end: number): void {
    this.value += text;
    for (let unit = 0; unit < text.length; unit++) {
      this.starts.push(start);
      this.ends.push(end);
    }
  }

  /** Adds `source[start, end)` unit by unit, unchanged. */
  copy(source: string, start: number, end: number): void {
    for (let at = start; at < end; at++) this.add(source[at] ?? '', at, at + 1);
  }
}

/** Decodes the scalar at `site` of `source`. */
export function decodeScalar(source: string, site: ScalarSite): DecodedScalar {
  const trace = new Trace();
  if (site.style === 'literal' || site.style === 'folded') decodeBlock(source, site, trace);
  else decodeFlow(source, site, trace);
  return trace;
}

function decodeFlow(source: string, site: ScalarSite, trace: Trace): void {
  const quoted = site.style !== 'plain';
  const end = quoted ? site.end - 1 : site.end;
  let at = quoted ? site.start + 1 : site.start;
  while (at < end) {
    const gap = lineBreakAhead(source, at, end);
    if (gap !== undefined) at = foldBreaks(source, gap, end, trace);
    else if (site.style === 'double' && source[at] === '\\') at = decodeEscape(source, at, trace);
    else if (site.style === 'single' && source.startsWith("''", at)) {
      trace.add("'", at, at + 2);
      at += 2;
    } else {
      // Spaces that are not followed by a line break are content; the whole run is copied so that it is scanned only
      // once.
      const stop = isBlank(source[at]) ? skipBlanks(source, at, end) : at + 1;
      trace.copy(source, at, stop);
      at = stop;
    }
  }
}

function isBlank(char: string | undefined): boolean {
  return char === ' ' || char === '\t';
}

function skipBlanks(source: string, from: number, end: number): number {
  let at = from;
  while (at < end && isBlank(source[at])) at++;
  return at;
}

/** The offset of a line break that follows `at` directly or after spaces, which YAML drops there. */
function lineBreakAhead(source: string, at: number, end: number): number | undefined {
  const next = skipBlanks(source, at, end);
  if (next >= end) return undefined;
  return source[next] === '\n' || source.startsWith('\r\n', next) ? next : undefined;
}

/**
 * Folds line breaks: one becomes a space, n become n - 1 line feeds (YAML 1.2.2, 6.5). Returns where the text
 * continues.
 */
function foldBreaks(source: string, from: number, end: number, trace: Trace): number {
  const breaks: { start: number; end: number }[] = [];
  let at = from;
  for (;;) {
    const next = skipBlanks(source, at, end);
    const length = source[next] === '\n' ? 1 : source.startsWith('\r\n', next) ? 2 : 0;
    if (next >= end || length === 0) {
      at = next;
      break;
    }
    breaks.push({ start: next, end: next + length });
    at = next + length;
  }
  const [first, ...others] = breaks;
  if (first !== undefined && others.length === 0) trace.add(' ', first.start, first.end);
  for (const each of others) trace.add('\n', each.start, each.end);
  return at;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '0': '\0',
  a: '\x07',
  b: '\b',
  e: '\x1b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  N: '\u0085',
  _: '\u00a0',
  L: '\u2028',
  P: '\u2029',
};
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** Decodes the escape at `at` and returns the offset after it. An escaped line break produces nothing. */
function decodeEscape(source: string, at: number, trace: Trace): number {
  const letter = source[at + 1] ?? '';
  const digits = HEX_DIGITS[letter];
  if (digits !== undefined) {
    const end = at + 2 + digits;
    const code = Number.parseInt(source.slice(at + 2, end), 16);
    trace.add(code <= 0x10_ff_ff ? String.fromCodePoint(code) : '', at, end);
    return end;
  }
  const breakLength = letter === '\n' ? 1 : source.startsWith('\r\n', at + 1) ? 2 : 0;
  if (breakLength > 0) return skipBlanks(source, at + 1 + breakLength, source.length);
  trace.add(ESCAPES[letter] ?? letter, at, at + 2);
  return at + 2;
}

interface Line {
  /** Number of leading spaces. */
  readonly indent: number;
  readonly start: number;
  /** Where the text ends and the line break, if any, begins. */
  readonly end: number;
  readonly next: number;
}

function splitLines(source: string, start: number, end: number): Line[] {
  const lines: Line[] = [];
  let at = start;
  while (at < end) {
    const feed = source.indexOf('\n', at);
    const next = feed === -1 || feed >= end ? end : feed + 1;
    let stop = feed === -1 || feed >= end ? end : feed;
    if (stop > at && stop < next && source[stop - 1] === '\r') stop--;
    let indent = 0;
    while (at + indent < stop && source[at + indent] === ' ') indent++;
    lines.push({ indent, start: at, end: stop, next });
    at = next;
  }
  return lines;
}

function decodeBlock(source: string, site: ScalarSite, trace: Trace): void {
  const feed = source.indexOf('\n', site.start);
  if (feed === -1 || feed >= site.end) return;
  const header = /^[|>]([-+\d]*)/.exec(source.slice(site.start, feed))?.[1] ?? '';
  const lines = splitLines(source, feed + 1, site.end);
  const hasText = (line: Line) => line.start + line.indent < line.end;
  const first = lines.findIndex(hasText);
  const explicit = Number(/\d/.exec(header)?.[0] ?? 0);
  const indent = explicit > 0 ? site.parentIndent + explicit : (lines[first]?.indent ?? 0);
  let count = first === -1 ? 0 : lines.findLastIndex(hasText) + 1;
  // Trailing blank lines that are indented more than the text belong to it (YAML 1.2.2, 8.1.1.2).
  if (first !== -1) count = Math.max(count, lines.findLastIndex((line) => line.indent > indent) + 1);
  let afterIndented = false;
  let blanks: Line[] = [];
  let previous: Line | undefined;
  for (const line of lines.slice(0, count)) {
    const textStart = Math.min(line.start + indent, line.end);
    if (textStart >= line.end) {
      blanks.push(line);
      continue;
    }
    const indented = source[textStart] === ' ' || source[textStart] === '\t';
    joinLines(trace, previous, blanks, site.style === 'folded' && !indented && !afterIndented);
    trace.copy(source, textStart, line.end);
    previous = line;
    blanks = [];
    afterIndented = indented;
  }
  chomp(trace, header, first === -1 ? lines : [previous, ...blanks, ...lines.slice(count)]);
}

/** Adds the decoded line breaks between two lines of text. */
function joinLines(trace: Trace, previous: Line | undefined, blanks: readonly Line[], fold: boolean): void {
  if (previous !== undefined && (!fold || blanks.length === 0)) {
    trace.add(fold ? ' ' : '\n', previous.end, previous.next);
  }
  for (const blank of blanks) trace.add('\n', blank.end, blank.next);
}

/** Adds the final line breaks: none for `-`, all for `+`, else one when there is text. */
function chomp(trace: Trace, header: string, tail: readonly (Line | undefined)[]): void {
  if (header.includes('-')) return;
  const keepAll = header.includes('+');
  if (!keepAll && trace.value === '') return;
  const breaks = (keepAll ? tail : tail.slice(0, 1)).filter(
    (line) => line !== undefined && line.end < line.next,
  );
  for (const line of breaks) if (line !== undefined) trace.add('\n', line.end, line.next);
  // At the end of a file without a final line break, the value has one nevertheless.
  const last = tail.at(-1);
  if (breaks.length === 0 && last !== undefined) trace.add('\n', last.end, last.end);
}

const STYLES: Readonly<Record<string, ScalarStyle>> = {
  PLAIN: 'plain',
  QUOTE_SINGLE: 'single',
  QUOTE_DOUBLE: 'double',
  BLOCK_LITERAL: 'literal',
  BLOCK_FOLDED: 'folded',
};

/** The range and style of `node`; undefined for a node that is not in the source. */
export function scalarSite(node: Scalar): ScalarSite | undefined {
  const style = STYLES[node.type ?? ''];
  const { range } = node;
  if (style === undefined || !range) return undefined;
  const token = node.srcToken;
  const parentIndent = token !== undefined && 'indent' in token ? token.indent : 0;
  return { style, start: range[0], end: range[1], parentIndent };
}
