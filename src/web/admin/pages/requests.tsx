import { type ReactNode, useDeferredValue, useMemo, useState } from 'react';
import { counted } from '../../../core/render/counted.ts';
import type { Column } from '../../shared/column.ts';
import { download } from '../../shared/download.ts';
import { Select } from '../../shared/form.tsx';
import { clock, count, times } from '../../shared/format.ts';
import { LiveText } from '../../shared/live-text.tsx';
import { navigate, useLocation } from '../../shared/router.tsx';
import { useShortcuts } from '../../shared/shortcuts.tsx';
import { VirtualTable } from '../../shared/virtual-table.tsx';
import {
  addressOf,
  callerOf,
  costOf,
  inputOf,
  isError,
  isRefused,
  lineOf,
  modelOf,
  outputOf,
  problemOf,
  routeOf,
  statusOf,
  subjectOf,
  targetOf,
  tookText,
  toolOf,
} from '../model/fields.ts';
import { type Filter, narrow, readFilter, valuesOf, writeFilter } from '../model/filter.ts';
import { dollars } from '../model/money.ts';
import { type Entry, useRequests } from '../model/requests.ts';
import { type RouteTitles, useRouteTitles } from '../model/route-titles.ts';
import { NoRequests } from '../parts/no-requests.tsx';
import { RequestDrawer } from '../parts/request-drawer.tsx';
import { Status } from '../parts/status.tsx';

/** The access log, updated continuously and filtered. */
export function Requests(): ReactNode {
  const { entries } = useRequests();
  const [held, setHeld] = useState<readonly Entry[]>();
  const filter = readFilter(useLocation().query);
  const titleOf = useRouteTitles();
  const text = useDeferredValue(filter.text);
  const all = held ?? entries;
  const { status, route, model, caller, from, to } = filter;
  const rows = useMemo(
    () => narrow(all, { status, route, model, caller, text, from, to }),
    [all, status, route, model, caller, text, from, to],
  );
  const missed = held === undefined ? 0 : newer(entries, held);
  const togglePause = (): void => setHeld(held === undefined ? entries : undefined);
  useShortcuts([{ keys: 'p', what: 'pause and resume', run: togglePause }]);
  return (
    <>
      <FilterBar filter={filter} entries={all} titleOf={titleOf} />
      <div className="row bar">
        <button type="button" aria-pressed={held !== undefined} aria-keyshortcuts="p" onClick={togglePause}>
          {held === undefined ? 'Pause' : `Resume (${missed} new)`}
        </button>
        <button type="button" disabled={rows.length === 0} onClick={() => exportLines(rows)}>
          Export JSON Lines
        </button>
        <button type="button" disabled={rows.length === 0} onClick={() => exportTable(rows)}>
          Export CSV
        </button>
        <span className="quiet">
          {count(rows.length)} of {count(all.length)} requests
          {held === undefined ? '' : ', paused'}
        </span>
      </div>
      <LiveText text={summary(rows)} />
      {all.length === 0 ? <NoRequests /> : <RequestTable rows={rows} all={all} titleOf={titleOf} />}
    </>
  );
}

/** Entries that are newer than those of a list. */
function newer(entries: readonly Entry[], held: readonly Entry[]): number {
  const first = held[0]?.key;
  const at = first === undefined ? -1 : entries.findIndex(({ key }) => key === first);
  return at === -1 ? entries.length : at;
}

function summary(rows: readonly Entry[]): string {
  const errors = rows.filter(isError).length;
  const refused = rows.filter(isRefused).length;
  return `${counted(rows.length, 'request')}, ${counted(errors, 'error')}, ${count(refused)} refused`;
}

function exportLines(rows: readonly Entry[]): void {
  const lines = rows.toReversed().map(({ time, fields }) => `${JSON.stringify({ time, ...fields })}\n`);
  download('requests.jsonl', lines.join(''), 'application/jsonl');
}

function exportTable(rows: readonly Entry[]): void {
  const names = [...new Set(rows.flatMap(({ fields }) => Object.keys(fields)))];
  const lines = rows
    .toReversed()
    .map(({ time, fields }) => csvLine([time, ...names.map((name) => fields[name])]));
  download('requests.csv', csvLine(['time', ...names]) + lines.join(''), 'text/csv');
}

