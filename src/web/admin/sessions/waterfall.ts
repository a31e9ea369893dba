import { isRefusal } from '../../../core/outcome.ts';
import { outcomeOfRecord, type ShownRecord } from '../records/record.ts';

/** A call of a conversation, and where it is drawn. */
export interface Step {
  readonly record: ShownRecord;
  /** ms since the first call. */
  readonly offset: number;
  /** Position and length of its bar, as shares of the whole. */
  readonly left: number;
  readonly width: number;
}

export interface Waterfall {
  /** Oldest first. */
  readonly steps: readonly Step[];
  /** From the start of the first call to the end of the last one, and without the time in which nothing ran, in ms. */
  readonly span: number;
  readonly busy: number;
  /** Longer pauses are drawn as short as this, in ms. */
  readonly longestPause: number;
  readonly hasShortened: boolean;
}

/** A share of the busy time: people read for minutes between calls that take seconds. */
const PAUSE_SHARE = 0.06;

/** Places calls on one line of time. Times in which nothing ran are shortened, so that calls stay visible. */
export function waterfallOf(records: readonly ShownRecord[]): Waterfall {
  const calls = records
    .map((record) => ({ record, start: Date.parse(record.time), took: record.durationMs ?? 0 }))
    .filter(({ start }) => !Number.isNaN(start))
    .sort((a, b) => a.start - b.start || a.record.id - b.record.id);
  const busy = busyTime(calls);
  const longestPause = Math.max(1, busy * PAUSE_SHARE);
  const first = calls[0]?.start ?? 0;
  let end = first;
  let shortened = 0;
  const placed = calls.map(({ record, start, took }) => {
    const pause = start - end;
    if (pause > longestPause) shortened += pause - longestPause;
    end = Math.max(end, start + took);
    return { record, offset: start - first, left: start - first - shortened, took };
  });
  const total = Math.max(1, end - first - shortened);
  return {
    steps: placed.map(({ record, offset, left, took }) => ({
      record,
      offset,
      left: left / total,
      width: took / total,
    })),
    span: end - first,
    busy,
    longestPause,
    hasShortened: shortened > 0,
  };
}

function busyTime(calls: readonly { readonly start: number; readonly took: number }[]): number {
  let busy = 0;
  let end = Number.NEGATIVE_INFINITY;
  for (const { start, took } of calls) {
    busy += Math.max(0, start + took - Math.max(start, end));
    end = Math.max(end, start + took);
  }
  return busy;
}

/** Sums of the calls that are shown. */
export interface Totals {
  readonly models: number;
  readonly tools: number;
  readonly errors: number;
  readonly refused: number;
  readonly input: number;
  readonly output: number;
  /** US dollars; undefined if no call has a known price. */
  readonly cost: number | undefined;
  /** Calls of models that have used tokens, but whose price is not known: `cost` is too low by theirs. */
  readonly unpriced: number;
}

export function totalsOf(records: readonly ShownRecord[]): Totals {
  const outcomes = records.map((record) => [outcomeOfRecord(record), record.status] as const);
  const priced = records.flatMap(({ costUsd }) => (costUsd === undefined ? [] : [Number(costUsd)]));
  const count = (test: (record: ShownRecord) => boolean): number => records.filter(test).length;
  const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
  return {
    models: count(({ protocol }) => protocol === 'llm'),
    tools: count(({ operation }) => operation === 'tools/call'),
    errors: outcomes.filter(([outcome]) => outcome === 'bad').length,
    refused: outcomes.filter(([outcome, status]) => isRefusal(outcome, status)).length,
    input: sum(records.map(({ inputTokens = 0 }) => inputTokens)),
    output: sum(records.map(({ outputTokens = 0 }) => outputTokens)),
    cost: priced.length === 0 ? undefined : sum(priced),
    unpriced: count(
      ({ costUsd, inputTokens = 0, outputTokens = 0 }) =>
        costUsd === undefined && inputTokens + outputTokens > 0,
    ),
  };
}
