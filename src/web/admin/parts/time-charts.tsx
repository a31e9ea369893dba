import { type ReactNode, useMemo } from 'react';
import { Chart } from '../../shared/chart.tsx';
import type { ChartData, Series, Tone } from '../../shared/chart-data.ts';
import { count, duration } from '../../shared/format.ts';
import { dollars } from '../model/money.ts';
import type { Entry } from '../model/requests.ts';
import { bucketsOf, type Figures, figuresOf, type Period } from '../model/usage.ts';

/**
 * Requests, latency and, if there are LLM calls, tokens and cost over a period.
 *
 * @param zoom Called with a part of the period that was selected in a chart.
 */
export function TimeCharts({
  entries,
  period: { from, to },
  zoom,
}: {
  readonly entries: readonly Entry[];
  readonly period: Period;
  readonly zoom: (period: Period) => void;
}): ReactNode {
  const { step, figures } = useMemo(() => {
    const buckets = bucketsOf(entries, { from, to });
    return { step: buckets.step, figures: buckets.entries.map(figuresOf) };
  }, [entries, from, to]);
  const one = (name: string, tone: Tone, pick: (one: Figures) => number | undefined): Series => ({
    name,
    tone,
    values: figures.map(pick),
  });
  const chart = (
    title: string,
    kind: ChartData['kind'],
    show: ChartData['show'],
    series: ChartData['series'],
  ): ReactNode => (
    <Chart
      title={title}
      data={{ from, step, series, kind, show }}
      zoom={(start, end) => zoom({ from: start, to: end })}
    />
  );
  const hasTokens = figures.some(({ input, output }) => input + output > 0);
  const hasCost = figures.some(({ cost }) => cost !== undefined);
  return (
    <div className="charts">
      {chart(`Requests per ${stepText(step)}`, 'bars', whole, [
        one('answered', 'main', ({ requests, errors }) => requests - errors),
        one('errors', 'bad', ({ errors }) => errors),
      ])}
      {chart('Latency', 'lines', duration, [
        one('p50', 'main', ({ p50 }) => p50),
        one('p95', 'second', ({ p95 }) => p95),
      ])}
      {hasTokens
        ? chart('Tokens', 'bars', short, [
            one('input', 'main', ({ input }) => input),
            one('output', 'second', ({ output }) => output),
          ])
        : null}
      {hasCost ? chart('Cost', 'bars', dollars, [one('US dollars', 'main', ({ cost }) => cost)]) : null}
    </div>
  );
}

const whole = (value: number): string => count(Math.round(value * 100) / 100);

/** `950`, `12.5k`, `3.2M` */
function short(value: number): string {
  if (value >= 1e6) return `${count(Math.round(value / 1e4) / 100)}M`;
  return value >= 1e4 ? `${count(Math.round(value / 100) / 10)}k` : whole(value);
}

/** `30 s`, `2 min`, `48 min` */
function stepText(step: number): string {
  if (step < 60_000) return `${count(step / 1000)} s`;
  return `${count(step / 60_000)} min`;
}
