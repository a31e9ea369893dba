import { createRequire } from 'node:module';
import type { Counter, Histogram, MetricObjectWithValues, MetricValueWithName } from 'prom-client';
import { LIMITS } from '../../../core/limits.ts';

/** Label values: `overflow` where a limit on distinct values is reached, `unknown` where there is no value. */
const OVERFLOW = 'overflow';
export const UNKNOWN = 'unknown';

/** A metric with its values, in the form that prom-client returns and accepts. */
export type MetricValues = MetricObjectWithValues<MetricValueWithName<string>>;

export interface FamilyInfo {
  /** Without the `_total` suffix of a counter. */
  readonly name: string;
  /** Without a final period. */
  readonly help: string;
}

type PromClient = typeof import('prom-client');
let library: PromClient | undefined;

/**
 * Loads prom-client at the first series or scrape. Loading takes 35 ms, and `config validate`, which compiles a
 * configuration but counts nothing, should not pay for it.
 */
export function promClient(): PromClient {
  library ??= createRequire(import.meta.url)('prom-client') as PromClient;
  return library;
}

/**
 * A metric with labels: one prom-client metric for each combination of label values, created on first use.
 *
 * A single prom-client metric with `labelNames` would build and look up the text of all labels at
 * each change: 1.2 µs per observation with ten labels, against 0.25 µs without labels (docs/decisions/0030).
 */
export class Family<Series extends Counter | Histogram> {
  readonly name: string;
  readonly #labelNames: readonly string[];
  readonly #create: () => Series;
  readonly #series = new Map<string, LabelledSeries<Series>>();
  /** Collects what exceeds `LIMITS.metricSeries`, so that sums remain correct. */
  #overflow: LabelledSeries<Series> | undefined;

  constructor(name: string, labelNames: readonly string[], create: () => Series) {
    this.name = name;
    this.#labelNames = labelNames;
    this.#create = create;
  }

  /**
   * The series with these label values, in the order of the label names; created if needed. Beyond
   * `LIMITS.metricSeries`, the shared overflow series. Callers should cache the result to avoid the lookup.
   */
  with(values: readonly string[]): Series {
    const key = values.join('\u0000');
    const known = this.#series.get(key);
    if (known !== undefined) return known.metric;
    if (this.#series.size >= LIMITS.metricSeries) {
      this.#overflow ??= this.#labelled(this.#labelNames.map(() => OVERFLOW));
      return this.#overflow.metric;
    }
    const made = this.#labelled(values);
    this.#series.set(key, made);
    return made.metric;
  }

  /** The number of series, without the overflow series. */
  get size(): number {
    return this.#series.size;
  }

  /** The values of all series; undefined if there is none. */
  async read(): Promise<MetricValues | undefined> {
    const all = [...this.#series.values(), ...(this.#overflow === undefined ? [] : [this.#overflow])];
    const read = await Promise.all(
      all.map(async ({ labels, metric }): Promise<MetricValues> => {
        const { values, ...info } = await metric.get();
        return {
          ...info,
          values: toOpenMetrics(values).map((value) => ({
            ...value,
            labels: { ...value.labels, ...labels },
          })),
        };
      }),
    );
    const [first] = read;
    return first === undefined ? undefined : { ...first, values: read.flatMap(({ values }) => values) };
  }

  #labelled(values: readonly string[]): LabelledSeries<Series> {
    const labels = Object.fromEntries(
      this.#labelNames.map((name, index) => [name, values[index] ?? UNKNOWN]),
    );
    return { labels, metric: this.#create() };
  }
}

/** Orders the values of one series with sum and count before the buckets, and formats `le` as OpenMetrics requires. */
function toOpenMetrics(values: MetricValues['values']): MetricValues['values'] {
  const isBucket = ({ labels }: MetricValues['values'][number]): boolean => labels['le'] !== undefined;
  return [
    ...values.filter((value) => !isBucket(value)),
    ...values
      .filter(isBucket)
      .map((value) => ({ ...value, labels: { le: openMetricsNumber(value.labels['le']) } })),
  ];
}

/** OpenMetrics: "le ... MUST be a float", so `1` is written as `1.0`. */
function openMetricsNumber(value: string | number | undefined): string {
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

interface LabelledSeries<Series> {
  readonly labels: Readonly<Record<string, string>>;
  readonly metric: Series;
}

export function counterFamily({ name, help }: FamilyInfo, labelNames: readonly string[]): Family<Counter> {
  const options = { name, help: `${help}.`, registers: [] };
  return new Family(name, labelNames, () => new (promClient().Counter)(options));
}

/** `bounds`: upper bucket bounds in ascending order, without `+Inf`. */
export function histogramFamily(
  { name, help }: FamilyInfo,
  labelNames: readonly string[],
  bounds: readonly number[],
): Family<Histogram> {
  const options = { name, help: `${help}.`, registers: [], buckets: [...bounds] };
  return new Family(name, labelNames, () => new (promClient().Histogram)(options));
}

/**
 * Bounds a label whose values are chosen by clients or providers: names of models, tools, resources. `listed` values
 * are always accepted. Any other new value is accepted only if the request succeeded, so that clients cannot exhaust
 * the limit with invented names, and only up to `LIMITS.metricLabelValues` values.
 */
export class LabelValues {
  readonly #known = new Set<string>();
  readonly #listed: ReadonlySet<string>;

  constructor(listed: ReadonlySet<string> = NO_VALUES) {
    this.#listed = listed;
  }

  /** The number of accepted values, without the listed ones. */
  get size(): number {
    return this.#known.size;
  }

  /** The label for a value, cut to `LIMITS.metricLabelLength` characters; `unknown` or `overflow` if not accepted. */
  of(value: string | undefined, succeeded: boolean): string {
    if (value === undefined || value === '') return UNKNOWN;
    if (this.#listed.has(value)) return value;
    const label =
      value.length > LIMITS.metricLabelLength ? `${value.slice(0, LIMITS.metricLabelLength)}…` : value;
    if (this.#known.has(label)) return label;
    if (!succeeded) return UNKNOWN;
    if (this.#known.size >= LIMITS.metricLabelValues) return OVERFLOW;
    this.#known.add(label);
    return label;
  }
}

const NO_VALUES: ReadonlySet<string> = new Set();
