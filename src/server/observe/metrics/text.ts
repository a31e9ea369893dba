import type { Metric, OpenMetricsContentType } from 'prom-client';
import { type MetricValues, type PrintedMetric, promClient } from './family.ts';
import type { SeriesValues } from './series.ts';
import { Slices } from './slices.ts';

/** Values of a part. */
const PART = 64;

/** Values that were read before, as a metric to print. */
export function printed({ name, help, type, values }: MetricValues): PrintedMetric {
  const starts = Array.from({ length: Math.ceil(values.length / PART) }, (_, index) => index * PART);
  return { name, help, type, parts: starts.map((start) => values.slice(start, start + PART)) };
}

/**
 * Prints metrics as OpenMetrics text, which the classic Prometheus text parser also accepts. Metrics without values are
 * omitted.
 */
export async function renderMetrics(metrics: Iterable<PrintedMetric>): Promise<string> {
  const texts: string[] = [];
  const slices = new Slices();
  for (const metric of metrics) {
    const print = printerOf(metric);
    let header = 0;
    for (const part of metric.parts) {
      const text = await print(part);
      // Each text begins with the lines HELP and TYPE.
      texts.push(text.slice(header));
      if (header === 0) header = text.indexOf('\n', text.indexOf('\n') + 1) + 1;
      if (slices.isOver) await slices.next();
    }
  }
  return `${[...texts, '# EOF'].join('\n')}\n`;
}

/** Prints values of one metric with its head. The library prints a registered metric and does not know ours. */
function printerOf({ name, help, type }: PrintedMetric): (values: SeriesValues) => Promise<string> {
  const { Registry } = promClient();
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  let current: SeriesValues = [];
  const metric = { name, get: () => ({ name, help, type, values: current }) };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of a metric, printing uses its name and `get` only
  registry.registerMetric(metric as unknown as Metric);
  return (values) => {
    current = values;
    return registry.getSingleMetricAsString(name);
  };
}
