import { counted } from '../../../core/render/counted.ts';
import { compactCount, moneyText, rateText, tookText } from '../../../core/render/figures.ts';
import { cut, cutSpans, type Span, type Tone } from '../../../core/render/span.ts';
import { escapeControls } from '../../../core/render/width.ts';
import { ends, type Row, rule } from '../row.ts';
import { padRow, type Size } from '../screen.ts';
import { keyRows } from '../screen-texts.ts';
import { type Column, groupColumns, headRow, requestColumns, tableRow, withNames } from './columns.ts';
import { requestDetails } from './top-details.ts';
import { figuresOf, inWindow, sparkline, type TopRow } from './top-model.ts';
import type { TopView } from './top-store.ts';
import { selectedRow, TABS, type TableRow, type TopUi, tableRows } from './top-ui.ts';

/** Minimum width for details beside the list: narrower, they would cut what requests are about. */
const WIDE = 150;
/** Minimum height of list and details for details below the list, in rows. */
const TALL = 28;
/** Rows of the details below the list: outcome and most fields of a request. */
const BELOW = 14;
const HEAD = 3;
/** Rule and titles above the rows of the table. */
const TABLE_HEAD = 2;

type Place = 'beside' | 'below' | 'over';

/** Where the details of the selected request are: `over` the list, if there is no room next to it. */
function placeOfDetails({ tab, isDetailed }: TopUi, width: number, height: number): Place {
  if (isDetailed || tab !== 'requests') return 'over';
  if (width >= WIDE) return 'beside';
  return height >= TALL ? 'below' : 'over';
}

/** Rows between head and foot. */
const bodyOf = ({ rows }: Size): number => Math.max(0, Math.max(1, rows - 1) - HEAD - 1);

/** Rows of the table that fit on the screen. */
export function pageOf(size: Size, ui: TopUi): number {
  const body = bodyOf(size);
  const below = placeOfDetails(ui, size.columns, body) === 'below' ? BELOW : 0;
  return Math.max(1, body - TABLE_HEAD - below);
}

/** Whether a request has a recorded trace. */
export type HasTrace = (row: TableRow) => boolean;

/**
 * The whole screen: `size.rows - 1` rows, none wider than the terminal, as for the trace screen.
 *
 * @param now by the clock of the gateway, in ms since 1970
 */
export function topRows(
  view: TopView,
  ui: TopUi,
  size: Size,
  now: number,
  hasTrace: HasTrace,
): readonly Row[] {
  const { columns: width } = size;
  const height = Math.max(1, size.rows - 1);
  const body = bodyOf(size);
  const rows = [
    ...headRows(view, ui, width, now),
    ...bodyRows(view, ui, width, body, now, hasTrace).slice(0, body),
  ];
  while (rows.length < height - 1) rows.push([]);
  return [...rows.slice(0, height - 1), footRow(view, ui, width)]
    .slice(-height)
    .map((row) => cutSpans(row, width));
}

const PHASES: Readonly<Record<TopView['phase'], { readonly mark: string; readonly tone: Tone }>> = {
  connecting: { mark: '◌ connecting', tone: 'yellow' },
  live: { mark: '● live', tone: 'green' },
  lost: { mark: '✗ gone, trying again', tone: 'red' },
};

function headRows(view: TopView, ui: TopUi, width: number, now: number): Row[] {
  const { phase, source, gateway } = view;
  const { mark, tone } =
    ui.paused === undefined ? PHASES[phase] : { mark: '❚❚ paused', tone: 'yellow' as const };
  const up = gateway === undefined ? '' : `  up ${tookText(now - gateway.startedAt)}`;
  const right = `${view.isRecording ? '◉ traces  ' : ''}${mark}${up}`;
  const line = ends(` agctl top  ${source}`, right, width);
  return [
    [
      { text: line.slice(0, line.length - right.length), isBold: true },
      { text: line.slice(line.length - right.length), tone },
    ],
    figuresRow(view, ui, width, now),
    phase === 'lost' ? [{ text: cut(` ${view.problem}`, width), tone: 'red' }] : backendsRow(view, ui, now),
  ];
}

const SPARK = 20;

