import {
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import type { Column, Screen } from './column.ts';
import { useColumnWidths } from './column-widths.ts';
import { ROW, type RowHeights, useRowHeights } from './row-heights.ts';
import './virtual-table.css';
import './unseen.css';

interface VirtualTableProps<Row> {
  readonly caption: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  /** Key of the selected row, which keeps its position when rows are added above. */
  readonly chosen: string | undefined;
  readonly choose: (key: string) => void;
  readonly open: (row: Row) => void;
  readonly className?: (row: Row) => string;
  /** A text below the cells of a row, over its whole width; empty for most rows. */
  readonly detail?: (row: Row) => string;
}

/** Rows rendered above and below the visible ones. */
const MARGIN = 12;

/**
 * A table of any length of which only the visible rows exist. The first cell of a row is a button that opens it; one of
 * them is in the tab order, arrow keys move to the others.
 */
export function VirtualTable<Row>(props: VirtualTableProps<Row>): ReactNode {
  const { caption, rows, keyOf, chosen, choose, open, className, detail } = props;
  const box = useRef<HTMLDivElement>(null);
  const screen = useScreen();
  const columns = useMemo(
    () => props.columns.filter(({ shownOn }) => shownOn === undefined || shownOn.includes(screen)),
    [props.columns, screen],
  );
  const widths = useColumnWidths(box, rows, columns);
  const heights = useRowHeights(box, rows, detail);
  const { first, last } = useRowsInSight(box, heights);
  useSteadyView(box, rows, heights, keyOf);
  useChosenInSight(box, rows, heights, keyOf, chosen);
  const at = chosen === undefined ? -1 : rows.findIndex((row) => keyOf(row) === chosen);
  const onKeyDown = (event: KeyboardEvent): void => {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    const row = to === undefined ? undefined : rows[to];
    if (row === undefined) return;
    event.preventDefault();
    choose(keyOf(row));
  };
  // The row in the tab order: the selected one if it is visible, otherwise the first visible one.
  const tabbed = at >= first && at < last ? at : first;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: arrow keys move between the buttons inside.
    <div ref={box} className="virtual" onKeyDown={onKeyDown}>
      <table aria-rowcount={rows.length + 1}>
        <caption className="unseen">{caption}</caption>
        <colgroup>
          {columns.map(({ name }, at) => (
            <col key={name} style={{ width: widths[at] }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ name, isNumber }) => (
              <th key={name} scope="col" className={isNumber === true ? 'number' : ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Space height={heights.top(first)} />
          {rows.slice(first, last).map((row, index) => {
            const key = keyOf(row);
            const text = detail?.(row) ?? '';
            const height = heights.of(first + index);
            return (
              <tr
                key={key}
                style={height === ROW ? undefined : { height }}
                aria-rowindex={first + index + 2}
                className={`${key === chosen ? 'chosen ' : ''}${className?.(row) ?? ''}`}
                onClick={() => open(row)}
              >
                {columns.map(({ name, cell, isNumber }, column) => (
                  <td key={name} className={isNumber === true ? 'number' : ''}>
                    {column === 0 ? (
                      <button
                        type="button"
                        className="plain"
                        data-row={key}
                        tabIndex={first + index === tabbed ? 0 : -1}
                        onFocus={() => choose(key)}
                      >
                        {cell(row)}
                      </button>
                    ) : (
                      cell(row)
                    )}
                    {column === columns.length - 1 && text !== '' ? (
                      <span className="detail" style={{ height: height - ROW }}>
                        {text}
                      </span>
                    ) : null}
                  </td>
                ))}
              </tr>
            );
          })}
          <Space height={heights.top(rows.length) - heights.top(last)} />
        </tbody>
      </table>
    </div>
  );
}

const PHONE = matchMedia('(max-width: 48rem)');
const TABLET = matchMedia('(max-width: 64rem)');

function useScreen(): Screen {
  return useSyncExternalStore(
    (changed) => {
      for (const media of [PHONE, TABLET]) media.addEventListener('change', changed);
      return () => {
        for (const media of [PHONE, TABLET]) media.removeEventListener('change', changed);
      };
    },
    () => (PHONE.matches ? 'phone' : TABLET.matches ? 'tablet' : 'desktop'),
  );
}

function Space({ height }: { readonly height: number }): ReactNode {
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: it replaces invisible rows and cannot be focused.
  return height > 0 ? <tr aria-hidden="true" className="space" style={{ height }} /> : null;
}

function useRowsInSight(
  box: RefObject<HTMLDivElement | null>,
  heights: RowHeights,
): { readonly first: number; readonly last: number } {
  const [range, setRange] = useState({ first: 0, last: 40 });
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = (): void => {
      const first = Math.max(0, heights.at(element.scrollTop) - MARGIN);
      const last = heights.at(element.scrollTop + element.clientHeight) + 1 + MARGIN;
      setRange((now) => (now.first === first && now.last === last ? now : { first, last }));
    };
    measure();
    element.addEventListener('scroll', measure, { passive: true });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => {
      element.removeEventListener('scroll', measure);
      observer.disconnect();
    };
  }, [box, heights]);
  const first = Math.min(range.first, Math.max(0, heights.count - 1));
  return { first, last: Math.min(range.last, heights.count) };
}

/** New rows are added at the top. If the user has scrolled, the visible rows stay the same. */
function useSteadyView<Row>(
  box: RefObject<HTMLDivElement | null>,
  rows: readonly Row[],
  heights: RowHeights,
  keyOf: (row: Row) => string,
): void {
  const before = useRef<string>(undefined);
  useLayoutEffect(() => {
    const element = box.current;
    const newest = rows[0] === undefined ? undefined : keyOf(rows[0]);
    if (
      element !== null &&
      before.current !== undefined &&
      newest !== before.current &&
      element.scrollTop > 0
    ) {
      const added = rows.findIndex((row) => keyOf(row) === before.current);
      if (added > 0) element.scrollTop += heights.top(added);
    }
    before.current = newest;
  }, [box, rows, heights, keyOf]);
}

function useChosenInSight<Row>(
  box: RefObject<HTMLDivElement | null>,
  rows: readonly Row[],
  heights: RowHeights,
  keyOf: (row: Row) => string,
  chosen: string | undefined,
): void {
  const wanted = useRef<string>(undefined);
  const latest = useRef({ rows, heights });
  latest.current = { rows, heights };
  useEffect(() => {
    const element = box.current;
    const now = latest.current;
    const at = chosen === undefined ? -1 : now.rows.findIndex((row) => keyOf(row) === chosen);
    if (element === null || at === -1) return;
    const top = now.heights.top(at);
    // The head of the table covers the height of one row.
    const end = now.heights.top(at + 1) + ROW;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (end > element.scrollTop + element.clientHeight) element.scrollTop = end - element.clientHeight;
    wanted.current = chosen;
    focusRow(element, wanted);
  }, [box, keyOf, chosen]);
  // A distant row exists only after the box has scrolled.
  useEffect(() => {
    if (box.current !== null) focusRow(box.current, wanted);
  });
}

function focusRow(box: HTMLElement, wanted: RefObject<string | undefined>): void {
  if (wanted.current === undefined) return;
  const button = box.querySelector<HTMLElement>(`[data-row="${CSS.escape(wanted.current)}"]`);
  if (button === null) return;
  wanted.current = undefined;
  button.focus({ preventScroll: true });
}
