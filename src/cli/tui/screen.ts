import { cut, type Span, type Tone } from '../../core/render/span.ts';
import { displayWidth, escapeControls } from '../../core/render/width.ts';
import { requestLine } from '../../core/trace/request-line.ts';
import { decidingPlace, durationText, lastMoment, stagesOf, verdictText } from '../../core/trace/verdict.ts';
import type { TraceModel, TraceStep } from '../../core/trace-model.ts';
import { type DetailView, detailLines, toneOf } from './detail.ts';
import { ends, pad, type Row, rule, wrap } from './row.ts';
import { awaited, helpRows, waitingRows } from './screen-texts.ts';
import type { TraceView } from './trace-store.ts';
import { selectedIndex, shownSteps, shownTrace, type Ui } from './ui-state.ts';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** Minimum width for panes side by side; on narrower screens they are stacked. */
const WIDE = 110;
const NARROW = 60;
const LOW = 14;
const HEAD = 3;

/**
 * The whole screen: `size.rows - 1` rows, none wider than the terminal. If a frame is as high as the terminal, Ink
 * clears everything including the scrollback.
 */
export function screenRows(view: TraceView, ui: Ui, size: Size, now: number): readonly Row[] {
  const width = size.columns;
  const height = Math.max(1, size.rows - 1);
  const trace = shownTrace(ui, view);
  const body = height - HEAD - 1;
  const main = ui.isHelp
    ? helpRows(width)
    : trace === undefined || (trace.steps.length === 0 && view.phase !== 'done') || isAwaiting(view, ui)
      ? waitingRows(view, width)
      : panes(view, ui, trace, width, body);
  const rows: Row[] = [
    ...headRows(view, isAwaiting(view, ui) ? undefined : trace, width, now),
    ...main.slice(0, body),
  ];
  while (rows.length < height - 1) rows.push([]);
  return [...rows.slice(0, height - 1), footRow(view, ui, width)].slice(0, height);
}

const PHASES: Readonly<Record<TraceView['phase'], { readonly mark: string; readonly tone: Tone }>> = {
  connecting: { mark: '◌ connecting', tone: 'yellow' },
  waiting: { mark: '◌ waiting', tone: 'yellow' },
  live: { mark: '◍ tracing', tone: 'cyan' },
  done: { mark: '● done', tone: 'green' },
  lost: { mark: '✗ disconnected', tone: 'red' },
};

/** There is nothing to display but the waiting text; an earlier trace can still be selected. */
const isAwaiting = ({ phase }: TraceView, ui: Ui): boolean =>
  ui.trace === undefined && (phase === 'connecting' || phase === 'waiting');

function headRows(view: TraceView, shown: TraceModel | undefined, width: number, now: number): Row[] {
  const { mark, tone } = view.isSaved
    ? { mark: '● saved trace', tone: 'green' as const }
    : PHASES[view.phase];
  const count =
    shown === undefined ? '' : `  ${shown.steps.length} steps  ${durationText(lastMoment(shown))}`;
  const clock = view.phase === 'waiting' ? `  ${clockText(now - view.armedAt)}` : '';
  const right = `${mark}${count}${clock}`;
  const left = ` agctl trace  ${view.source}`;
  const line = ends(left, right, width);
  const head: Row = [
    { text: line.slice(0, line.length - right.length), isBold: true },
    { text: line.slice(line.length - right.length), tone },
  ];
  if (shown === undefined)
    return [
      head,
      [
        {
          text: cut(` ${awaited(view)}`, width),
        },
      ],
      [],
    ];
  const place = decidingPlace(shown);
  const verdict = escapeControls(
    shown.verdict === undefined ? (view.phase === 'lost' ? 'no response seen' : '') : verdictText(shown),
  );
  const request = cut(` ${escapeControls(requestLine(shown.state))}`, Math.max(20, Math.floor(width / 2)));
  return [
    head,
    [
      { text: request, isBold: true },
      { text: cut(`   ${verdict}`, width - displayWidth(request)), tone: statusTone(shown) },
    ],
    ribbon(shown, place, width),
  ];
}

function clockText(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  return `${String(Math.floor(seconds / 60)).padStart(2, '0')}:${String(seconds % 60).padStart(2, '0')}`;
}

