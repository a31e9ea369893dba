import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import type { ChartData, Series } from './chart-data.ts';
import { periodName } from './format.ts';
import type { Plot } from './plot.ts';
import { Tabs } from './tabs.tsx';
import './chart.css';
import './unseen.css';

interface ChartProps {
  readonly title: string;
  readonly data: ChartData;
  /** Called with a selected period, in ms since 1970. */
  readonly zoom: (from: number, to: number) => void;
}

/** Numbers over time: as a chart, and as a table with the same numbers. */
export function Chart(props: ChartProps): ReactNode {
  const [view, setView] = useState<'plot' | 'table'>('plot');
  const { title, data } = props;
  return (
    <section className="panel chart" aria-label={title}>
      <Tabs
        label={`${title}: view`}
        tabs={[
          { name: 'plot', label: title },
          { name: 'table', label: 'Table' },
        ]}
        chosen={view}
        choose={setView}
      >
        {view === 'plot' ? <Graph {...props} /> : <Values title={title} data={data} />}
      </Tabs>
    </section>
  );
}

const bucketName = ({ from, step }: ChartData, at: number): string =>
  periodName(from + at * step, from + (at + 1) * step);

/**
 * The drawing. A slider for keyboards and screen readers: arrows move from bucket to bucket and are read with their
 * values; with Shift they select a period, which Enter opens.
 */
function Graph({ title, data, zoom }: ChartProps): ReactNode {
  const host = useRef<HTMLDivElement>(null);
  const { at, setAt, plot, range, setRange } = usePlot(host, data, zoom);
  const last = data.series[0].values.length - 1;
  const open = (first: number, end: number): void =>
    zoom(data.from + first * data.step, data.from + (end + 1) * data.step);
  const onKeyDown = (event: KeyboardEvent): void => {
    const now = at ?? last;
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      const next = Math.min(last, Math.max(0, to));
      const anchor = event.shiftKey ? (range?.anchor ?? now) : undefined;
      setAt(next);
      plot.current?.point(next);
      setRange(anchor === undefined ? undefined : { anchor, end: next });
    } else if (event.key === 'Enter' && range !== undefined) {
      open(Math.min(range.anchor, range.end), Math.max(range.anchor, range.end));
      setRange(undefined);
    } else if (event.key === 'Escape' && range !== undefined) setRange(undefined);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <Key data={data} at={at} />
      <div
        ref={host}
        className="plot"
        role="slider"
        tabIndex={0}
        aria-label={`${title} over time`}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={at ?? last}
        aria-valuetext={textAt(data, at ?? last)}
        onKeyDown={onKeyDown}
      />
    </>
  );
}

function usePlot(host: RefObject<HTMLDivElement | null>, data: ChartData, zoom: ChartProps['zoom']) {
  const plot = useRef<Plot | undefined>(undefined);
  const [at, setAt] = useState<number>();
  const [range, setRange] = useState<{ readonly anchor: number; readonly end: number }>();
  const latest = useRef({ data, zoom });
  useEffect(() => {
    latest.current = { data, zoom };
    plot.current?.update(data);
  });
  useEffect(() => {
    let isGone = false;
    // Without it, the key and the table still have the numbers.
    void import('./plot.ts').then(
      ({ createPlot }) => {
        if (isGone || host.current === null) return;
        plot.current = createPlot(host.current, latest.current.data, {
          pointed: setAt,
          selected(first, last) {
            const { from, step } = latest.current.data;
            latest.current.zoom(from + first * step, from + (last + 1) * step);
          },
        });
      },
      () => undefined,
    );
    return () => {
      isGone = true;
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [host]);
  useEffect(() => {
    plot.current?.mark(
      range === undefined
        ? undefined
        : [Math.min(range.anchor, range.end), Math.max(range.anchor, range.end)],
    );
  }, [range]);
  return { plot, at, setAt, range, setRange };
}

const SIGNS: Readonly<Record<ChartData['kind'], readonly string[]>> = {
  bars: ['■', '▨', '▤'],
  lines: ['━', '╍', '┅'],
};

/** Names of the series, with their values at the cursor, or their highest ones. */
function Key({ data, at }: { readonly data: ChartData; readonly at: number | undefined }): ReactNode {
  const { series, kind, show } = data;
  return (
    <p className="key" aria-hidden="true">
      {series.map(({ name, tone, values }, index) => (
        <span key={name} className={tone}>
          {SIGNS[kind][index]} {name} <strong>{valueText(values, at, show)}</strong>
        </span>
      ))}
      <span className="quiet">{at === undefined ? 'highest' : bucketName(data, at)}</span>
    </p>
  );
}

function valueText(values: Series['values'], at: number | undefined, show: ChartData['show']): string {
  const known = values.filter((value) => value !== undefined);
  const value = at === undefined ? (known.length === 0 ? undefined : Math.max(...known)) : values[at];
  return value === undefined ? '–' : show(value);
}

const textAt = (data: ChartData, at: number): string =>
  [
    bucketName(data, at),
    ...data.series.map(({ name, values }) => `${name} ${valueText(values, at, data.show)}`),
  ].join(', ');

function Values({ title, data }: { readonly title: string; readonly data: ChartData }): ReactNode {
  const { series, show } = data;
  const rows = series[0].values
    .map((_, at) => ({
      label: bucketName(data, at).replace(/ – .*/, ''),
      values: series.map((one) => one.values[at]),
    }))
    .filter(({ values }) => values.some((value) => value !== undefined && value !== 0));
  if (rows.length === 0) return <p className="quiet">There is no data in this period.</p>;
  return (
    <div className="scroll">
      <table>
        <caption className="unseen">{title}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ name }) => (
              <th key={name} scope="col" className="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ label, values }) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              {values.map((value, index) => (
                <td key={series[index]?.name} className="number">
                  {value === undefined ? '–' : show(value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
