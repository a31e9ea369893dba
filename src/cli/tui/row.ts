import { cut, type Span } from '../../core/render/span.ts';
import { displayWidth } from '../../core/render/width.ts';

/** One line of the screen. */
export type Row = readonly Span[];

const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

export function pad(text: string, width: number): string {
  const short = cut(text, width);
  return short + ' '.repeat(Math.max(0, width - displayWidth(short)));
}

/** Two texts at the ends of a row; the left one is truncated if needed. */
export function ends(left: string, right: string, width: number): string {
  const kept = cut(right, Math.max(0, width - 12));
  return pad(left, width - displayWidth(kept) - 1) + (kept === '' ? '' : ` ${kept}`);
}

/** `── Steps ─────── 9/11 ──` */
export function rule(title: string, right: string, width: number): string {
  const tail = right === '' ? '' : ` ${right} ──`;
  const head = `── ${cut(title, Math.max(4, width - displayWidth(tail) - 8))} `;
  return `${head}${'─'.repeat(Math.max(0, width - displayWidth(head) - displayWidth(tail)))}${tail}`;
}

/** Wraps a text to a width. Words are kept together, unless that would leave most of a line empty. */
export function wrap(text: string, width: number): string[] {
  if (displayWidth(text) <= width) return [text];
  const lines: string[] = [];
  let line = '';
  let used = 0;
  for (const { segment } of segmenter.segment(text)) {
    const next = displayWidth(segment);
    if (used + next > width) {
      const blank = segment === ' ' ? line.length : line.lastIndexOf(' ');
      const isWorthIt = displayWidth(line.slice(0, Math.max(0, blank))) >= width / 2;
      lines.push(isWorthIt ? line.slice(0, blank) : line);
      line = isWorthIt ? line.slice(blank + 1) : '';
      used = displayWidth(line);
      if (isWorthIt && segment === ' ') continue;
    }
    line += segment;
    used += next;
  }
  return [...lines, line];
}
