import { isRecord, textIn } from '../../core/foreign.ts';
import type { Tone } from '../../core/render/span.ts';
import { escapeControls } from '../../core/render/width.ts';
import { placeText, recordsOf } from '../../core/trace/read-event.ts';
import { readable } from '../../core/trace/request-line.ts';
import { resultText } from '../../core/trace/summary.ts';
import { durationText, lastMoment } from '../../core/trace/verdict.ts';
import type { TraceModel, TraceStep } from '../../core/trace-model.ts';
import { celValues, details, ruleText } from '../proxy/trace-text.ts';
import { yamlOf } from '../proxy/yaml-text.ts';

export type DetailView = 'values' | 'event' | 'state' | 'diff' | 'time';

/** A line of the lower pane, safe to print. */
export interface DetailLine {
  readonly text: string;
  readonly tone?: Tone | undefined;
}

/** Maximum number of lines per event: a screen is not suitable for reading a megabyte. */
const MOST_LINES = 5_000;

/** The content of the lower pane for the selected step. */
export function detailLines(
  trace: TraceModel,
  step: TraceStep | undefined,
  view: DetailView,
  isYaml: boolean,
): readonly DetailLine[] {
  if (step === undefined) return [{ text: 'No event available yet.', tone: 'gray' }];
  const lines = VIEWS[view](trace, step, isYaml);
  return lines.slice(0, MOST_LINES).map(({ text, tone }) => ({ text: escapeControls(text), tone }));
}

type View = (trace: TraceModel, step: TraceStep, isYaml: boolean) => readonly DetailLine[];

const VIEWS: Readonly<Record<DetailView, View>> = {
  values: explained,
  event: (_, step, isYaml) => document(readable(step.message), isYaml),
  state: (_, { state }, isYaml) => (state === undefined ? noSnapshot() : document(readable(state), isYaml)),
  diff: (_, step, isYaml) => difference(step, isYaml),
  time: timeline,
};

function noSnapshot(): DetailLine[] {
  return [{ text: 'No snapshot available yet.', tone: 'gray' }];
}

/** Explains the step: what decided, where it is configured, and the values that it read. */
function explained(_: TraceModel, step: TraceStep): DetailLine[] {
  const { message, place, summary, severity } = step;
  const lines: DetailLine[] = [{ text: summary, tone: toneOf(step) }];
  if (place !== undefined) lines.push({ text: `at ${placeText(place)}`, tone: 'cyan' });
  if (message.type === 'cel') {
    lines.push(
      { text: '' },
      { text: textIn(message['expr']) },
      { text: `  => ${resultText(message['result'])}`, tone: severity === 'warn' ? 'yellow' : undefined },
    );
    const values = celValues(message);
    if (values.length > 0) lines.push({ text: '' }, ...values.map((text) => ({ text: `  ${text}` })));
    else if (isRecord(message['requestState']))
      lines.push(
        { text: '' },
        { text: 'variables' },
        ...document(message['requestState'], true).map(({ text }) => ({ text: `  ${text}` })),
      );
  } else if (message.type === 'authorizationResult') {
    lines.push({ text: '' });
    for (const [index, rule] of recordsOf(message['rules']).entries())
      lines.push({ text: ruleText(rule, index), tone: rule['decided'] === true ? toneOf(step) : undefined });
  } else if (message.type === 'policySelection') {
    lines.push({ text: '' }, ...document(message['effectivePolicy'], true));
  } else {
    const more = details(step);
    if (more.length > 0) lines.push({ text: '' }, ...more.map((text) => ({ text })));
  }
  return lines;
}

export function toneOf({ severity, isSkip }: Pick<TraceStep, 'severity' | 'isSkip'>): Tone | undefined {
  if (severity === 'error') return 'red';
  if (severity === 'warn') return 'yellow';
  if (isSkip) return 'gray';
  return severity === 'success' ? 'green' : undefined;
}

function document(value: unknown, isYaml: boolean): DetailLine[] {
  const text = isYaml ? [...yamlOf(value)].join('') : JSON.stringify(value, null, 2);
  return text
    .trimEnd()
    .split('\n')
    .map((line) => ({ text: line, tone: undefined }));
}

/** What the step changed, with two lines of context. */
function difference({ state, before }: TraceStep, isYaml: boolean): DetailLine[] {
  if (state === undefined) return noSnapshot();
  if (before === undefined) return document(readable(state), isYaml);
  const [old, now] = [before, state].map((value) =>
    document(readable(value), isYaml).map(({ text }) => text),
  );
  const lines = lineDiff(old ?? [], now ?? []);
  const isNear = (index: number): boolean =>
    lines.slice(Math.max(0, index - 2), index + 3).some(({ tone }) => tone !== undefined);
  const near = lines.filter((_, index) => isNear(index));
  return near.length === 0 ? [{ text: 'This step changed no known variable.', tone: 'gray' }] : near;
}

/** Compares lines by their longest common prefix and suffix; the lines in between are the difference. */
function lineDiff(old: readonly string[], now: readonly string[]): DetailLine[] {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail))
    tail += 1;
  const same = (lines: readonly string[]): DetailLine[] => lines.map((text) => ({ text: `  ${text}` }));
  return [
    ...same(old.slice(0, head)),
    ...middle(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...same(now.slice(now.length - tail)),
  ];
}

function middle(old: readonly string[], now: readonly string[]): DetailLine[] {
  const lines: DetailLine[] = [];
  const kept = new Set(old);
  let at = 0;
  for (const text of now) {
    const found = kept.has(text) ? old.indexOf(text, at) : -1;
    if (found === -1) lines.push({ text: `+ ${text}`, tone: 'green' });
    else {
      for (const gone of old.slice(at, found)) lines.push({ text: `- ${gone}`, tone: 'red' });
      lines.push({ text: `  ${text}` });
      at = found + 1;
    }
  }
  return [...lines, ...old.slice(at).map((gone): DetailLine => ({ text: `- ${gone}`, tone: 'red' }))];
}

const BAR = 30;

/** The steps with a duration, each drawn between the first and the last moment. */
function timeline(trace: TraceModel): DetailLine[] {
  const total = Math.max(1, lastMoment(trace));
  const timed = trace.steps.filter(({ start }) => start !== undefined);
  const lines = timed.map((step): DetailLine => {
    const name = `${step.label} ${step.summary}`;
    return {
      text: `${shortened(name, 30)} ▏${bar(step.start ?? 0, step.end, total)}▕ ${durationText(step.end - (step.start ?? 0)).padStart(8)}`,
      tone: toneOf(step),
    };
  });
  return [
    { text: `${' '.repeat(31)}0${durationText(total).padStart(BAR + 1)}` },
    ...(lines.length === 0
      ? [{ text: 'No step of this request has a duration.', tone: 'gray' as const }]
      : lines),
  ];
}

const shortened = (text: string, width: number): string =>
  text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width);

function bar(start: number, end: number, total: number): string {
  const from = Math.min(BAR - 1, Math.floor((start / total) * BAR));
  const to = Math.min(BAR, Math.max(from + 1, Math.ceil((end / total) * BAR)));
  return ' '.repeat(from) + '█'.repeat(to - from) + ' '.repeat(BAR - to);
}