const STATUSES = [
  ['', 'any'],
  ['2', '2xx'],
  ['3', '3xx'],
  ['4', '4xx'],
  ['5', '5xx'],
  ['errors', 'errors'],
  ['refused', 'refused'],
] as const;

function FilterBar({
  filter,
  entries,
  titleOf,
}: {
  readonly filter: Filter;
  readonly entries: readonly Entry[];
  readonly titleOf: RouteTitles;
}): ReactNode {
  const set = (change: Partial<Filter>): void =>
    navigate('/requests', writeFilter({ ...filter, ...change }), { replace: true });
  const routes = useMemo(() => valuesOf(entries, routeOf), [entries]);
  const models = useMemo(() => valuesOf(entries, modelOf), [entries]);
  const callers = useMemo(() => valuesOf(entries, callerOf), [entries]);
  return (
    <search className="row">
      <label className="grow">
        Text in any field
        <input
          type="search"
          data-filter
          aria-keyshortcuts="/"
          value={filter.text}
          onChange={(event) => set({ text: event.target.value })}
        />
      </label>
      <Select label="Status" value={filter.status} values={STATUSES} choose={(status) => set({ status })} />
      <Choice
        label="Route"
        values={routes}
        value={filter.route}
        textOf={titleOf}
        choose={(route) => set({ route })}
      />
      {callers.length === 0 && filter.caller === '' ? null : (
        <Choice label="Caller" values={callers} value={filter.caller} choose={(caller) => set({ caller })} />
      )}
      {models.length === 0 && filter.model === '' ? null : (
        <Choice label="Model" values={models} value={filter.model} choose={(model) => set({ model })} />
      )}
      {filter.from === '' && filter.to === '' ? null : (
        <button type="button" onClick={() => set({ from: '', to: '' })}>
          {times(filter.from, filter.to)} <span aria-hidden="true">×</span>
          <span className="unseen">, show any time</span>
        </button>
      )}
    </search>
  );
}

function Choice({
  label,
  values,
  value,
  choose,
  textOf = (one) => one,
}: {
  readonly label: string;
  readonly values: readonly string[];
  readonly value: string;
  readonly textOf?: (value: string) => string;
  readonly choose: (value: string) => void;
}): ReactNode {
  // The value in the address is always offered, even if no request has it (yet).
  const shown = value === '' || values.includes(value) ? values : [...values, value];
  return (
    <Select
      label={label}
      value={value}
      values={[['', 'any'], ...shown.map((one) => [one, textOf(one)] as const)]}
      choose={choose}
    />
  );
}

const statusText = (entry: Entry): string => `✓ ${statusOf(entry) || 'none'}`;
/** Where there is no room for a column of targets: tool and target, model and provider, or the path if neither is named. */
const shortAbout = (entry: Entry): string => {
  const [subject, target] = [toolOf(entry) || subjectOf(entry), targetOf(entry)];
  return subject === '' ? lineOf(entry) : target === '' ? subject : `${subject} · ${target}`;
};

interface RequestColumn extends Column<Entry> {
  /** Shown only if a request has a value: an empty column takes room from the others. */
  readonly isOptional?: true;
}

const WIDE = ['tablet', 'desktop'] as const;

const columnsOf = (titleOf: RouteTitles): readonly RequestColumn[] => [
  { name: 'Time', cell: ({ at }) => clock(at) },
  {
    name: 'Status',
    shownOn: WIDE,
    text: (entry) => statusText(entry) + (isError(entry) ? ' failed' : ''),
    cell: (entry) => <Status entry={entry} />,
  },
  {
    name: 'Status',
    shownOn: ['phone'],
    text: statusText,
    cell: (entry) => <Status entry={entry} isShort />,
  },
  { name: 'Request', shownOn: ['phone', 'tablet'], shrinks: true, cell: shortAbout },
  { name: 'Took', shownOn: WIDE, isNumber: true, cell: tookText },
  {
    name: 'Request',
    shownOn: ['desktop'],
    shrinks: true,
    text: (entry) => `${subjectOf(entry)} ${lineOf(entry)}`,
    cell: (entry) => <Asked entry={entry} />,
  },
  { name: 'Target', shownOn: ['desktop'], isOptional: true, cell: targetOf },
  { name: 'Caller', shownOn: WIDE, isOptional: true, shrinks: true, cell: callerOf },
  { name: 'Address', shownOn: ['desktop'], isOptional: true, cell: addressOf },
  {
    name: 'Route',
    shownOn: ['desktop'],
    isOptional: true,
    shrinks: true,
    cell: (entry) => (routeOf(entry) === '' ? '' : titleOf(routeOf(entry))),
  },
  { name: 'Tokens', shownOn: WIDE, isOptional: true, isNumber: true, cell: tokens },
  {
    name: 'Cost',
    shownOn: WIDE,
    isOptional: true,
    isNumber: true,
    cell: (entry) => money(costOf(entry)),
  },
];

