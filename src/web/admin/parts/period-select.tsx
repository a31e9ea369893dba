import { type ReactNode, useEffect, useState } from 'react';
import { clock } from '../../shared/format.ts';
import { Link } from '../../shared/router.tsx';
import { useShortcuts } from '../../shared/shortcuts.tsx';
import type { Entry } from '../model/requests.ts';
import { type Period, periodBefore } from '../model/usage.ts';

const MINUTE = 60_000;
const SPANS = [
  { label: '15 min', span: 15 * MINUTE },
  { label: '1 h', span: 60 * MINUTE },
  { label: '6 h', span: 6 * 60 * MINUTE },
  { label: '24 h', span: 24 * 60 * MINUTE },
] as const;
/** How often the period moves on, in ms. */
const EVERY = 10_000;

export interface ChosenPeriod {
  readonly period: Period;
  readonly span: number;
  readonly isZoomed: boolean;
  readonly setSpan: (span: number) => void;
  /** Displays this period until another one is chosen. */
  readonly zoom: (period: Period | undefined) => void;
}

/** The time before now, or a part of it that was selected in a chart. */
export function usePeriod(entries: readonly Entry[]): ChosenPeriod {
  const [span, setSpan] = useState<number>(SPANS[0].span);
  const [part, zoom] = useState<Period>();
  const now = useNow(entries[0]?.at ?? 0);
  return {
    period: part ?? periodBefore(now, span),
    span,
    isZoomed: part !== undefined,
    setSpan: (next) => {
      zoom(undefined);
      setSpan(next);
    },
    zoom,
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

export function PeriodSelect({
  chosen: { period, span, isZoomed, setSpan, zoom },
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
      {SPANS.map(({ label, span: value }) => (
        <label key={label} className="choice">
          <input type="radio" name="span" checked={span === value} onChange={() => setSpan(value)} /> {label}
        </label>
      ))}
      {isZoomed ? (
        <>
          <strong>
            {clock(period.from)} – {clock(period.to)}
          </strong>
          <button type="button" aria-keyshortcuts="Escape" onClick={() => zoom(undefined)}>
            Whole period
          </button>
        </>
      ) : null}
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
