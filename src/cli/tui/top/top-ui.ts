import { fieldText, subjectOf } from '../../../core/requests/finished.ts';
import {
  InvalidStatusFilter,
  type RequestFilter,
  requestFilter,
  TEXT_FILTERS,
} from '../../proxy/request-filter.ts';
import { type Key, MOVES, typeFilter } from '../keys.ts';
import { type Column, groupColumns, requestColumns, shownColumns, sorted } from './columns.ts';
import {
  GROUP_KINDS,
  GROUPS,
  type Group,
  type GroupKind,
  groupsOf,
  inWindow,
  rowsOf,
  type Shown,
  type TopRow,
  WINDOWS,
} from './top-model.ts';
import type { TopView } from './top-store.ts';

export type Tab = 'requests' | GroupKind;
export const TABS: readonly Tab[] = ['requests', ...GROUP_KINDS];

/** What the user has selected on the screen. */
export interface TopUi {
  readonly tab: Tab;
  /** Requests of one group only. */
  readonly group: { readonly kind: GroupKind; readonly name: string } | undefined;
  readonly shown: Shown;
  readonly filter: string;
  readonly isTyping: boolean;
  /** Title of the column that rows are sorted by; undefined: the newest or most frequent first. */
  readonly sort: string | undefined;
  readonly isReversed: boolean;
  /** Key of the selected row; undefined follows the first. */
  readonly selected: string | undefined;
  /** Where the selected row was: another takes its place if it is gone. */
  readonly index: number;
  readonly isDetailed: boolean;
  /** First line of the details. */
  readonly top: number;
  /** Seconds. */
  readonly window: number;
  readonly isHelp: boolean;
  /** What the screen showed when the user stopped it. */
  readonly paused: { readonly view: TopView; readonly now: number } | undefined;
}

export const FIRST_TOP: TopUi = {
  tab: 'requests',
  group: undefined,
  shown: 'all',
  filter: '',
  isTyping: false,
  sort: undefined,
  isReversed: false,
  selected: undefined,
  index: 0,
  isDetailed: false,
  top: 0,
  window: 300,
  isHelp: false,
  paused: undefined,
};

export type TopAction = 'quit' | 'trace' | 'record' | 'copy';

/** A row of the table that is on the screen. */
export type TableRow =
  | { readonly key: string; readonly row: TopRow }
  | { readonly key: string; readonly group: Group };

/** The rows of the tab, filtered and sorted. */
export function tableRows(ui: TopUi, view: TopView, now: number, width: number): readonly TableRow[] {
  const matches = wordFilter(ui.filter);
  if (ui.tab === 'requests') {
    const { group } = ui;
    const found = rowsOf(view, ui.shown, now).filter(
      ({ fields }) => (group === undefined || GROUPS[group.kind](fields) === group.name) && matches(fields),
    );
    const column = columnOf(requestColumns(now, view.skew), ui.sort, width);
    return sorted(found, column, ui.isReversed).map((row) => ({ key: row.key, row }));
  }
  const { requests, seconds } = inWindow(view.requests, ui.window, now, view.completeSince);
  const groups = groupsOf(
    requests.filter(({ fields }) => matches(fields)),
    ui.tab,
    seconds,
  );
  const column = columnOf(groupColumns(''), ui.sort ?? 'REQS', width);
  return sorted(groups, column, ui.isReversed).map((group) => ({ key: group.name, group }));
}

function columnOf<T>(
  columns: readonly Column<T>[],
  title: string | undefined,
  width: number,
): Column<T> | undefined {
  return shownColumns(columns, width).find((column) => column.title === title);
}

/** Index of the selected row; -1 if there is none. */
export function selectedRow({ selected, index }: TopUi, rows: readonly TableRow[]): number {
  if (selected === undefined) return rows.length === 0 ? -1 : 0;
  const found = rows.findIndex(({ key }) => key === selected);
  return found === -1 ? Math.min(index, rows.length - 1) : found;
}

/** Words that must all be found: `tool:echo` and the like as for `agctl logs`, others in any field. */
function wordFilter(text: string): RequestFilter {
  const filters = text
    .split(/\s+/)
    .filter((word) => word !== '')
    .map((word): RequestFilter => {
      const [, name = '', value = ''] = /^(\w+):(.+)$/.exec(word) ?? [];
      if (name === 'status' || Object.hasOwn(TEXT_FILTERS, name)) {
        try {
          return requestFilter({ [name]: value });
        } catch (error) {
          // Typed half.
          if (error instanceof InvalidStatusFilter) return () => true;
          throw error;
        }
      }
      const wanted = word.toLowerCase();
      return (fields) =>
        subjectOf(fields).toLowerCase().includes(wanted) ||
        Object.keys(fields).some((key) => fieldText(fields, key).toLowerCase().includes(wanted));
    });
  return (fields) => filters.every((filter) => filter(fields));
}

export interface Pressing {
  readonly view: TopView;
  readonly now: number;
  /** Rows of a page. */
  readonly page: number;
  readonly width: number;
}