/** The tool, prompt, resource or model of a request, then its method and path. */
function Asked({ entry }: { readonly entry: Entry }): ReactNode {
  const subject = subjectOf(entry);
  if (subject === '') return lineOf(entry);
  return (
    <>
      {subject} <span className="quiet">{lineOf(entry)}</span>
    </>
  );
}

function tokens(entry: Entry): string {
  return inputOf(entry) + outputOf(entry) === 0 ? '' : `${inputOf(entry)} → ${outputOf(entry)}`;
}

const money = (cost: number | undefined): string => (cost === undefined ? '' : dollars(cost));

/** The columns that have something to show in one of these rows. Once found, a value is not looked for again. */
function useColumns(rows: readonly Entry[], titleOf: RouteTitles): readonly Column<Entry>[] {
  const columns = useMemo(() => columnsOf(titleOf), [titleOf]);
  const shown = useMemo(
    () =>
      columns
        .map(({ isOptional, cell }, at) =>
          isOptional === undefined || rows.some((row) => cell(row) !== '') ? at : -1,
        )
        .join(' '),
    [columns, rows],
  );
  return useMemo(() => {
    const kept = shown.split(' ');
    return columns.filter((_, at) => kept.includes(String(at)));
  }, [columns, shown]);
}

const keyOf = ({ key }: Entry): string => key;

function RequestTable({
  rows,
  all,
  titleOf,
}: {
  readonly rows: readonly Entry[];
  /** Also those that the filter leaves out: it does not change the columns. */
  readonly all: readonly Entry[];
  readonly titleOf: RouteTitles;
}): ReactNode {
  const columns = useColumns(all, titleOf);
  const [chosen, setChosen] = useState<string>();
  const [opened, setOpened] = useState<string>();
  const at = chosen === undefined ? -1 : rows.findIndex(({ key }) => key === chosen);
  const go = (to: number): void => {
    const row = rows[Math.min(Math.max(0, to), rows.length - 1)];
    if (row === undefined) return;
    setChosen(row.key);
    if (opened !== undefined) setOpened(row.key);
  };
  useShortcuts([
    { keys: 'j', what: 'next request', run: () => go(at + 1) },
    { keys: 'k', what: 'request before', run: () => go(at - 1) },
    { keys: 'Enter', what: 'open the chosen request', run: () => setOpened(chosen) },
  ]);
  const shown = opened === undefined ? undefined : rows.find(({ key }) => key === opened);
  if (rows.length === 0) return <p className="panel">No request matches. Change the filter above.</p>;
  return (
    <>
      <VirtualTable
        caption="Requests, newest first"
        rows={rows}
        columns={columns}
        keyOf={keyOf}
        detail={problemOf}
        chosen={chosen}
        choose={setChosen}
        open={({ key }) => {
          setChosen(key);
          setOpened(key);
        }}
      />
      {shown === undefined ? null : (
        <RequestDrawer
          entry={shown}
          close={() => setOpened(undefined)}
          newer={at > 0 ? () => go(at - 1) : undefined}
          older={at < rows.length - 1 ? () => go(at + 1) : undefined}
        />
      )}
    </>
  );
}

/**
 * One line of a table in CSV format (RFC 4180). Texts that a spreadsheet would interpret as a formula are escaped,
 * because values may come from clients.
 */
function csvLine(values: readonly unknown[]): string {
  return `${values.map(csvCell).join(',')}\r\n`;
}

function csvCell(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
