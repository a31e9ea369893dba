import { cut, type Span } from '../../core/render/span.ts';
import { displayWidth, graphemes } from '../../core/render/width.ts';

/** One line of the screen. */
export type Row = readonly Span[];

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

/** Wraps a text to a width at spaces. Only a word that is wider than a line is broken. */
export function wrap(text: string, width: number): string[] {
  if (displayWidth(text) <= width) return [text];
  const [first = '', ...words] = text.split(' ');
  const lines: string[] = [];
  let line = '';
  const fill = (piece: string): void => {
    const parts = pieces(piece, width);
    line = parts.pop() ?? '';
    lines.push(...parts);
  };
  fill(first);
  for (const word of words) {
    const longer = `${line} ${word}`;
    const fits = displayWidth(longer) <= width;
    // A word that is broken anyway begins on this line, unless that is mostly full.
    const isBroken = displayWidth(word) > width && displayWidth(line) < width / 2;
    if (fits || isBroken) fill(longer);
    else {
      if (line.trim() !== '') lines.push(line);
      fill(word);
    }
  }
  return [...lines, line];
}

/** Pieces of a text that are at most as wide as a line. */
function pieces(text: string, width: number): string[] {
  const found: string[] = [];
  let piece = '';
  let used = 0;
  for (const { segment } of graphemes(text)) {
    const next = displayWidth(segment);
    if (used + next > width) {
      found.push(piece);
      piece = '';
      used = 0;
    }
    piece += segment;
    used += next;
  }
  return [...found, piece];
}
