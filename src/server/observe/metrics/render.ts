import type { Metric } from 'prom-client';
import type { Family } from './family.ts';

/**
 * Families as OpenMetrics text, which the classic Prometheus text parser reads too. Those without samples are left
 * out. The library, which writes and escapes, is loaded with the first scrape.
 */
export async function renderFamilies(families: readonly Family[]): Promise<string> {
  const { Registry } = await import('prom-client');
  const registry = new Registry();
  for (const family of families) {
    const samples = family.samples();
    if (samples.length > 0) registry.registerMetric(printable(family, samples) as unknown as Metric<string>);
  }
  const texts = await Promise.all(
    Object.values(registry.getMetricsAsArray()).map(({ name }) => registry.getSingleMetricAsString(name)),
  );
  return `${[...texts, '# EOF'].join('\n')}\n`;
}

/** What the library needs of a metric: it prints values as they are given, in their order. */
function printable({ name, help, type }: Family, samples: ReturnType<Family['samples']>): object {
  const values = samples.map(({ suffix, le, labels, value }) => ({
    metricName: `${name}${suffix}`,
    labels: le === undefined ? {} : { le },
    sharedLabels: labels,
    value,
  }));
  const metric = { name, help: `${help}.`, type, aggregator: 'sum', values };
  return { name, get: () => Promise.resolve(metric) };
}
