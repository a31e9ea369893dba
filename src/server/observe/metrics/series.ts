import type { MetricValueWithName } from 'prom-client';
import { ExponentialBuckets, type NativeBuckets } from './native-histogram.ts';

/** The values of one series, as prom-client prints them: without the labels of the series. */
export type SeriesValues = MetricValueWithName<string>[];

/** One combination of label values of a metric. */
export interface Series {
  /** `name`: the metric, without the `_total` of a counter. */
  read(name: string): SeriesValues;
  /** Only native histograms have these. */
  readNative?(): NativeBuckets;
}

/** A number that only grows. */
export class Counter implements Series {
  #value = 0;

  inc(amount = 1): void {
    this.#value += amount;
  }

  read(): SeriesValues {
    return [{ value: this.#value, labels: {} }];
  }
}

/** Counts observed values in buckets. */
export class Histogram implements Series {
  readonly #bounds: readonly number[];
  /** Values per bucket, not cumulative; the last one has no upper bound. */
  readonly #counts: Float64Array;
  #sum = 0;

  /** `bounds`: upper bounds of the buckets in ascending order, without `+Inf`. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += value;
  }

  /** Sum and count come before the buckets, as OpenMetrics requires. */
  read(name: string): SeriesValues {
    let count = 0;
    const buckets = Array.from(this.#counts, (values, index) => {
      count += values;
      const le = openMetricsNumber(this.#bounds[index]);
      return { value: count, labels: { le }, metricName: `${name}_bucket` };
    });
    return [
      { value: this.#sum, labels: {}, metricName: `${name}_sum` },
      { value: count, labels: {}, metricName: `${name}_count` },
      ...buckets,
    ];
  }
}

/** Also counts observed values in exponential buckets. */
export class NativeHistogram extends Histogram {
  readonly #native = new ExponentialBuckets();

  override observe(value: number): void {
    super.observe(value);
    this.#native.observe(value);
  }

  readNative(): NativeBuckets {
    return this.#native.read();
  }
}

/** OpenMetrics: "le ... MUST be a float", so `1` is written as `1.0`. */
function openMetricsNumber(bound: number | undefined): string {
  if (bound === undefined) return '+Inf';
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}
