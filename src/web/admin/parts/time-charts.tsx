import type { ReactNode } from 'react';
import { Chart } from '../../shared/chart.tsx';
import type { ChartData, Series, Tone } from '../../shared/chart-data.ts';
import { compact, count, duration } from '../../shared/format.ts';
import { dollarAxis, dollars } from '../model/money.ts';
import { DAY, HOUR } from '../model/recorded.ts';
import type { Figures, Period } from '../model/usage.ts';
import type { PeriodFigures } from './use-figures.ts';

/**
 * Requests, latency (which is not recorded) and, if there are LLM calls, tokens and cost over a period.
 *
 * @param zoom Called with a part of the period that was selected in a chart.
 */
export function TimeCharts({
  figures: {
    period: { from },
    step,
    buckets: figures,
    isRecorded,
  },
  zoom,
}: {
  readonly figures: PeriodFigures;
  readonly zoom: (period: Period) => void;
}): ReactNode {
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
    showAxis?: ChartData['showAxis'],
  ): ReactNode => (
    <Chart
      title={title}
      data={{ from, step, series, kind, show, ...(showAxis === undefined ? {} : { showAxis }) }}
      zoom={(start, end) => zoom({ from: start, to: end })}
    />
  );
  const hasTokens = figures.some(({ input, output }) => input + output > 0);
  const hasCost = figures.some(({ cost }) => cost !== undefined);
  return (
    <div className="charts">
      {chart(`Requests per ${stepText(step)}`, 'bars', whole, [
        one('answered', 'main', ({ requests, errors, refused }) => requests - errors - refused),
        one('refused', 'warn', ({ refused }) => refused),
        one('errors', 'bad', ({ errors }) => errors),
      ])}
      {isRecorded
        ? null
        : chart('Latency', 'lines', duration, [
            one('p50', 'main', ({ p50 }) => p50),
            one('p95', 'second', ({ p95 }) => p95),
          ])}
      {hasTokens
        ? chart('Tokens', 'bars', compact, [
            one('input', 'main', ({ input }) => input),
            one('output', 'second', ({ output }) => output),
          ])
        : null}
      {hasCost
        ? chart('Cost', 'bars', dollars, [one('US dollars', 'main', ({ cost }) => cost)], dollarAxis)
        : null}
    </div>
  );
}

const whole = (value: number): string => count(Math.round(value * 100) / 100);

/** `30 s`, `2 min`, `48 min`, `hour`, `day` */
function stepText(step: number): string {
  if (step === DAY) return 'day';
  if (step === HOUR) return 'hour';
  if (step < 60_000) return `${count(step / 1000)} s`;
  return `${count(step / 60_000)} min`;
}