function statusTone({ verdict }: TraceModel): Tone | undefined {
  const status = verdict?.status ?? 0;
  if (status >= 500 || verdict?.error != null) return 'red';
  return status >= 400 ? 'yellow' : status >= 200 ? 'green' : undefined;
}

const MARK_TONES: Readonly<Record<string, Tone>> = {
  '✓': 'green',
  '✗': 'red',
  '–': 'gray',
  '○': 'gray',
  '…': 'cyan',
};

/** The stages of the request in one row, truncated if there is no room. */
function ribbon(trace: TraceModel, place: string, width: number): Row {
  const spans: Span[] = [{ text: ' ' }];
  const tail = place === '' ? '' : `  ${escapeControls(place)}`;
  let left = width - 1 - displayWidth(tail);
  for (const [index, { mark, text }] of stagesOf(trace).entries()) {
    const lead = index === 0 ? '' : ' › ';
    const shown = cut(`${lead}${mark} ${escapeControls(text)}`, left);
    left -= displayWidth(shown);
    spans.push({ text: shown, tone: MARK_TONES[mark] });
    if (left <= 0) break;
  }
  return tail === '' ? spans : [...spans, { text: tail, tone: 'cyan' }];
}

function panes(view: TraceView, ui: Ui, trace: TraceModel, width: number, height: number): Row[] {
  const isOver = view.phase === 'done' || view.phase === 'lost';
  const steps = shownSteps(ui, trace);
  const index = selectedIndex(ui, steps, isOver);
  const step = steps[index];
  const problem = view.phase === 'lost' && ui.selected === undefined ? view.problem : undefined;
  if (ui.isZoomed) return detailPane(ui, trace, step, problem, width, height);
  if (width < NARROW || height < LOW - HEAD) return stepsPane(ui, steps, index, width, height);
  if (width >= WIDE) {
    const left = Math.floor(width * 0.48);
    const leftRows = stepsPane(ui, steps, index, left, height);
    const rightRows = detailPane(ui, trace, step, problem, width - left - 1, height);
    return Array.from({ length: height }, (_, row) => [
      ...padRow(leftRows[row] ?? [], left),
      { text: '│', tone: 'gray' },
      ...(rightRows[row] ?? []),
    ]);
  }
  const half = Math.ceil(height / 2);
  const whole = (stepLines(steps, index, width, half - 1) ?? []).length + 1;
  const upper = whole > 1 ? whole : Math.min(steps.length + 1, half);
  return [
    ...stepsPane(ui, steps, index, width, upper),
    ...detailPane(ui, trace, step, problem, width, height - upper),
  ];
}

/** A row with spaces up to a width. */
export function padRow(row: Row, width: number): Row {
  const used = row.reduce((sum, { text }) => sum + displayWidth(text), 0);
  return used >= width ? row : [...row, { text: ' '.repeat(width - used) }];
}

function stepsPane(
  ui: Ui,
  steps: readonly TraceStep[],
  selected: number,
  width: number,
  height: number,
): Row[] {
  const title =
    ui.filter === '' && !ui.isTyping
      ? 'Steps'
      : `Steps with "${escapeControls(ui.filter)}${ui.isTyping ? '▏' : ''}"`;
  const head: Row = [
    {
      text: rule(title, `${steps.length === 0 ? 0 : selected + 1}/${steps.length}`, width),
      tone: ui.pane === 'steps' ? 'cyan' : 'gray',
    },
  ];
  const room = Math.max(0, height - 1);
  if (steps.length === 0) return [head, [{ text: '  no step matches', tone: 'gray' }]];
  const whole = stepLines(steps, selected, width, room);
  if (whole !== undefined) return [head, ...whole];
  const top = Math.max(0, Math.min(selected - Math.floor(room / 2), steps.length - room));
  return [
    head,
    ...steps
      .slice(top, top + room)
      .map((step, offset) => stepRows(step, top + offset === selected, width)[0] ?? []),
  ];
}

/** The rows of all steps with whole texts; undefined if they need more than `room` rows. */
function stepLines(
  steps: readonly TraceStep[],
  selected: number,
  width: number,
  room: number,
): Row[] | undefined {
  if (steps.length > room) return undefined;
  const rows = steps.flatMap((step, index) => stepRows(step, index === selected, width, MOST_LINES));
  return rows.length > room ? undefined : rows;
}

