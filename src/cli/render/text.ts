import { styleText } from 'node:util';
import type { Diagnostic, Range, Severity } from '../../core/diagnostic.ts';
import type { DiagnosticSource } from '../../core/render/source.ts';
import { type Cell, clipToLine, displayWidth, escapeControls, layoutLine } from '../../core/render/width.ts';

/** Style of the text form. `width` is in columns; `ascii` replaces box-drawing characters. */
export interface TextStyle {
  readonly color: boolean;
  readonly width: number;
  readonly ascii?: boolean;
}

const TONES = { error: 'red', warning: 'yellow', note: 'cyan' } as const;

/** Context lines above the caret, for values of several lines. */
const CONTEXT_LINES = 3;
/** Notes stay readable in a terminal that reports a width of one column. */
const MIN_WIDTH = 40;

type Paint = (format: Parameters<typeof styleText>[0], text: string) => string;

interface Frame {
  readonly paint: Paint;
  /** Width of the line-number column. */
  readonly gutter: number;
  readonly width: number;
  readonly corner: string;
  readonly bar: string;
  readonly ellipsis: string;
}

/** Renders one diagnostic with its excerpt, without a trailing line break. */
export function renderText(
  diagnostic: Diagnostic,
  source: DiagnosticSource | undefined,
  style: TextStyle,
): string {
  const { severity, code, message, range, label, help, notes = [] } = diagnostic;
  const paint: Paint = style.color
    ? (format, text) => styleText(format, text, { validateStream: false })
    : (_, text) => text;
  const lines = source === undefined ? [] : excerptLines(source, diagnostic);
  const frame: Frame = {
    paint,
    gutter: Math.max(1, String(lines.at(-1)?.number ?? 0).length),
    width: Math.max(style.width, MIN_WIDTH),
    corner: style.ascii ? '+-' : '┌─',
    bar: style.ascii ? '|' : '│',
    ellipsis: style.ascii ? '...' : '…',
  };
  const tone = TONES[severity];
  const place = `${escapeControls(diagnostic.file)}:${range.start.line}:${range.start.column}`;
  const out = [
    `${paint(['bold', tone], `${severity}[${code}]`)}${paint('bold', `: ${escapeControls(message)}`)}`,
    `${' '.repeat(frame.gutter + 1)}${paint('blue', frame.corner)} ${place}`,
  ];
  if (lines.length > 0) {
    const mark: Mark = {
      char: severity === 'error' ? '^' : '~',
      tone,
      label: label === undefined ? '' : escapeControls(label),
    };
    out.push(gutter(frame), ...excerpt(frame, lines, range, mark));
    if (help !== undefined || notes.length > 0) out.push(gutter(frame));
  }
  if (help !== undefined) out.push(...remark(frame, 'help', help));
  for (const note of notes) out.push(...remark(frame, 'note', note));
  return out.join('\n');
}

interface ExcerptLine {
  readonly number: number;
  readonly text: string;
  readonly masks: readonly { start: number; end: number }[];
}

/** The line of the problem, and the preceding lines of the same value. */
function excerptLines(source: DiagnosticSource, { range, path }: Diagnostic): ExcerptLine[] {
  const value = source.valueRange?.(path);
  const isInside =
    value !== undefined && value.start.offset < range.start.offset && range.end.offset <= value.end.offset;
  const first = isInside ? Math.max(value.start.line, range.start.line - CONTEXT_LINES) : range.start.line;
  const lines: ExcerptLine[] = [];
  let start = range.start.offset - range.start.column + 1;
  for (let number = range.start.line; number >= first && start >= 0; number--) {
    const feed = source.text.indexOf('\n', start);
    const end = feed === -1 ? source.text.length : feed;
    const text = source.text
      .slice(start, end)
      .replace(/\r$/, '')
      .replace(/^\uFEFF/, ' ');
    lines.unshift({ number, text, masks: clipToLine(source.secretRanges ?? [], start, start + text.length) });
    start = start === 0 ? -1 : source.text.lastIndexOf('\n', start - 2) + 1;
  }
  return lines;
}

function gutter(frame: Frame, number = ''): string {
  return frame.paint('blue', `${number.padStart(frame.gutter)} ${frame.bar}`);
}

interface Mark {
  readonly char: string;
  readonly tone: (typeof TONES)[Severity];
  readonly label: string;
}