/** Applies a key to the screen, or returns an action. */
export function pressTop(
  ui: TopUi,
  key: Key,
  on: Pressing,
): { readonly ui: TopUi; readonly action?: TopAction } {
  if (ui.isTyping) return { ui: typed(ui, key) };
  if (key.input === 'q') return { ui, action: 'quit' };
  if (ui.isHelp) return { ui: { ...ui, isHelp: false } };
  const action = ({ t: 'trace', r: 'record', c: 'copy' } as const)[key.input];
  if (action !== undefined) return { ui, action };
  if (key.name === 'escape') return goBack(ui);
  const change = CHANGES[key.name ?? key.input];
  return { ui: change === undefined ? ui : change(ui, on) };
}

/** Leaves what was opened last; the screen itself at the end. */
function goBack(ui: TopUi): { readonly ui: TopUi; readonly action?: TopAction } {
  if (ui.isDetailed) return { ui: { ...ui, isDetailed: false, top: 0 } };
  if (ui.filter !== '') return { ui: { ...ui, filter: '', ...FIRST_ROW } };
  if (ui.group !== undefined)
    return { ui: { ...ui, tab: ui.group.kind, group: undefined, sort: undefined, ...FIRST_ROW } };
  return { ui, action: 'quit' };
}

const FIRST_ROW = { selected: undefined, index: 0, top: 0 } as const;

type Change = (ui: TopUi, on: Pressing) => TopUi;

const by =
  (amount: (page: number) => number): Change =>
  (ui, on) =>
    ui.isDetailed ? { ...ui, top: Math.max(0, ui.top + amount(on.page)) } : move(ui, on, amount(on.page));
const CHANGES: Readonly<Record<string, Change>> = {
  ...Object.fromEntries(Object.entries(MOVES).map(([key, amount]) => [key, by(amount)])),
  '[': (ui, on) => move(ui, on, -1),
  ']': (ui, on) => move(ui, on, 1),
  tab: (ui) => toTab(ui, 1),
  right: (ui) => toTab(ui, 1),
  left: (ui) => toTab(ui, -1),
  enter,
  o: (ui, on) => nextColumn(ui, on),
  O: (ui) => ({ ...ui, isReversed: !ui.isReversed }),
  w: (ui) => ({
    ...ui,
    window: WINDOWS[(WINDOWS.indexOf(ui.window) + 1) % WINDOWS.length] ?? 60,
  }),
  l: (ui) => ({ ...ui, shown: NEXT_SHOWN[ui.shown], ...FIRST_ROW }),
  p: (ui, { view, now }) => ({ ...ui, paused: ui.paused === undefined ? { view, now } : undefined }),
  '/': (ui) => ({ ...ui, isTyping: true, filter: '' }),
  '?': (ui) => ({ ...ui, isHelp: true }),
};

const NEXT_SHOWN = { all: 'live', live: 'finished', finished: 'all' } as const;

function move(ui: TopUi, { view, now, width }: Pressing, amount: number): TopUi {
  const rows = tableRows(ui, view, now, width);
  if (rows.length === 0) return ui;
  const index = Math.min(rows.length - 1, Math.max(0, selectedRow(ui, rows) + amount));
  // The first row is always the newest one, so that the list can be watched.
  return { ...ui, index, selected: index === 0 ? undefined : rows[index]?.key, top: 0 };
}

function toTab(ui: TopUi, step: number): TopUi {
  const index = (TABS.indexOf(ui.tab) + step + TABS.length) % TABS.length;
  return {
    ...ui,
    tab: TABS[index] ?? 'requests',
    group: undefined,
    sort: undefined,
    isReversed: false,
    isDetailed: false,
    ...FIRST_ROW,
  };
}

/** Opens the details of a request, or the requests of a group. */
function enter(ui: TopUi, { view, now, width }: Pressing): TopUi {
  const rows = tableRows(ui, view, now, width);
  const index = selectedRow(ui, rows);
  const row = rows[index];
  if (row === undefined) return ui;
  // The row is kept from here on: the first one would change with the next request.
  if ('row' in row) return { ...ui, isDetailed: !ui.isDetailed, selected: row.key, index, top: 0 };
  const kind = ui.tab;
  if (kind === 'requests') return ui;
  return {
    ...ui,
    tab: 'requests',
    group: { kind, name: row.group.name },
    sort: undefined,
    isReversed: false,
    ...FIRST_ROW,
  };
}

function nextColumn(ui: TopUi, { now, width, view }: Pressing): TopUi {
  const columns: readonly { readonly title: string; readonly sortBy?: unknown }[] =
    ui.tab === 'requests'
      ? shownColumns(requestColumns(now, view.skew), width)
      : shownColumns(groupColumns(''), width);
  const titles = columns.filter(({ sortBy }) => sortBy !== undefined).map(({ title }) => title);
  const current = ui.sort ?? (ui.tab === 'requests' ? 'TIME' : 'REQS');
  const sort = titles[(titles.indexOf(current) + 1) % titles.length];
  return { ...ui, sort, isReversed: false, ...FIRST_ROW };
}

function typed(ui: TopUi, key: Key): TopUi {
  const next = typeFilter(ui, key);
  return key.name === 'enter' ? { ...next, ...FIRST_ROW } : next;
}