const MARKS = { success: '✓', info: '✓', warn: '!', error: '✗' } as const;
const TIME = 8;
const LABEL = 9;
const TOOK = 9;
/** Rows of one step. */
const MOST_LINES = 4;

/** A step in at most `most` rows; what does not fit is truncated. */
function stepRows(step: TraceStep, isSelected: boolean, width: number, most = 1): Row[] {
  const { severity, isSkip, end, start, label, scope, summary } = step;
  const took = start === undefined ? '' : durationText(end - start);
  const moment = (end / 1000).toFixed(2).padStart(TIME);
  const room = width - 4 - TIME - 2 - LABEL - 1 - TOOK - 1;
  const text = escapeControls(`${scope.length === 0 ? '' : `${scope.join(' > ')}: `}${summary}`);
  const tone = toneOf(step);
  // Without a duration, the text has its columns too.
  const textWidth = Math.max(4, took === '' ? room + TOOK + 1 : room);
  const parts = wrap(text, textWidth);
  const shown = parts.length <= most ? parts : [...parts.slice(0, most - 1), parts.slice(most - 1).join(' ')];
  return shown.map((part, index): Row => {
    const isFirst = index === 0;
    const lead = isFirst ? ` ${moment}  ${pad(escapeControls(label), LABEL)} ` : ' '.repeat(TIME + LABEL + 4);
    const end = isFirst && took !== '' ? ` ${took.padStart(TOOK)}` : '';
    return [
      { text: isFirst && isSelected ? '▸ ' : '  ', isBold: true },
      { text: isFirst ? (isSkip ? '–' : MARKS[severity]) : ' ', tone: tone ?? 'green', isSelected },
      { text: cut(`${lead}${pad(part, textWidth)}${end}`, width - 3), tone, isSelected },
    ];
  });
}

const VIEW_NAMES: Readonly<Record<DetailView, string>> = {
  values: 'Explained',
  event: 'Event',
  state: 'State',
  diff: 'What changed',
  time: 'Time',
};

function detailPane(
  ui: Ui,
  trace: TraceModel,
  step: TraceStep | undefined,
  problem: TraceView['problem'],
  width: number,
  height: number,
): Row[] {
  const form =
    ui.view === 'event' || ui.view === 'state' || ui.view === 'diff' ? (ui.isYaml ? ' YAML' : ' JSON') : '';
  const lines = problem === undefined ? detailLines(trace, step, ui.view, ui.isYaml) : lostLines(problem);
  const shown =
    ui.isWrapped || ui.view === 'values'
      ? lines.flatMap(({ text, tone }) => wrap(text, width - 1).map((part) => ({ text: part, tone })))
      : lines;
  const room = Math.max(0, height - 1);
  const top = Math.max(0, Math.min(ui.top, shown.length - room));
  const title = `${VIEW_NAMES[ui.view]}: ${escapeControls(step === undefined ? '' : step.label)}${form}`;
  const position =
    shown.length > room ? `${top + 1}-${Math.min(top + room, shown.length)}/${shown.length}` : '';
  return [
    [
      {
        text: rule(problem === undefined ? title : 'Disconnected', position, width),
        tone: ui.pane === 'detail' ? 'cyan' : 'gray',
      },
    ],
    ...shown.slice(top, top + room).map(({ text, tone }): Row => [{ text: cut(` ${text}`, width), tone }]),
  ];
}

function lostLines({ text, help }: NonNullable<TraceView['problem']>): { text: string; tone?: Tone }[] {
  return [
    { text, tone: 'red' },
    ...(help === '' ? [] : [{ text: `help: ${help}` }]),
    { text: 'w saves the steps so far; n connects again and waits', tone: 'gray' },
  ];
}

function footRow({ note, isSaved }: TraceView, ui: Ui, width: number): Row {
  if (note !== '') return [{ text: cut(` ${note}`, width), tone: 'cyan' }];
  if (ui.isTyping)
    return [{ text: cut(' type a word; enter keeps the filter, esc clears it', width), tone: 'gray' }];
  const again = isSaved ? '' : '  n next';
  return [
    {
      text: cut(` ↑↓ step  tab pane  v e s d t view  / filter  w save${again}  ? help  q quit`, width),
      tone: 'gray',
    },
  ];
}
