import { problemOf, stepToShow } from '../../core/trace/problem.ts';
import type { TraceModel, TraceStep } from '../../core/trace-model.ts';
import type { DetailView } from './detail.ts';
import { type Key, MOVES, typeFilter } from './keys.ts';
import type { TraceView } from './trace-store.ts';

/** What the user has selected on the screen. */
export interface Ui {
  /** Number of the selected step; undefined follows the newest. */
  readonly selected: number | undefined;
  /** Number of the selected trace; undefined selects the last. */
  readonly trace: number | undefined;
  readonly pane: 'steps' | 'detail';
  readonly top: number;
  readonly view: DetailView;
  readonly isYaml: boolean;
  /** Whether snapshots and bodies are listed among the steps. */
  readonly isFull: boolean;
  readonly filter: string;
  readonly isTyping: boolean;
  readonly isHelp: boolean;
  readonly isWrapped: boolean;
  /** Whether the detail pane fills the screen. */
  readonly isZoomed: boolean;
}

export const FIRST_UI: Ui = {
  selected: undefined,
  trace: undefined,
  pane: 'steps',
  top: 0,
  view: 'values',
  isYaml: true,
  isFull: false,
  filter: '',
  isTyping: false,
  isHelp: false,
  isWrapped: false,
  isZoomed: false,
};

/** An action that a key triggers outside of the screen. */
export type Action = 'quit' | 'next' | 'save' | 'copy';

const SNAPSHOTS = new Set(['requestSnapshot', 'responseSnapshot', 'bodySnapshot', 'traceSampling']);

/** The displayed trace. */
export function shownTrace(ui: Ui, { traces }: TraceView): TraceModel | undefined {
  return traces.at(ui.trace ?? -1);
}

/** The displayed steps: those that match the filter, without snapshots unless requested. */
export function shownSteps({ isFull, filter }: Ui, trace: TraceModel | undefined): readonly TraceStep[] {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return (trace?.steps ?? []).filter((step) => {
    if (!isFull && SNAPSHOTS.has(step.message.type)) return false;
    const text = `${step.label} ${step.summary} ${step.severity} ${step.scope.join(' ')}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Index of the selected step: the user's choice, else the first problem of a complete trace, else the newest step. */
export function selectedIndex(ui: Ui, steps: readonly TraceStep[], isOver: boolean): number {
  if (ui.selected !== undefined) {
    const found = steps.findIndex(({ number }) => number >= (ui.selected ?? 0));
    return found === -1 ? steps.length - 1 : found;
  }
  return isOver ? stepToShow(steps) : steps.length - 1;
}

/** Applies a key to the screen, or returns an action. */
export function press(
  ui: Ui,
  key: Key,
  view: TraceView,
  page: number,
): { readonly ui: Ui; readonly action?: Action } {
  if (ui.isTyping) return { ui: typeFilter(ui, key) };
  if (ui.isHelp)
    return {
      ui: { ...ui, isHelp: key.input === 'q' ? ui.isHelp : false },
      ...(key.input === 'q' ? { action: 'quit' as const } : {}),
    };
  const action = ACTIONS[key.input];
  if (action !== undefined) return action === 'next' ? { ui: FIRST_UI, action } : { ui, action };
  if (key.name === 'escape')
    return ui.isZoomed || ui.filter !== ''
      ? { ui: { ...ui, isZoomed: false, filter: '' } }
      : { ui, action: 'quit' };
  const change = CHANGES[key.name ?? key.input];
  return { ui: change === undefined ? ui : change(ui, view, page) };
}

const ACTIONS: Readonly<Record<string, Action>> = { q: 'quit', n: 'next', r: 'next', w: 'save', c: 'copy' };

type Change = (ui: Ui, view: TraceView, page: number) => Ui;

const look =
  (view: DetailView): Change =>
  (ui) => ({ ...ui, view, top: 0 });
const by =
  (amount: (page: number) => number): Change =>
  (ui, view, page) =>
    ui.pane === 'detail' || ui.isZoomed
      ? { ...ui, top: Math.max(0, ui.top + amount(page)) }
      : move(ui, view, amount(page));

const CHANGES: Readonly<Record<string, Change>> = {
  ...Object.fromEntries(Object.entries(MOVES).map(([key, amount]) => [key, by(amount)])),
  tab: (ui) => ({ ...ui, pane: ui.pane === 'steps' ? 'detail' : 'steps' }),
  enter: (ui) => ({ ...ui, isZoomed: !ui.isZoomed }),
  v: look('values'),
  e: look('event'),
  s: look('state'),
  d: look('diff'),
  t: look('time'),
  f: (ui) => ({ ...ui, isYaml: !ui.isYaml, top: 0 }),
  z: (ui) => ({ ...ui, isWrapped: !ui.isWrapped, top: 0 }),
  '.': (ui) => ({ ...ui, isFull: !ui.isFull }),
  '/': (ui) => ({ ...ui, isTyping: true, filter: '' }),
  '?': (ui) => ({ ...ui, isHelp: true }),
  '!': nextProblem,
  '[': (ui, view) => another(ui, view, -1),
  ']': (ui, view) => another(ui, view, 1),
};

function move(ui: Ui, view: TraceView, amount: number): Ui {
  const steps = shownSteps(ui, shownTrace(ui, view));
  if (steps.length === 0) return ui;
  const index = selectedIndex(ui, steps, view.phase === 'done' || view.phase === 'lost') + amount;
  return { ...ui, selected: steps[Math.min(steps.length - 1, Math.max(0, index))]?.number, top: 0 };
}

function nextProblem(ui: Ui, view: TraceView): Ui {
  const steps = shownSteps(ui, shownTrace(ui, view));
  const at = steps[selectedIndex(ui, steps, true)]?.number ?? 0;
  const problems = steps.filter((step) => problemOf(step) !== undefined);
  const next = problems.find(({ number }) => number > at) ?? problems[0];
  return next === undefined ? ui : { ...ui, selected: next.number, top: 0 };
}

function another(ui: Ui, { traces, phase }: TraceView, amount: number): Ui {
  // While the command waits for the next request, all existing traces are complete and precede it.
  const isWaiting = phase === 'waiting' || phase === 'connecting';
  const index = Math.max(0, (ui.trace ?? traces.length - (isWaiting ? 0 : 1)) + amount);
  const trace = index < traces.length ? index : undefined;
  return { ...ui, trace, selected: undefined, top: 0 };
}