function windowText(seconds: number): string {
  return seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`;
}

/** Rate, errors and latency of the requests in the window. */
function figuresRow(view: TopView, ui: TopUi, width: number, now: number): Row {
  const { requests, seconds } = inWindow(view.requests, ui.window, now, view.completeSince);
  const figures = figuresOf(requests, seconds);
  const share = figures.requests === 0 ? 0 : (figures.errors / figures.requests) * 100;
  const spans: Span[] = [
    { text: ` last ${windowText(ui.window)}`, tone: 'gray' },
    ...(width < 100
      ? []
      : [{ text: ` ${sparkline(requests, ui.window, now, SPARK)}`, tone: 'cyan' as const }]),
    { text: `  ${rateText(figures.rate)}/s`, isBold: true },
    {
      text: `  ${counted(figures.requests, 'request').replace(/^\d+/, (text) => compactCount(Number(text)))}`,
    },
    {
      text: `  ${compactCount(figures.errors)} failed${figures.errors === 0 ? '' : ` (${share.toFixed(1)} %)`}`,
      tone: figures.errors === 0 ? 'gray' : 'red',
    },
    { text: `  p50 ${figures.p50 === undefined ? '–' : tookText(figures.p50)}` },
    { text: `  p99 ${figures.p99 === undefined ? '–' : tookText(figures.p99)}` },
  ];
  return spans;
}

/** The database and the shared store if they do not answer, requests in flight, sessions, tokens, cost, and backends that do not work. */
function backendsRow(view: TopView, ui: TopUi, now: number): Row {
  const { requests } = inWindow(view.requests, ui.window, now, view.completeSince);
  const { input, output, cost } = figuresOf(requests, 1);
  const backends = view.gateway?.backends ?? [];
  const sessions = backends.reduce((sum, backend) => sum + backend.sessions, 0);
  const outages = (view.gateway?.outages ?? []).map(
    ({ at, problem }): Span => ({ text: ` ✗ ${escapeControls(`${at}: ${problem}`)}`, tone: 'red' }),
  );
  const spans: Span[] = [
    ...outages,
    { text: ` ${view.openCount} in flight` },
    ...(backends.some(({ isMcp }) => isMcp) ? [{ text: `  ${counted(sessions, 'session')}` }] : []),
    ...(input + output === 0 ? [] : [{ text: `  ${compactCount(input)} → ${compactCount(output)} tokens` }]),
    ...(cost === undefined ? [] : [{ text: `  ${moneyText(cost)}` }]),
  ];
  for (const { failing, models } of backends) {
    for (const { name, problem } of failing)
      spans.push({
        text: `  ✗ ${escapeControls(name)}${problem === undefined ? '' : `: ${escapeControls(problem)}`}`,
        tone: 'red',
      });
    for (const { name, failures } of models)
      if (failures > 0)
        spans.push({
          text: `  ✗ ${escapeControls(name)}: ${counted(failures, 'failure')} in a row`,
          tone: 'red',
        });
  }
  return spans;
}

function bodyRows(
  view: TopView,
  ui: TopUi,
  width: number,
  height: number,
  now: number,
  hasTrace: HasTrace,
): Row[] {
  if (ui.isHelp) return keyRows(HELP, 'any key closes', width);
  const place = placeOfDetails(ui, width, height);
  const left = place === 'beside' ? Math.floor(width * 0.62) : width;
  const rows = tableRows(ui, view, now, left);
  const index = selectedRow(ui, rows);
  const selected = rows[index];
  if (ui.isDetailed && selected !== undefined && 'row' in selected)
    return detailRows(selected, ui, width, height, hasTrace(selected));
  const listed = place === 'below' ? height - BELOW : height;
  const table = tablePane(view, ui, rows, index, left, listed, now);
  if (place === 'over') return table;
  const [columns, lines] = place === 'beside' ? [width - left - 1, height] : [width, BELOW];
  const detail =
    selected !== undefined && 'row' in selected
      ? detailRows(selected, ui, columns, lines, hasTrace(selected))
      : [];
  if (place === 'below')
    return [...Array.from({ length: listed }, (_, row): Row => table[row] ?? []), ...detail];
  return Array.from({ length: height }, (_, row) => [
    ...padRow(cutSpans(table[row] ?? [], left), left),
    { text: '│', tone: 'gray' },
    ...(detail[row] ?? []),
  ]);
}

const SHOWN_TEXTS = { all: '', live: ' in flight', finished: ' finished' } as const;

function tablePane(
  view: TopView,
  ui: TopUi,
  rows: readonly TableRow[],
  index: number,
  width: number,
  height: number,
  now: number,
): Row[] {
  const room = Math.max(0, height - TABLE_HEAD);
  const top = Math.max(0, Math.min(index - Math.floor(room / 2), rows.length - room));
  const isRequests = ui.tab === 'requests';
  const columns = isRequests
    ? fitting(requestColumns(now, view.skew), rows, (each) => ('row' in each ? each.row : undefined))
    : [];
  const groups = isRequests
    ? []
    : withNames(
        fitting(groupColumns(ui.tab.slice(0, -1).toUpperCase()), rows, (each) =>
          'group' in each ? each.group : undefined,
        ),
        rows.flatMap((each) => ('group' in each ? [each.group] : [])),
        width,
      );
  const head = [
    [
      {
        text: titleRule(ui, rows.length === 0 ? '0' : `${index + 1}/${rows.length}`, width),
        tone: 'cyan' as const,
      },
    ],
    isRequests
      ? headRow(columns, ui.sort, ui.isReversed, width)
      : headRow(groups, ui.sort ?? 'REQS', ui.isReversed, width),
  ];
  if (rows.length === 0) return [...head, [{ text: `  ${emptyText(view, ui)}`, tone: 'gray' }]];
  return [
    ...head,
    ...rows.slice(top, top + room).map((each, offset): Row => {
      const isSelected = top + offset === index;
      return 'row' in each
        ? tableRow(columns, each.row, isSelected, width)
        : tableRow(groups, each.group, isSelected, width);
    }),
  ];
}

/** Rows whose cells decide whether an optional column is empty. */
const LOOKED_AT = 200;

/** The columns without optional ones that are empty in all rows. */
function fitting<T>(
  columns: readonly Column<T>[],
  rows: readonly TableRow[],
  itemOf: (row: TableRow) => T | undefined,
): readonly Column<T>[] {
  const values = rows.slice(0, LOOKED_AT).map(itemOf);
  return columns.filter(
    ({ from, cell }) =>
      from === undefined || values.some((value) => value !== undefined && cell(value).text !== ''),
  );
}

function titleRule(ui: TopUi, position: string, width: number): string {
  const { group, filter, isTyping } = ui;
  const words = isTyping || filter !== '' ? ` with "${escapeControls(filter)}${isTyping ? '▏' : ''}"` : '';
  if (group !== undefined)
    return rule(
      `Requests of ${group.kind.slice(0, -1)} ${escapeControls(group.name)}${words}`,
      position,
      width,
    );
  const tabs = TABS.map((tab) => {
    const name = `${tab[0]?.toUpperCase()}${tab.slice(1)}${tab === 'requests' ? SHOWN_TEXTS[ui.shown] : ''}`;
    return tab === ui.tab ? `[${name}]` : name;
  });
  return words === '' ? rule(tabs.join(' '), position, width) : rule(`[${ui.tab}]${words}`, position, width);
}

function emptyText({ requests }: TopView, { tab, filter, group, shown }: TopUi): string {
  if (filter !== '') return 'nothing matches; esc clears the filter';
  if (tab === 'requests')
    return shown === 'live'
      ? 'no request is in flight'
      : group === undefined
        ? 'no requests yet'
        : 'none any more';
  return requests.length === 0
    ? 'no requests yet'
    : `no request of this time names a ${tab.slice(0, -1)}; w shows more`;
}

function detailRows(
  selected: { readonly row: TopRow },
  ui: TopUi,
  width: number,
  height: number,
  hasTrace: boolean,
): Row[] {
  const lines = requestDetails(selected.row, hasTrace, Math.max(10, width - 2));
  const room = Math.max(0, height - 1);
  const top = ui.isDetailed ? Math.max(0, Math.min(ui.top, lines.length - room)) : 0;
  const position =
    lines.length > room ? `${top + 1}-${Math.min(top + room, lines.length)}/${lines.length}` : '';
  return [
    [{ text: rule('Request', position, width), tone: ui.isDetailed ? 'cyan' : 'gray' }],
    ...lines.slice(top, top + room).map(({ text, tone }): Row => [{ text: cut(` ${text}`, width), tone }]),
  ];
}

const HELP: readonly string[] = [
  'Move',
  '  ↑ ↓  j k   previous, next row        g G  first, last      PgUp PgDn  a page',
  '  tab ← →    requests, routes, targets, tools, models, users, sessions',
  '  enter      details of a request; requests of a group       [ ]  in details',
  '  esc        back',
  'Choose',
  '  /          filter: words in any field, status:5xx, status:error, tool:del*,',
  '             route: target: model: user:',
  '  o O        sort by the next column; reverse',
  '  l          in flight and finished; in flight; finished',
  '  w          figures of the last minute, 5 minutes, hour',
  '  p          pause',
  'Traces',
  '  t          trace of the request, or of the next one with its method and path',
  '  r          record the traces of all requests; again to stop',
  'Quit',
  '  q  ctrl-c  c  copy the details     ctrl-z  suspend; fg resumes',
];

function footRow({ note }: TopView, ui: TopUi, width: number): Row {
  if (ui.isTyping)
    return [
      {
        text: cut(' words, status:5xx, tool:name …; enter keeps the filter, esc clears it', width),
        tone: 'gray',
      },
    ];
  if (note !== '') return [{ text: cut(` ${note}`, width), tone: 'cyan' }];
  const keys = ui.isDetailed
    ? ' ↑↓ scroll  [ ] request  t trace  c copy  esc back  ? help  q quit'
    : ' ↑↓ row  enter open  tab view  / filter  o sort  t trace  ? help  q quit';
  return [{ text: cut(keys, width), tone: 'gray' }];
}
