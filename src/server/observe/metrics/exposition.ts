import { setImmediate } from 'node:timers/promises';
import type { Aggregator, Counter, Gauge, Registry } from 'prom-client';
import { type FamilyInfo, type MetricValues, promClient } from './family.ts';
import { labelKey, mergeNative } from './native-histogram.ts';
import type { SeriesValues } from './series.ts';
import type { Slices } from './slices.ts';

/** A metric of the process or the gateway whose value is sampled at each scrape. */
export interface SampledMetric extends FamilyInfo {
  /** Default: a gauge. */
  readonly type?: 'counter';
  /** Names of its labels; default: none. */
  readonly labels?: readonly string[];
  /** Which value counts for several processes; default: their sum. */
  readonly ofSeveral?: 'first' | 'max' | 'min';
  /** Returns the current value, or those of all series. If there is none, the metric is omitted from this scrape. */
  read(): number | undefined | readonly Sample[];
}

/** The current value of one series. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const samplesOf = (read: number | undefined | readonly Sample[]): readonly Sample[] =>
  typeof read === 'number' ? [{ labels: {}, value: read }] : (read ?? []);

/** Creates a prom-client registry that samples these metrics at each scrape. `prefix`: first part of their names. */
export function createRegistry(prefix: string, metrics: readonly SampledMetric[]): Registry {
  const { Registry, Counter, Gauge } = promClient();
  const registry = new Registry();
  for (const { name, help, type, labels = [], ofSeveral, read } of metrics) {
    const aggregator: Aggregator = ofSeveral ?? 'sum';
    const options = {
      name: prefix + name,
      help: `${help}.`,
      labelNames: [...labels],
      registers: [registry],
      aggregator,
    };
    if (type === 'counter')
      new Counter({
        ...options,
        collect(this: Counter) {
          clear(this);
          for (const sample of samplesOf(read())) this.inc(sample.labels, sample.value);
        },
      });
    else
      new Gauge({
        ...options,
        collect(this: Gauge) {
          clear(this);
          for (const sample of samplesOf(read())) this.set(sample.labels, sample.value);
        },
      });
  }
  return registry;
}

/** Forgets all series, also that without labels, which `reset` sets to 0. */
function clear(metric: Counter | Gauge): void {
  metric.reset();
  metric.remove({});
}

/** Reads one metric; undefined if it has no values. */
export type MetricSource = () => MetricValues | undefined | Promise<MetricValues | undefined>;

const MERGES: Readonly<Record<string, (one: number, other: number) => number>> = {
  sum: (one, other) => one + other,
  first: (one) => one,
  max: Math.max,
  min: Math.min,
};

/** One metric from its values in several processes: the sum, unless the metric says otherwise. */
export async function mergeValues(
  metrics: readonly MetricValues[],
  slices: Slices,
): Promise<MetricValues | undefined> {
  const [first] = metrics;
  if (first === undefined) return undefined;
  const merge = MERGES[first.aggregator] ?? Math.max;
  const merged = new Map<string, SeriesValues[number]>();
  for (const value of metrics.flatMap(({ values }) => values)) {
    const key = `${value.metricName ?? ''}${labelKey(value.labels)}`;
    const known = merged.get(key);
    if (known === undefined) merged.set(key, { ...value });
    else known.value = merge(known.value, value.value);
    if (slices.isOver) await slices.next();
  }
  const native = mergeNative(metrics.flatMap((metric) => metric.native ?? []));
  const values = { ...first, values: [...merged.values()] };
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
