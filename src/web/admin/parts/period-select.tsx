import { type FormEvent, type ReactNode, useEffect, useState } from 'react';
import { Failure } from '../../shared/form.tsx';
import { periodName } from '../../shared/format.ts';
import { Link, navigate, useLocation } from '../../shared/router.tsx';
import { useShortcuts } from '../../shared/shortcuts.tsx';
import { DAY, HOUR } from '../model/recorded.ts';
import type { Entry } from '../model/requests.ts';
import { type Period, periodBefore } from '../model/usage.ts';

interface Span {
  readonly label: string;
  /** In ms. */
  readonly span: number;
  readonly recordedStep?: number;
}

/** Of a long period, the page knows too few requests: its figures are those of the database, in steps of hours or days. */
const SHORTEST = 15 * 60_000;
const SPANS: readonly [Span, ...Span[]] = [
  { label: '15 min', span: SHORTEST },
  { label: '1 h', span: HOUR },
  { label: '6 h', span: 6 * HOUR, recordedStep: HOUR },
  { label: '24 h', span: DAY, recordedStep: HOUR },
  { label: '7 d', span: 7 * DAY, recordedStep: DAY },
  { label: '30 d', span: 30 * DAY, recordedStep: DAY },
];
/** How often the period moves on, in ms. */
const EVERY = 10_000;

export interface ChosenPeriod {
  readonly period: Period;
  readonly span: number;
  /** Length of the buckets of recorded figures in ms; undefined for what the page knows itself. */
  readonly step: number | undefined;
  readonly spans: readonly Span[];
  readonly isZoomed: boolean;
  readonly setSpan: (span: number) => void;
  /** Displays this period until another one is chosen. */
  readonly zoom: (period: Period | undefined) => void;
  /** The same for any period, with the figures that reach back to it. */
  readonly range: (period: Period) => void;
}

/**
 * The time before now, or a part of it that was selected in a chart. Recorded figures allow longer ones. The address of the page
 * has both, so that a link shows the same. `shortStep`: length of the buckets of what is counted for the last hour, if anything is.
 */
export function usePeriod(entries: readonly Entry[], isRecording: boolean, shortStep?: number): ChosenPeriod {
  const { path, query } = useLocation();
  const asked = SPANS.find(({ label }) => label.replace(' ', '') === query.get('span'))?.span ?? SHORTEST;
  const span = asked > DAY && !isRecording ? SHORTEST : asked;
  const long = isRecording ? SPANS.find((each) => each.span === span)?.recordedStep : undefined;
  const step = long ?? shortStep;
  const part = partOf(query);
  const show = (next: number, chosen?: Period): void =>
    navigate(path, addressOf(next, chosen), { replace: true });
  const now = useNow(entries[0]?.at ?? 0);
  return {
    period: part ?? periodBefore(now, span, step),
    span,
    step,
    spans: isRecording ? SPANS : SPANS.filter((each) => each.span <= DAY),
    isZoomed: part !== undefined,
    setSpan: show,
    zoom: (chosen) => show(span, chosen),
    range: (chosen) => {
      const offered = isRecording ? SPANS : SPANS.filter((each) => each.span <= DAY);
      const fit = offered.find((each) => each.span >= Date.now() - chosen.from) ?? offered.at(-1) ?? SPANS[0];
      // What is counted or recorded is summed by whole minutes, hours or days.
      const grain = (isRecording ? fit.recordedStep : undefined) ?? shortStep ?? 1;
      show(fit.span, {
        from: Math.floor(chosen.from / grain) * grain,
        to: Math.ceil(chosen.to / grain) * grain,
      });
    },
  };
}

function partOf(query: URLSearchParams): Period | undefined {
  const [from, to] = ['from', 'to'].map((name) => Date.parse(query.get(name) ?? ''));
  return from !== undefined && to !== undefined && from < to ? { from, to } : undefined;
}

function addressOf(span: number, part: Period | undefined): Readonly<Record<string, string>> {
  const { label } = SPANS.find((each) => each.span === span) ?? SPANS[0];
  const name = label.replace(' ', '');
  return {
    ...(span === SHORTEST ? {} : { span: name }),
    ...(part === undefined
      ? {}
      : { from: new Date(part.from).toISOString(), to: new Date(part.to).toISOString() }),
  };
}

/** The current time, updated at intervals, and never older than the newest request. */
function useNow(newest: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), EVERY);
    return () => clearInterval(timer);
  }, []);
  return Math.max(now, newest + 1);
}

/** Recorded days are those of UTC; `to` is excluded. */
function shownPeriod({ from, to }: Period, step: number | undefined): string {
  if (step !== DAY) return periodName(from, to);
  const [first, last] = [periodName(from, from + DAY), periodName(to - DAY, to)];
  return first === last ? first : `${first} – ${last}`;
}

export function PeriodSelect({
  chosen: { period, span, spans, step, isZoomed, setSpan, zoom, range },
  children,
}: {
  readonly chosen: ChosenPeriod;
  readonly children?: ReactNode;
}): ReactNode {
  useShortcuts(
    isZoomed ? [{ keys: 'Escape', what: 'show the whole period', run: () => zoom(undefined) }] : [],
  );
  return (
    <fieldset className="row bar">
      <legend className="unseen">Period</legend>
      {spans.map(({ label, span: value }) => (
        <label key={label} className="choice">
          <input type="radio" name="span" checked={span === value} onChange={() => setSpan(value)} /> {label}
        </label>
      ))}
      {isZoomed ? (
        <>
          <strong>{shownPeriod(period, step)}</strong>
          <button type="button" aria-keyshortcuts="Escape" onClick={() => zoom(undefined)}>
            Whole period
          </button>
        </>
      ) : null}
      <Range key={`${isZoomed}`} period={period} range={range} />
      <Link
        to="/requests"
        query={{ from: new Date(period.from).toISOString(), to: new Date(period.to).toISOString() }}
      >
        Requests of this period
      </Link>
      {children}
    </fieldset>
  );
}

/** Any period, by its two ends in the time of the browser. */
function Range({ period, range }: { readonly period: Period } & Pick<ChosenPeriod, 'range'>): ReactNode {
  const [problem, setProblem] = useState('');
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const [from = Number.NaN, to = Number.NaN] = ['from', 'to'].map((name) =>
      Date.parse(String(form.get(name))),
    );
    const isPeriod = from < to;
    setProblem(isPeriod ? '' : 'The period must begin before it ends.');
    if (isPeriod) range({ from, to });
  };
  return (
    <details className="range">
      <summary>Other period …</summary>
      <form className="row" onSubmit={submit}>
        <label>
          From
          <input type="datetime-local" name="from" required defaultValue={localText(period.from)} />
        </label>
        <label>
          To
          <input type="datetime-local" name="to" required defaultValue={localText(period.to)} />
        </label>
        <button type="submit">Show</button>
        <Failure text={problem} />
      </form>
    </details>
  );
}

/** `2026-01-05T10:00` in the time of the browser, as inputs have it. */
const localText = (at: number): string =>
  new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
