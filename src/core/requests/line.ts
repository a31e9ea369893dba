import { type Outcome, outcomeOfFields } from '../outcome.ts';
import { clockText, compactCount, moneyText, tookText } from '../render/figures.ts';
import { cutSpans, type Span, type Tone } from '../render/span.ts';
import { escapeControls } from '../render/width.ts';
import {
  costOf,
  durationOf,
  fieldText,
  inputTokensOf,
  outputTokensOf,
  type RequestFields,
  routeOf,
  statusOf,
  subjectOf,
  userOf,
} from './finished.ts';

/** Symbols for outcomes, so that color is never the only distinction. */
const MARKS: Readonly<Record<Outcome, string>> = { good: '✓', warn: '!', bad: '✗' };
const TONES: Readonly<Record<Outcome, Tone>> = { good: 'green', warn: 'yellow', bad: 'red' };

export interface LineOptions {
  /** When the request finished, in ms since 1970. */
  readonly at: number;
  /** The current time; a line of another day shows its date. Default: `at`. */
  readonly now?: number | undefined;
  /** Width of the terminal; longer lines are truncated. Default: no limit. */
  readonly columns?: number | undefined;
  /** Fields that `frontendPolicies.accessLog.add` adds. */
  readonly added?: readonly (readonly [name: string, value: unknown])[];
}

const TOOK = 7;

/**
 * A finished request in one line for people: `15:04:38 ✓ 200   12ms  tools/call echo on everything · ann · tools`. The
 * time is that of this machine. What failed comes first after the subject, so that a narrow terminal still shows it.
 */
export function requestLineSpans(fields: RequestFields, options: LineOptions): Span[] {
  const { at, now, columns, added = [] } = options;
  const { mark, tone } = markOf(fields);
  const took = durationOf(fields);
  const spans: Span[] = [
    { text: `${clockText(at, now)} `, tone: 'gray' },
    { text: `${mark} ${String(statusOf(fields) ?? '').padEnd(3)}`, tone },
    { text: (took === undefined ? '' : tookText(took)).padStart(TOOK), tone: 'gray' },
    { text: `  ${subjectOf(fields)}` },
  ];
  const problem = problemText(fields);
  if (problem !== '') spans.push({ text: ` · ${problem}`, tone });
  for (const note of notesOf(fields, added)) spans.push({ text: ` · ${note}`, tone: 'gray' });
  return columns === undefined ? spans : cutSpans(spans, columns);
}

/** Symbol and color of the outcome; none if the configuration removes the status from the log. */
export function markOf(fields: RequestFields): { readonly mark: string; readonly tone: Tone | undefined } {
  const { outcome, problem } = outcomeOfFields(fields);
  if (statusOf(fields) === undefined && problem === undefined) return { mark: ' ', tone: undefined };
  return { mark: MARKS[outcome], tone: TONES[outcome] };
}

/** Why the request was refused or failed; empty if it was not. Safe to print. */
export function problemText(fields: RequestFields): string {
  const { outcome, problem } = outcomeOfFields(fields);
  if (outcome === 'good') return '';
  const detail = fieldText(fields, 'error.detail');
  return [problem === undefined ? '' : escapeControls(problem), detail]
    .filter((part) => part !== '')
    .join(': ');
}

/** Tokens as `1.2k → 311 tokens`; empty without any. */
export function tokensText(fields: RequestFields): string {
  const [input, output] = [inputTokensOf(fields), outputTokensOf(fields)];
  if (input === undefined && output === undefined) return '';
  return `${compactCount(input ?? 0)} → ${compactCount(output ?? 0)} tokens`;
}

function notesOf(fields: RequestFields, added: NonNullable<LineOptions['added']>): string[] {
  const cost = costOf(fields);
  return [
    tokensText(fields),
    cost === undefined ? '' : moneyText(cost),
    userOf(fields),
    // Before the route, because a narrow terminal cuts the end: somebody has asked for them.
    ...added.map(([name, value]) => `${escapeControls(name)}=${fieldText({ value }, 'value')}`),
    routeOf(fields),
  ].filter((note) => note !== '');
}
