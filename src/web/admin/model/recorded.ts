import type { UsageSums } from '../../../core/usage.ts';
import type { Figures, Period } from './usage.ts';

// Statistics that the gateway has recorded in its database, which outlive restarts: whole hours, or days of UTC.

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

type Sums = Omit<UsageSums, 'cachedInputTokens'>;

/** The answer of `/api/usage`. */
export interface Usage {
  readonly rows: readonly (Sums & { readonly group: Readonly<Record<string, string>> })[];
  readonly total: Sums;
}

/** What sums can be grouped by, besides time. */
export type Group = 'model' | 'tool' | 'target' | 'key' | 'user';

export function usagePath(by: string, { from, to }: Period): string {
  const text = (at: number): string => new Date(at).toISOString();
  return `/api/usage?${new URLSearchParams({ by, from: text(from), to: text(to) })}`;
}

/** There is no latency: it has no sum. */
export const figuresOfSums = ({ costUsd, inputTokens, outputTokens, ...rest }: Sums): Figures => ({
  requests: rest.requests,
  errors: rest.errors,
  refused: rest.refused,
  input: inputTokens,
  output: outputTokens,
  cost: Number(costUsd) === 0 ? undefined : Number(costUsd),
  p50: undefined,
  p95: undefined,
});

/** The sums of no request. */
export const NO_SUMS: Sums = {
  requests: 0,
  errors: 0,
  refused: 0,
  inputTokens: 0,
  outputTokens: 0,
  costUsd: '0',
};

const NOTHING = figuresOfSums(NO_SUMS);

/** The figures of each bucket of a period. @param step an hour or a day */
export function recordedBuckets({ rows }: Usage, { from, to }: Period, step: number): readonly Figures[] {
  const name = step === DAY ? 'day' : 'hour';
  const known = new Map(rows.map((row) => [Date.parse(row.group[name] ?? ''), figuresOfSums(row)]));
  return Array.from(
    { length: Math.round((to - from) / step) },
    (_, at) => known.get(from + at * step) ?? NOTHING,
  );
}

/** Figures by name, in the order of the answer; sums without a name are left out. */
export const recordedBy = ({ rows }: Usage, by: Group): (Figures & { readonly name: string })[] =>
  rows
    .map((row) => ({ name: row.group[by] ?? '', ...figuresOfSums(row) }))
    .filter(({ name }) => name !== '')
    .sort((a, b) => b.requests - a.requests);
