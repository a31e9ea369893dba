import { type RefObject, useMemo } from 'react';
import { useWidth } from './use-width.ts';

/** Height of the cells of a row, which have one line, in pixels. */
export const ROW = 32;
/** Height of a line of the text below them, as in `virtual-table.css`. */
const LINE = 20;
/** Of a longer text, the rest is in what opens with the row. */
const MOST_LINES = 12;
/** Padding beside the text, in pixels. */
const PADDING = 16;
/** Lines end at a word: so much more room a text of several lines may need. */
const RAGGED = 1.1;
/** Texts whose widths are remembered. */
const MEASURED = 5_000;

/** Where the rows of a table are, of which only those in sight exist. */
export interface RowHeights {
  readonly count: number;
  /** Where a row begins, below the head of the table; for `count`, where the last one ends. In pixels. */
  top(row: number): number;
  of(row: number): number;
  /** The row at a position in pixels. */
  at(top: number): number;
}

/** Heights of rows of which some have a text below their cells. */
export function useRowHeights<Row>(
  box: RefObject<HTMLDivElement | null>,
  rows: readonly Row[],
  detail: ((row: Row) => string) | undefined,
): RowHeights {
  const width = useWidth(box);
  const measure = useMemo(() => ruler(box), [box]);
  return useMemo(() => {
    const linesOf = (text: string): number => {
      if (text === '') return 0;
      const lines = measure(text) / Math.max(1, width - PADDING);
      return lines <= 1 ? 1 : Math.min(MOST_LINES, Math.ceil(lines * RAGGED));
    };
    return heightsOf(rows, (row) => linesOf(detail?.(row) ?? ''));
  }, [rows, detail, width, measure]);
}

/** Measures texts in the font that they are displayed in. */
function ruler(box: RefObject<HTMLDivElement | null>): (text: string) => number {
  const context = document.createElement('canvas').getContext('2d');
  const known = new Map<string, number>();
  let font = '';
  return (text) => {
    if (box.current === null || context === null) return 0;
    if (known.size === 0) {
      const { fontFamily, fontSize } = getComputedStyle(box.current);
      font = `${Number.parseFloat(fontSize) * 0.9}px ${fontFamily}`;
    }
    const found = known.get(text);
    if (found !== undefined) return found;
    if (known.size >= MEASURED) known.clear();
    context.font = font;
    const { width } = context.measureText(text);
    known.set(text, width);
    return width;
  };
}

function heightsOf<Row>(rows: readonly Row[], linesOf: (row: Row) => number): RowHeights {
  const tops = new Float64Array(rows.length + 1);
  for (const [index, row] of rows.entries()) tops[index + 1] = (tops[index] ?? 0) + ROW + linesOf(row) * LINE;
  const top = (row: number): number => tops[Math.min(row, rows.length)] ?? 0;
  return {
    count: rows.length,
    top,
    of: (row) => top(row + 1) - top(row),
    at(position) {
      let [low, high] = [0, rows.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (top(middle + 1) <= position) low = middle + 1;
        else high = middle;
      }
      return low;
    },
  };
}
