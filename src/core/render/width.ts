import type { Range } from '../diagnostic.ts';

/** A piece of a line: what is printed for units `[start, end)` of the line, and its width in columns. */
export interface Cell {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly width: number;
}

const TAB = 4;
/** East Asian wide and full-width characters (UAX #11), merged to whole blocks. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
const EMOJI = /^\p{Emoji_Presentation}|^\p{Emoji}\ufe0f/u;
/** Control characters, and invisible characters that reorder or hide text: printed as escapes when they occur alone. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\u2028\u2029]/u;
/** Most texts need no segmentation, which costs 100 times as much. */
const PLAIN = /^[\x20-\x7e]*$/;
/** Created on first use, which takes 15 ms: ICU reads its tables. */
let segmenter: Intl.Segmenter | undefined;

/** The grapheme clusters of a text: what a reader counts as characters. */
export function graphemes(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return segmenter.segment(text);
}

/** Escapes every character that could control a terminal, including line breaks and tabs. */
export function escapeControls(text: string): string {
  if (PLAIN.test(text)) return text;
  let result = '';
  for (const { segment } of graphemes(text)) result += isHarmless(segment) ? segment : escapeSegment(segment);
  return result;
}

/** A grapheme cluster such as a family emoji contains joiners, which are part of a visible character. */
function isHarmless(segment: string): boolean {
  return !UNSAFE.test(segment) || (EMOJI.test(segment) && !/\p{Cc}/u.test(segment));
}

function escapeSegment(segment: string): string {
  return [...segment]
    .map((char) => (UNSAFE.test(char) ? `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}` : char))
    .join('');
}

/** Width of `text` in terminal columns; control characters must be escaped before. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes(text)) width += segmentWidth(segment);
  return width;
}

function segmentWidth(segment: string): number {
  if (/^[\p{Mn}\p{Me}]/u.test(segment)) return 0;
  return WIDE.test(segment) || EMOJI.test(segment) ? 2 : 1;
}

/**
 * Lays out one line for printing: tabs are expanded to multiples of four columns, each range in `masks` (units of the
 * line) becomes `****`, and characters that could control a terminal are escaped.
 */
export function layoutLine(line: string, masks: readonly { start: number; end: number }[]): Cell[] {
  const cells: Cell[] = [];
  let column = 0;
  let at = 0;
  const push = (start: number, end: number, text: string, width: number): void => {
    cells.push({ start, end, text, width });
    column += width;
  };
  const plain = (end: number): void => {
    for (const { segment, index } of graphemes(line.slice(at, end))) {
      const start = at + index;
      if (segment === '\t') push(start, start + 1, ' '.repeat(TAB - (column % TAB)), TAB - (column % TAB));
      else {
        const text = isHarmless(segment) ? segment : escapeSegment(segment);
        push(start, start + segment.length, text, text === segment ? segmentWidth(segment) : text.length);
      }
    }
    at = end;
  };
  for (const mask of masks.toSorted((a, b) => a.start - b.start)) {
    if (mask.end <= at) continue;
    plain(Math.max(at, mask.start));
    push(at, mask.end, '****', 4);
    at = mask.end;
  }
  plain(line.length);
  return cells;
}

/** Clips each range to the line `[start, end)` of the text, in units of that line. */
export function clipToLine(
  ranges: readonly Range[],
  start: number,
  end: number,
): { start: number; end: number }[] {
  return ranges
    .map((range) => ({
      start: Math.max(range.start.offset, start) - start,
      end: Math.min(range.end.offset, end) - start,
    }))
    .filter((part) => part.end > part.start);
}
