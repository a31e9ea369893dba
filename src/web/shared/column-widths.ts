import { type RefObject, useLayoutEffect, useState } from 'react';
import type { Column } from './column.ts';
import { useWidth } from './use-width.ts';

/** Rows that are measured: the newest ones, which are in sight. */
const MEASURED = 200;
/** Padding of a cell, both sides, in pixels. */
const PADDING = 18;
/** Padding and border of the button in the first column, in pixels. */
const BUTTON = 12;
/** No column asks for more, in pixels: a path may be 8 KiB long. */
const WIDEST = 640;
/**
 * Spare room that columns get first if they shrink, in pixels: for the cause of a failure, which is not measured. If one column
 * got all of it on a wide screen, the others would be far from what they are about.
 */
const ELASTIC = 200;
/** What a column that gives way keeps, in pixels. */
const NARROWEST = 72;

/**
 * Widths in pixels for columns whose cells never wrap: each as wide as its content, what is left shared by all, and what is
 * missing taken from those that shrink. They grow while rows arrive and shrink only with the table, so that columns do not jump.
 */
export function useColumnWidths<Row>(
  box: RefObject<HTMLDivElement | null>,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
): readonly number[] {
  const width = useWidth(box);
  const [wanted, setWanted] = useState<readonly number[]>([]);
  useLayoutEffect(() => {
    if (box.current === null) return;
    const measure = ruler(box.current);
    const seen = rows.slice(0, MEASURED);
    const next = columns.map(
      (column, at) => measure(column.name, seen.map(textOf(column))) + (at === 0 ? BUTTON : 0),
    );
    setWanted((before) =>
      before.length === next.length ? next.map((one, at) => Math.max(one, before[at] ?? 0)) : next,
    );
  }, [box, rows, columns]);
  return wanted.length === columns.length ? fitted(wanted, columns, width) : [];
}

const textOf =
  <Row>({ text, cell }: Column<Row>) =>
  (row: Row): string =>
    text === undefined ? String(cell(row) ?? '') : text(row);

/** Measures the longest text of a column in the font of the table. */
function ruler(element: Element): (name: string, texts: readonly string[]) => number {
  const context = document.createElement('canvas').getContext('2d');
  const { fontFamily, fontSize } = getComputedStyle(element.querySelector('table') ?? element);
  return (name, texts) => {
    if (context === null) return NARROWEST;
    context.font = `bold ${fontSize} ${fontFamily}`;
    const head = context.measureText(name).width;
    context.font = `${fontSize} ${fontFamily}`;
    const longest = texts.reduce((found, text) => (text.length > found.length ? text : found), '');
    return Math.min(WIDEST, Math.ceil(Math.max(head, context.measureText(longest).width)) + PADDING);
  };
}

/** Fits the wanted widths into the table. */
function fitted<Row>(
  wanted: readonly number[],
  columns: readonly Pick<Column<Row>, 'shrinks'>[],
  width: number,
): readonly number[] {
  const sum = wanted.reduce((all, one) => all + one, 0);
  const fit = elastic(wanted, columns, Math.min(width, sum + ELASTIC));
  const used = Math.max(
    1,
    fit.reduce((all, one) => all + one, 0),
  );
  return used < width ? fit.map((one) => Math.floor((one * width) / used)) : fit;
}

/** Fits the wanted widths by changing those of the columns that shrink: each by its share, but none below `NARROWEST`. */
function elastic<Row>(
  wanted: readonly number[],
  columns: readonly Pick<Column<Row>, 'shrinks'>[],
  width: number,
): readonly number[] {
  const widths = [...wanted];
  let free = wanted.flatMap((_, at) => (columns[at]?.shrinks === true ? [at] : []));
  while (free.length > 0) {
    const ofFree = free.reduce((sum, at) => sum + (wanted[at] ?? 0), 0);
    const taken = widths.reduce((sum, one, at) => sum + (free.includes(at) ? 0 : one), 0);
    const widthOf = (at: number): number => Math.floor(((wanted[at] ?? 0) * (width - taken)) / ofFree);
    const tooNarrow = free.filter((at) => widthOf(at) < NARROWEST);
    for (const at of tooNarrow.length === 0 ? free : tooNarrow)
      widths[at] = tooNarrow.length === 0 ? widthOf(at) : NARROWEST;
    // What those keep, the others have to give.
    free = tooNarrow.length === 0 ? [] : free.filter((at) => !tooNarrow.includes(at));
  }
  return widths;
}
