import { clockText, compactCount, moneyText, rateText, tookText } from '../../../core/render/figures.ts';
import type { Tone } from '../../../core/render/span.ts';
import { displayWidth } from '../../../core/render/width.ts';
import {
  costOf,
  inputTokensOf,
  outputTokensOf,
  routeOf,
  statusOf,
  subjectOf,
  userOf,
} from '../../../core/requests/finished.ts';
import { markOf, problemText, tokensText } from '../../../core/requests/line.ts';
import type { Row } from '../row.ts';
import { pad } from '../row.ts';
import type { Group, TopRow } from './top-model.ts';

/** A cell of a table. Its text is safe to print. */
interface Cell {
  readonly text: string;
  readonly tone?: Tone | undefined;
}

/** A column of a table of `T`. */
export interface Column<T> {
  readonly title: string;
  /** Width; the one column without takes the rest. */
  readonly width?: number;
  readonly isRight?: boolean;
  /** An optional column: the width of the screen from which on it is shown. */
  readonly from?: number;
  readonly cell: (row: T) => Cell;
  /** What rows are sorted by, largest or first in the alphabet first; undefined comes last. */
  readonly sortBy?: (row: T) => number | string | undefined;
}

const gray = (text: string): Cell => ({ text, tone: 'gray' });

/** @param now for rows of another day */
export function requestColumns(now: number, skew: number): readonly Column<TopRow>[] {
  return [
    {
      title: 'TIME',
      width: 8,
      cell: ({ at }) => gray(clockText(at + skew, now).slice(-8)),
      sortBy: ({ at }) => at,
    },
    {
      title: 'STATUS',
      width: 7,
      cell: ({ isOpen, fields }) => {
        const { mark, tone } = markOf(fields);
        const status = String(statusOf(fields) ?? '');
        return isOpen ? { text: `… ${status}`, tone: 'cyan' } : { text: `${mark} ${status}`, tone };
      },
      sortBy: ({ fields }) => statusOf(fields),
    },
    {
      title: 'TOOK',
      width: 7,
      isRight: true,
      cell: ({ took }) => gray(took === undefined ? '' : tookText(took)),
      sortBy: ({ took }) => took,
    },
    {
      title: 'SUBJECT',
      cell: ({ fields }) => {
        const problem = problemText(fields);
        return { text: `${subjectOf(fields)}${problem === '' ? '' : ` · ${problem}`}` };
      },
    },
    {
      title: 'TOKENS',
      width: 20,
      from: 150,
      isRight: true,
      cell: ({ fields }) => gray(tokensText(fields)),
      sortBy: ({ fields }) => sumOf(inputTokensOf(fields), outputTokensOf(fields)),
    },
    {
      title: 'COST',
      width: 9,
      from: 110,
      isRight: true,
      cell: ({ fields }) => gray(costText(costOf(fields))),
      sortBy: ({ fields }) => costOf(fields),
    },
    { title: 'USER', width: 12, from: 76, cell: ({ fields }) => gray(userOf(fields)) },
    { title: 'ROUTE', width: 18, from: 130, cell: ({ fields }) => gray(routeOf(fields)) },
  ];
}

const sumOf = (...values: readonly (number | undefined)[]): number | undefined =>
  values.every((value) => value === undefined)
    ? undefined
    : values.reduce<number>((sum, value) => sum + (value ?? 0), 0);

const costText = (cost: number | undefined): string => (cost === undefined ? '' : moneyText(cost));
const latency = (ms: number | undefined): Cell => ({ text: ms === undefined ? '' : tookText(ms) });
const count = (value: number): Cell => ({ text: value === 0 ? '' : compactCount(value) });

