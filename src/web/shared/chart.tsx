import { type ReactNode, useState } from 'react';
import { Tabs } from './tabs.tsx';
import './chart.css';
import './unseen.css';

export interface Series {
  readonly name: string;
  /** One per bucket; undefined without data. */
  readonly values: readonly (number | undefined)[];
}

interface ChartProps {
  readonly title: string;
  /** Labels of the buckets, for the table and the ends of the axis. */
  readonly labels: readonly string[];
  readonly series: readonly Series[];
  readonly kind: 'bars' | 'lines';
  /** Formats a value with its unit. */
  readonly show: (value: number) => string;
}

const WIDTH = 600;
const HEIGHT = 120;
const SIGNS = ['■', '▨', '▤'];

/** Numbers over time: as a chart, and as a table with the same numbers. */
export function Chart(props: ChartProps): ReactNode {
  const [view, setView] = useState<'plot' | 'table'>('plot');
  const { title } = props;
  return (
    <section className="panel" aria-label={title}>
      <Tabs
        label={`${title}: view`}
        tabs={[
          { name: 'plot', label: title },
          { name: 'table', label: 'Table' },
        ]}
        chosen={view}
        choose={setView}
      >
        {view === 'plot' ? <Plot {...props} /> : <Values {...props} />}
      </Tabs>
    </section>
  );
}

function Plot({ title, labels, series, kind, show }: ChartProps): ReactNode {
  const values = series.flatMap((one) => one.values).filter((value) => value !== undefined);
  const sums = labels.map((_, at) => series.reduce((sum, one) => sum + (one.values[at] ?? 0), 0));
  const top = Math.max(...(kind === 'bars' ? sums : values), 0);
  return (
    <figure className="chart">
      <figcaption>
        {series.map(({ name, values: own }, index) => (
          <span key={name} className={`key series-${index}`}>
            <span aria-hidden="true">{SIGNS[index]}</span> {name}
            {own.every((value) => value === undefined) ? ' (nothing yet)' : ''}
          </span>
        ))}
        <span className="quiet key">highest {show(top)}</span>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: highest ${show(top)}; all numbers are in the table`}
      >
        {[0, 0.5, 1].map((part) => (
          <line key={part} className="grid" x1="0" x2={WIDTH} y1={HEIGHT * part} y2={HEIGHT * part} />
        ))}
        {series.map(({ name, values: own }, index) =>
          kind === 'lines' ? (
            <path key={name} className={`line series-${index}`} d={path(own, top)} style={{ fill: 'none' }} />
          ) : (
            <Bars key={name} series={series} index={index} top={top} />
          ),
        )}
      </svg>
      <div className="axis" aria-hidden="true">
        <span>{labels[0]}</span>
        <span>{labels[Math.floor(labels.length / 2)]}</span>
        <span>{labels.at(-1)}</span>
      </div>
    </figure>
  );
}

/** One series of stacked bars. */
function Bars({
  series,
  index,
  top,
}: {
  readonly series: readonly Series[];
  readonly index: number;
  readonly top: number;
}): ReactNode {
  const own = series[index]?.values ?? [];
  const step = WIDTH / Math.max(1, own.length);
  return own.map((value, at) => {
    if (value === undefined || value === 0 || top === 0) return null;
    const below = series.slice(0, index).reduce((sum, one) => sum + (one.values[at] ?? 0), 0);
    const height = (value / top) * HEIGHT;
    return (
      <rect
        // biome-ignore lint/suspicious/noArrayIndexKey: a bucket is identified by its position.
        key={at}
        className={`series-${index}`}
        style={{ stroke: 'none' }}
        x={at * step + step * 0.1}
        width={step * 0.8}
        y={HEIGHT - (below / top) * HEIGHT - height}
        height={height}
      />
    );
  });
}

/** A line through the values, interrupted where there is none. A single value is a short dash. */
function path(values: readonly (number | undefined)[], top: number): string {
  const step = WIDTH / Math.max(1, values.length);
  let isDrawing = false;
  const parts: string[] = [];
  for (const [at, value] of values.entries()) {
    if (value === undefined) {
      isDrawing = false;
      continue;
    }
    const y = (HEIGHT - (top === 0 ? 0 : value / top) * HEIGHT).toFixed(1);
    const x = at * step;
    parts.push(
      isDrawing ? `L${x.toFixed(1)} ${y}` : `M${x.toFixed(1)} ${y}`,
      `L${(x + step).toFixed(1)} ${y}`,
    );
    isDrawing = true;
  }
  return parts.join('');
}

function Values({ title, labels, series, show }: ChartProps): ReactNode {
  const rows = labels
    .map((label, at) => ({ label, values: series.map((one) => one.values[at]) }))
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
