import { useMemo } from 'react';
import { useLoaded } from '../../shared/use-loaded.ts';
import { DAY, figuresOfSums, NO_SUMS, recordedBuckets, type Usage, usagePath } from '../model/recorded.ts';
import type { Entry } from '../model/requests.ts';
import { bucketsOf, type Figures, figuresOf, type Period, within } from '../model/usage.ts';
import type { ChosenPeriod } from './period-select.tsx';

/** How often what is recorded is read again, in ms. */
export const EVERY = 30_000;

/** Numbers of a period, over time and in total. */
export interface PeriodFigures {
  readonly period: Period;
  /** Length of a bucket in ms. */
  readonly step: number;
  /** Of each bucket, oldest first. */
  readonly buckets: readonly Figures[];
  readonly total: Figures;
  /** The requests that the page knows; empty if the figures come from the database. */
  readonly entries: readonly Entry[];
  readonly isRecorded: boolean;
  readonly error: Error | undefined;
  readonly reload: () => void;
}

/** The figures of the chosen period: from the database if it is a long one, else from the requests that the page knows. */
export function useFigures(
  { period: { from, to }, step }: ChosenPeriod,
  entries: readonly Entry[],
): PeriodFigures {
  const by = step === DAY ? 'day' : 'hour';
  const { data, error, reload } = useLoaded<Usage>(
    step === undefined ? undefined : usagePath(by, { from, to }),
    EVERY,
  );
  const live = useMemo(() => {
    if (step !== undefined) return undefined;
    const known = within(entries, { from, to });
    const { step: length, entries: parts } = bucketsOf(known, { from, to });
    return { step: length, buckets: parts.map(figuresOf), total: figuresOf(known), entries: known };
  }, [entries, from, to, step]);
  const recorded = useMemo(() => {
    if (step === undefined) return undefined;
    const usage = data ?? EMPTY;
    const buckets = recordedBuckets(usage, { from, to }, step);
    return { step, buckets, total: figuresOfSums(usage.total), entries: [] };
  }, [data, from, to, step]);
  const shown = live ?? recorded ?? { step: 1, buckets: [], total: figuresOf([]), entries: [] };
  return { ...shown, period: { from, to }, isRecorded: step !== undefined, error, reload };
}

const EMPTY: Usage = { rows: [], total: NO_SUMS };
