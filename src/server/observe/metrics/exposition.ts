import { setImmediate } from 'node:timers/promises';
import type { Aggregator, Counter, Gauge, OpenMetricsContentType, Registry } from 'prom-client';
import { type FamilyInfo, type MetricValues, promClient } from './family.ts';
import { mergeNative } from './native-histogram.ts';

/** A metric of the process or the gateway whose value is sampled at each scrape. */
export interface SampledMetric extends FamilyInfo {
  /** Default: a gauge. */
  readonly type?: 'counter';
  readonly labels?: Readonly<Record<string, string>>;
  /** Which value counts for several processes; default: their sum. */
  readonly ofSeveral?: 'first' | 'max' | 'min';
  /** Returns the current value. If undefined, the metric is omitted from this scrape. */
  read(): number | undefined;
}

/** Creates a prom-client registry that samples these metrics at each scrape. `prefix`: first part of their names. */
export function createRegistry(prefix: string, metrics: readonly SampledMetric[]): Registry {
  const { Registry, Counter, Gauge } = promClient();
  const registry = new Registry();
  for (const { name, help, type, labels = {}, ofSeveral, read } of metrics) {
    const labelNames = Object.keys(labels);
    const aggregator: Aggregator = ofSeveral ?? 'sum';
    const options = { name: prefix + name, help: `${help}.`, labelNames, registers: [registry], aggregator };
    if (type === 'counter')
      new Counter({
        ...options,
        collect(this: Counter) {
          this.remove(labels);
          const value = read();
          if (value !== undefined) this.inc(labels, value);
        },
      });
    else
      new Gauge({
        ...options,
        collect(this: Gauge) {
          this.remove(labels);
          const value = read();
          if (value !== undefined) this.set(labels, value);
        },
      });
  }
  return registry;
}

/** Reads one metric; undefined if it has no values. */
export type MetricSource = () => MetricValues | undefined | Promise<MetricValues | undefined>;

/** One metric from its values in several processes: the sum, unless the metric says otherwise. */
export async function mergeValues(metrics: readonly MetricValues[]): Promise<MetricValues> {
  const { AggregatorRegistry } = promClient();
  const registry = AggregatorRegistry.aggregate(metrics.map((metric) => [metric]));
  const [merged] = await registry.getMetricsAsJSON();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package say less than it returns
  const values = merged as MetricValues;
  const native = mergeNative(metrics.flatMap((metric) => metric.native ?? []));
  return native.length === 0 ? values : { ...values, native };
}

/**
 * Reads metrics one after the other, without those that have no values. A full histogram has 34,000 lines, so the event
 * loop gets a turn after each metric.
 */
export async function* readSources(sources: readonly MetricSource[]): AsyncIterable<MetricValues> {
  for (const source of sources) {
    const metric = await source();
    if (metric === undefined || metric.values.length === 0) continue;
    yield metric;
    await setImmediate();
  }
}

/**
 * Renders metrics as OpenMetrics text, which the classic Prometheus text parser also accepts. Metrics without values
 * are omitted.
 */
export async function renderMetrics(sources: readonly MetricSource[]): Promise<string> {
  const { AggregatorRegistry, Registry } = promClient();
  const texts: string[] = [];
  for await (const metric of readSources(sources)) {
    // `aggregate` is the library's only public way to turn values back into a registry that can print them.
    const registry = AggregatorRegistry.aggregate<OpenMetricsContentType>([[metric]]);
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    texts.push(await registry.getSingleMetricAsString(metric.name));
  }
  return `${[...texts, '# EOF'].join('\n')}\n`;
}
