import { setImmediate } from 'node:timers/promises';
import type { OpenMetricsContentType } from 'prom-client';
import { type MetricValues, promClient } from './family.ts';

type Source = () => MetricValues | undefined | Promise<MetricValues | undefined>;

/**
 * Metrics as OpenMetrics text, which the classic Prometheus text parser reads too. Those without values are left out.
 * A full histogram has 34,000 lines: the metrics are read and printed one by one, with other work between two.
 */
export async function renderMetrics(sources: readonly Source[]): Promise<string> {
  const { AggregatorRegistry, Registry } = promClient();
  const texts: string[] = [];
  for (const source of sources) {
    const metric = await source();
    if (metric === undefined || metric.values.length === 0) continue;
    // `aggregate` is the library's way from values back to a registry, which prints them.
    const registry = AggregatorRegistry.aggregate<OpenMetricsContentType>([[metric]]);
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    texts.push(await registry.getSingleMetricAsString(metric.name));
    await setImmediate();
  }
  return `${[...texts, '# EOF'].join('\n')}\n`;
}