/** @param title of the first column, such as `TOOL` */
export function groupColumns(title: string): readonly Column<Group>[] {
  const figure = (
    name: string,
    width: number,
    cell: Column<Group>['cell'],
    sortBy: (group: Group) => number | undefined,
    from?: number,
  ): Column<Group> => ({
    title: name,
    width,
    isRight: true,
    cell,
    sortBy,
    ...(from === undefined ? {} : { from }),
  });
  return [
    { title, cell: ({ name }) => ({ text: name }), sortBy: ({ name }) => name },
    figure(
      'REQS',
      6,
      ({ requests }) => count(requests),
      ({ requests }) => requests,
    ),
    figure(
      '/S',
      5,
      ({ rate }) => ({ text: rateText(rate) }),
      ({ rate }) => rate,
      60,
    ),
    figure(
      'FAILED',
      7,
      ({ errors }) => ({ ...count(errors), tone: errors === 0 ? undefined : 'red' }),
      ({ errors }) => errors,
    ),
    figure(
      'P50',
      7,
      ({ p50 }) => latency(p50),
      ({ p50 }) => p50,
    ),
    figure(
      'P99',
      7,
      ({ p99 }) => latency(p99),
      ({ p99 }) => p99,
      50,
    ),
    figure(
      'IN',
      6,
      ({ input }) => count(input),
      ({ input }) => input,
      76,
    ),
    figure(
      'OUT',
      6,
      ({ output }) => count(output),
      ({ output }) => output,
      76,
    ),
    figure(
      'COST',
      9,
      ({ cost }) => ({ text: costText(cost) }),
      ({ cost }) => cost,
      70,
    ),
  ];
}

/** Space behind the longest name, so that figures stand near it. */
const NAME_GAP = 4;

/** Gives the column of names what the longest one needs, if there is more room: figures are then read beside the name. */
export function withNames(
  [name, ...figures]: readonly Column<Group>[],
  groups: readonly Group[],
  width: number,
): readonly Column<Group>[] {
  if (name === undefined) return figures;
  const shown = shownColumns([name, ...figures], width);
  const longest = Math.max(name.title.length, ...groups.map((group) => displayWidth(name.cell(group).text)));
  const needed = longest + NAME_GAP;
  return needed < widthOf(shown, 0, width) ? [{ ...name, width: needed }, ...figures] : [name, ...figures];
}

/** The columns that a screen of this width shows. */
export function shownColumns<T>(columns: readonly Column<T>[], width: number): readonly Column<T>[] {
  return columns.filter(({ from = 0 }) => width >= from);
}

/** Sorts by a column: figures from largest to smallest, names from A to Z; the other way round if reversed. */
export function sorted<T>(
  rows: readonly T[],
  column: Column<T> | undefined,
  isReversed: boolean,
): readonly T[] {
  const sortBy = column?.sortBy;
  if (sortBy === undefined) return rows;
  const sign = isReversed ? -1 : 1;
  return rows.toSorted((left, right) => {
    const [a, b] = [sortBy(left), sortBy(right)];
    if (a === b) return 0;
    if (a === undefined) return 1;
    if (b === undefined) return -1;
    if (typeof a === 'string' || typeof b === 'string') return sign * (String(a) < String(b) ? -1 : 1);
    return sign * (b - a);
  });
}

/** Columns of the marker of the selected row, in front of the first column. */
const MARKER = 2;

/** The head of a table. The column that rows are sorted by has an arrow. */
export function headRow<T>(
  columns: readonly Column<T>[],
  sortedBy: string | undefined,
  isReversed: boolean,
  width: number,
): Row {
  const shown = shownColumns(columns, width);
  const text = shown.map((column, index) => {
    const arrow = column.title === sortedBy ? (isReversed ? '▴' : '▾') : '';
    return aligned(`${column.title}${arrow}`, column, widthOf(shown, index, width));
  });
  return [{ text: ' '.repeat(MARKER) }, { text: text.join(' '), tone: 'gray', isBold: true }];
}

export function tableRow<T>(columns: readonly Column<T>[], row: T, isSelected: boolean, width: number): Row {
  const shown = shownColumns(columns, width);
  return [
    { text: isSelected ? '▸ ' : '  ', isBold: true },
    ...shown.map((column, index) => {
      const { text, tone } = column.cell(row);
      const space = index === shown.length - 1 ? '' : ' ';
      return { text: `${aligned(text, column, widthOf(shown, index, width))}${space}`, tone, isSelected };
    }),
  ];
}

function widthOf<T>(shown: readonly Column<T>[], index: number, width: number): number {
  const own = shown[index]?.width;
  if (own !== undefined) return own;
  const others = shown.reduce((sum, column) => sum + (column.width ?? 0), 0);
  return Math.max(4, width - MARKER - others - (shown.length - 1));
}

function aligned<T>(text: string, { isRight }: Column<T>, width: number): string {
  if (isRight !== true) return pad(text, width);
  const gap = width - displayWidth(text);
  return gap < 0 ? pad(text, width) : ' '.repeat(gap) + text;
}
