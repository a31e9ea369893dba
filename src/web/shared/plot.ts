// uPlot and everything that requires it, loaded when a page shows its first chart.
import uPlot, { type AlignedData, type Axis, type Series as Line, type Options } from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { ChartData, Tone } from './chart-data.ts';
import { clock } from './format.ts';
import { colorReader, onThemeChange } from './theme.ts';

export interface Plot {
  /** Displays other numbers; the number of series stays the same. */
  update(data: ChartData): void;
  /** Moves the cursor to a bucket, or away. */
  point(at: number | undefined): void;
  /** Marks a range of buckets, both included, or none. */
  mark(range: readonly [first: number, last: number] | undefined): void;
  destroy(): void;
}

interface PlotEvents {
  /** The pointer is over a bucket, or has left. */
  readonly pointed: (at: number | undefined) => void;
  /** A range of buckets was drawn, both included. */
  readonly selected: (first: number, last: number) => void;
}

const HEIGHT = 170;
const DAY = 86_400_000;
/** Dashes of lines after the first, for those who cannot tell colours apart. */
const DASHES = [[], [6, 3], [2, 2]];

export function createPlot(host: HTMLElement, first: ChartData, { pointed, selected }: PlotEvents): Plot {
  let data = first;
  let isOurs = false;
  let color = colorReader(host);
  const show: Axis.Values = (_, values) => data.showAxis?.(values) ?? values.map(data.show);
  const options: Options = {
    width: Math.max(1, host.clientWidth),
    height: HEIGHT,
    ms: 1,
    legend: { show: false },
    padding: [8, 12, 0, 0],
    cursor: {
      y: false,
      points: { show: data.kind === 'lines' },
      sync: { key: 'charts' },
      drag: { x: true, y: false, setScale: false },
    },
    scales: {
      x: { time: true, range: () => [data.from, endOf(data)] },
      y: { range: (_, __, top) => [0, top > 0 ? top * 1.08 : 1] },
    },
    axes: [
      axis(() => color, {
        size: 26,
        // Half of a label at the end would be outside.
        values: (_, splits, ___, ____, gap) =>
          splits.map((at) => (at >= endOf(data) ? '' : timeLabel(at, gap))),
      }),
      axis(() => color, { values: show, size: (plot, values) => axisWidth(plot, values ?? []) }),
    ],
    series: [{}, ...linesOf(data, () => color)],
    hooks: {
      setCursor: [({ cursor: { idx } }) => isOurs || pointed(idx ?? undefined)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 2 || isOurs) return;
          const bucket = (x: number): number =>
            Math.min(
              data.series[0].values.length - 1,
              Math.max(0, Math.floor((plot.posToVal(x, 'x') - data.from) / data.step)),
            );
          selected(bucket(left), bucket(left + width));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
  const plot = new uPlot(options, aligned(data), host);
  const resized = new ResizeObserver(() =>
    plot.setSize({ width: Math.max(1, host.clientWidth), height: HEIGHT }),
  );
  resized.observe(host);
  const untheme = onThemeChange(() => {
    color = colorReader(host);
    plot.redraw(false, true);
  });
  const center = (at: number): number => plot.valToPos(data.from + (at + 0.5) * data.step, 'x');
  const quietly = (act: () => void): void => {
    isOurs = true;
    act();
    isOurs = false;
  };
  return {
    update(next) {
      data = next;
      quietly(() => plot.setData(aligned(next)));
    },
    point: (at) => quietly(() => plot.setCursor({ left: at === undefined ? -10 : center(at), top: 0 })),
    mark(range) {
      const [from, to] = range ?? [0, 0];
      const edge = (at: number): number => plot.valToPos(data.from + at * data.step, 'x');
      const box =
        range === undefined
          ? { left: 0, top: 0, width: 0, height: 0 }
          : { left: edge(from), top: 0, width: edge(to + 1) - edge(from), height: plot.over.clientHeight };
      quietly(() => plot.setSelect(box, false));
    },
    destroy() {
      resized.disconnect();
      untheme();
      plot.destroy();
    },
  };
}

const endOf = ({ from, step, series }: ChartData): number => from + step * series[0].values.length;

type Color = ReturnType<typeof colorReader>;

function axis(color: () => Color, more: Partial<Axis>): Axis {
  return {
    stroke: () => color()('quiet'),
    grid: { stroke: () => color()('edge'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
    ...more,
  };
}

/** Room for the longest label: units differ by chart. */
function axisWidth(plot: uPlot, values: readonly string[]): number {
  plot.ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  const widest = Math.max(0, ...values.map((value) => plot.ctx.measureText(value).width));
  return Math.ceil(widest / devicePixelRatio) + 14;
}

const NAMES: Readonly<Record<Tone, string>> = {
  main: 'accent',
  second: 'other',
  warn: 'warn',
  bad: 'bad',
};

/** Bars are drawn over each other, the sum of all first. */
function linesOf({ series, kind }: ChartData, color: () => Color): Line[] {
  const bars = uPlot.paths.bars?.({ size: [0.8, 48] });
  const lines = series.map(({ tone }, index): Line => {
    const paint = (): string => color()(NAMES[tone]);
    if (kind === 'bars')
      return {
        stroke: paint,
        fill: paint,
        width: 0,
        points: { show: false },
        ...(bars ? { paths: bars } : {}),
      };
    return { stroke: paint, width: 2, dash: DASHES[index] ?? [], points: { size: 5, fill: paint } };
  });
  return kind === 'bars' ? lines.toReversed() : lines;
}

/** Buckets are displayed at their middle. */
function aligned({ from, step, series, kind }: ChartData): AlignedData {
  const middles = series[0].values.map((_, at) => from + (at + 0.5) * step);
  const rows = series.map(({ values }, index) =>
    values.map((value, at) => {
      if (kind === 'lines') return value ?? null;
      return series.slice(0, index + 1).reduce((sum, one) => sum + (one.values[at] ?? 0), 0);
    }),
  );
  return [middles, ...(kind === 'bars' ? rows.toReversed() : rows)] as AlignedData;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Days are those of UTC, as in `periodName`. */
function timeLabel(at: number, gap: number): string {
  const date = new Date(at);
  if (gap >= DAY) return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  return gap >= 60_000 ? clock(at).slice(0, 5) : clock(at);
}