function excerpt(frame: Frame, lines: readonly ExcerptLine[], range: Range, mark: Mark): string[] {
  const columns = frame.width - frame.gutter - 3;
  return lines.flatMap(({ number, text, masks }) => {
    const isLast = number === range.start.line;
    const from = isLast ? range.start.column - 1 : 0;
    const to = isLast && range.end.line === number ? range.end.column - 1 : text.length;
    const view = cut(text, masks, from, columns, frame.ellipsis);
    const row = `${gutter(frame, String(number))} ${view.map((cell) => cell.text).join('')}`.trimEnd();
    return isLast ? [row, underline(frame, view, from, to, mark)] : [row];
  });
}

/** The cells of a line, truncated on both sides so that unit `from` is visible and at most `columns` are used. */
function cut(
  text: string,
  masks: ExcerptLine['masks'],
  from: number,
  columns: number,
  ellipsis: string,
): Cell[] {
  // Of a very long line, only the part around the caret is laid out.
  const reach = columns * 4;
  const windowStart = Math.max(0, from - reach);
  const windowEnd = Math.min(text.length, from + reach);
  const shifted = masks.map((mask) => ({ start: mask.start - windowStart, end: mask.end - windowStart }));
  const inWindow = shifted
    .map((mask) => ({ start: Math.max(0, mask.start), end: Math.min(mask.end, windowEnd - windowStart) }))
    .filter((mask) => mask.end > mask.start);
  let cells = layoutLine(text.slice(windowStart, windowEnd), inWindow).map((cell) => ({
    ...cell,
    start: cell.start + windowStart,
    end: cell.end + windowStart,
  }));
  const total = (list: readonly Cell[]) => list.reduce((sum, cell) => sum + cell.width, 0);
  if (windowStart === 0 && windowEnd === text.length && total(cells) <= columns) return cells;
  const room = columns - 2 * ellipsis.length;
  const caret = cells.findIndex((cell) => cell.end > from);
  let left = caret === -1 ? cells.length : caret;
  // Up to a third of the width shows text before the caret.
  let before = 0;
  while (left > 0 && before + (cells[left - 1]?.width ?? 0) <= room / 3) before += cells[--left]?.width ?? 0;
  if (left > 0 && total(cells.slice(0, left)) + before <= room / 2) left = 0;
  let used = 0;
  let right = left;
  while (right < cells.length && used + (cells[right]?.width ?? 0) <= room)
    used += cells[right++]?.width ?? 0;
  const dots = (at: number): Cell => ({ start: at, end: at, text: ellipsis, width: ellipsis.length });
  const isCutLeft = left > 0 || windowStart > 0;
  const isCutRight = right < cells.length || windowEnd < text.length;
  cells = cells.slice(left, right);
  if (isCutLeft) cells.unshift(dots(cells[0]?.start ?? 0));
  if (isCutRight) cells.push(dots(cells.at(-1)?.end ?? 0));
  return cells;
}

function underline(frame: Frame, cells: readonly Cell[], from: number, to: number, mark: Mark): string {
  const before = cells.filter((cell) => cell.end <= from).reduce((sum, cell) => sum + cell.width, 0);
  const marked = cells.filter((cell) => cell.end > from && cell.start < to && cell.end > cell.start);
  const width = Math.max(
    1,
    marked.reduce((sum, cell) => sum + cell.width, 0),
  );
  const line = frame.paint(
    mark.tone,
    `${mark.char.repeat(width)}${mark.label === '' ? '' : ` ${mark.label}`}`,
  );
  return `${gutter(frame)} ${' '.repeat(before)}${line}`;
}

/** `= help: …`, wrapped at spaces and with aligned lines. */
function remark(frame: Frame, kind: string, text: string): string[] {
  const lead = `${' '.repeat(frame.gutter + 1)}= ${kind}: `;
  const lines = wrap(escapeControls(text), frame.width - lead.length);
  return lines.map((line, index) => {
    if (index > 0) return `${' '.repeat(lead.length)}${line}`;
    return `${' '.repeat(frame.gutter + 1)}${frame.paint('blue', '=')} ${frame.paint('bold', `${kind}:`)} ${line}`;
  });
}

function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = '';
  // Text in backquotes is not wrapped, because it is meant to be copied.
  for (const [word] of text.matchAll(/(?:`[^`]*`|[^ ])+/g)) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && displayWidth(longer) > columns) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}
