import { styleText } from 'node:util';
import { displayWidth, graphemes } from './width.ts';

export type Tone = 'red' | 'yellow' | 'green' | 'cyan' | 'gray';

/** A piece of a line. Its text is safe to print. */
export interface Span {
  readonly text: string;
  readonly tone?: Tone | undefined;
  readonly isBold?: boolean;
  readonly isSelected?: boolean;
}

/** Truncates a text to a width, with an ellipsis. */
export function cut(text: string, width: number): string {
  if (width <= 0) return '';
  if (displayWidth(text) <= width) return text;
  let out = '';
  let used = 0;
  for (const { segment } of graphemes(text)) {
    const next = displayWidth(segment);
    if (used + next > width - 1) break;
    out += segment;
    used += next;
  }
  return `${out}…`;
}

/** The first spans that fit into a width; the last of them is truncated. */
export function cutSpans(spans: readonly Span[], width: number): Span[] {
  const kept: Span[] = [];
  let left = width;
  for (const span of spans) {
    if (left <= 0) break;
    const text = cut(span.text, left);
    kept.push({ ...span, text });
    left -= displayWidth(text);
    if (text !== span.text) break;
  }
  return kept;
}

/** The spans as text for a terminal. Without color, it is the plain text. */
export function spansText(spans: readonly Span[], hasColor: boolean): string {
  return spans
    .map(({ text, tone, isBold }) => {
      if (!hasColor || (tone === undefined && isBold !== true)) return text;
      const formats = [
        ...(tone === undefined ? [] : [tone]),
        ...(isBold === true ? (['bold'] as const) : []),
      ];
      return styleText(formats, text, { validateStream: false });
    })
    .join('');
}
