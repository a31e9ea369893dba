import { quantile } from '../../../core/render/figures.ts';
import { costOf, inputOf, isError, isRefused, latencyOf, outputOf } from './fields.ts';
import type { Entry } from './requests.ts';

// Statistics over requests that the page knows. What a database has recorded is in `recorded.ts`.

/** A period in ms since 1970; `to` is excluded. */
export interface Period {
  readonly from: number;
  readonly to: number;
}

export interface Buckets extends Period {
  /** Length of a bucket in ms. */
  readonly step: number;
  /** The entries of each bucket, oldest first. */
  readonly entries: readonly (readonly Entry[])[];
}

const BUCKETS = 30;

/** The period of that length that ends now. It begins at a multiple of its step, so that bars do not change. */
export function periodBefore(now: number, span: number, step = span / BUCKETS): Period {
  const to = Math.ceil(now / step) * step;
  return { from: to - span, to };
}

export const within = (entries: readonly Entry[], { from, to }: Period): readonly Entry[] =>
  entries.filter(({ at }) => at >= from && at < to);

/** Divides entries into buckets of equal length. */
export function bucketsOf(entries: readonly Entry[], { from, to }: Period): Buckets {
  const step = (to - from) / BUCKETS;
  const parts: Entry[][] = Array.from({ length: BUCKETS }, () => []);
  for (const entry of entries) parts[Math.floor((entry.at - from) / step)]?.push(entry);
  return { from, to, step, entries: parts };
}

export interface Figures {
  readonly requests: number;
  readonly errors: number;
  /** Not among the errors. */
  readonly refused: number;
  readonly input: number;
  readonly output: number;
  /** US dollars; undefined if no request had a price. */
  readonly cost: number | undefined;
  /** ms; undefined without requests. */
  readonly p50: number | undefined;
  readonly p95: number | undefined;
}

export function figuresOf(entries: readonly Entry[]): Figures {
  const durations = entries.map(latencyOf).filter((value) => value !== undefined);
  durations.sort((a, b) => a - b);
  const costs = entries.map(costOf).filter((value) => value !== undefined);
  return {
    requests: entries.length,
    errors: entries.filter(isError).length,
    refused: entries.filter(isRefused).length,
    input: sum(entries.map(inputOf)),
    output: sum(entries.map(outputOf)),
    cost: costs.length === 0 ? undefined : sum(costs),
    p50: quantile(durations, 0.5),
    p95: quantile(durations, 0.95),
  };
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);

/** Statistics grouped by `nameOf`, most requests first; entries without a name are left out. */
export function figuresBy(
  entries: readonly Entry[],
  nameOf: (entry: Entry) => string,
): (Figures & { readonly name: string })[] {
  const groups = Map.groupBy(entries, nameOf);
  groups.delete('');
  return [...groups]
    .map(([name, own]) => ({ name, ...figuresOf(own) }))
    .sort((a, b) => b.requests - a.requests);
}
