import { createRequire } from 'node:module';
import { LIMITS } from '../../../core/limits.ts';
import type { NativeSeries } from './native-histogram.ts';
import { Counter, Histogram, NativeHistogram, type Series, type SeriesValues } from './series.ts';

/** Label values: `overflow` where a limit on distinct values is reached, `unknown` where there is no value. */
const OVERFLOW = 'overflow';
export const UNKNOWN = 'unknown';

/** A metric with its values, in the form that prom-client returns and accepts. */
export interface MetricValues {
  readonly name: string;
  readonly help: string;
  /** `counter` or `histogram`; prom-client declares an enumeration that it does not have. */
  readonly type: unknown;
  readonly aggregator: string;
  readonly values: SeriesValues;
  /** Native histograms of the same series; undefined if there are none. */
  readonly native?: readonly NativeSeries[];
}

export interface FamilyInfo {
  /** Without the `_total` suffix of a counter. */
  readonly name: string;
  /** Without a final period. */
  readonly help: string;
}

/** A metric as it is printed: in parts, each short enough to be printed without a break. */
export interface PrintedMetric extends FamilyInfo {
  readonly type: unknown;
  readonly parts: Iterable<SeriesValues>;
}

/** What a metric measures, and its labels. */
export interface MetricDescription extends FamilyInfo {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
}

type PromClient = typeof import('prom-client');
let library: PromClient | undefined;

/** Loads prom-client at the first scrape. Loading takes 35 ms, and most commands print no metrics. */
export function promClient(): PromClient {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package
  library ??= createRequire(import.meta.url)('prom-client') as PromClient;
  return library;
}

/** A metric with labels: one series for each combination of label values, created on first use. */
export class Family<S extends Series> {
  readonly name: string;
  readonly #info: FamilyInfo & { readonly type: 'counter' | 'histogram' };
  readonly #labelNames: readonly string[];
  readonly #create: () => S;
  readonly #series = new Map<string, LabelledSeries<S>>();
  /** Collects what exceeds `LIMITS.metricSeries`, so that sums remain correct. */
  #overflow: LabelledSeries<S> | undefined;

  constructor(
    info: FamilyInfo & { readonly type: 'counter' | 'histogram' },
    labelNames: readonly string[],
    create: () => S,
  ) {
    this.name = info.name;
    this.#info = info;
    this.#labelNames = labelNames;
    this.#create = create;
  }

  /**
   * The series with these label values, in the order of the label names; created if needed. Beyond
   * `LIMITS.metricSeries`, the shared overflow series. Callers should cache the result to avoid the lookup.
   */
  with(values: readonly string[]): S {
    const key = values.join('\u0000');
    const known = this.#series.get(key);
    if (known !== undefined) return known.series;
    if (this.#series.size >= LIMITS.metricSeries) {
      this.#overflow ??= this.#labelled(this.#labelNames.map(() => OVERFLOW));
      return this.#overflow.series;
    }
    const made = this.#labelled(values);
    this.#series.set(key, made);
    return made.series;
  }

  get description(): MetricDescription {
    return { ...this.#info, labels: this.#labelNames };
  }

  /** The number of series, without the overflow series. */
  get size(): number {
    return this.#series.size;
  }

  /** The values of all series; undefined if there is none. */
  read(): MetricValues | undefined {
    const all = [...this.#series.values(), ...(this.#overflow === undefined ? [] : [this.#overflow])];
    if (all.length === 0) return undefined;
    const { name, help, type } = this.#info;
    const values = all.flatMap(({ labels, series }) =>
      series.read(name).map((value) => ({ ...value, labels: { ...value.labels, ...labels } })),
    );
    const native = all.flatMap(({ labels, series }) => {
      const buckets = series.readNative?.();
      return buckets === undefined ? [] : [{ labels, buckets }];
    });
    const metric = { name, help: `${help}.`, type, aggregator: 'sum', values };
    return native.length === 0 ? metric : { ...metric, native };
  }

  /** The values to print, one part for each series. */
  get printed(): PrintedMetric {
    const { name, help, type } = this.#info;
    return { name, help: `${help}.`, type, parts: this.#parts() };
  }

  *#parts(): Iterable<SeriesValues> {
    const overflow = this.#overflow === undefined ? [] : [this.#overflow];
    for (const { labels, series } of [...this.#series.values(), ...overflow])
      yield series.read(this.name).map((value) => ({ ...value, sharedLabels: labels }));
  }

  #labelled(values: readonly string[]): LabelledSeries<S> {
    const labels = Object.fromEntries(
      this.#labelNames.map((name, index) => [name, values[index] ?? UNKNOWN]),
    );
    return { labels, series: this.#create() };
  }
}

interface LabelledSeries<S> {
  readonly labels: Readonly<Record<string, string>>;
  readonly series: S;
}

export function counterFamily(info: FamilyInfo, labelNames: readonly string[]): Family<Counter> {
  return new Family({ ...info, type: 'counter' }, labelNames, () => new Counter());
}

/** `classic`: fixed buckets; `native`: exponential ones. */
export type HistogramForm = 'classic' | 'native' | 'both';

/** `bounds`: upper bounds of the fixed buckets in ascending order, without `+Inf`. */
export function histogramFamily(
  info: FamilyInfo,
  labelNames: readonly string[],
  bounds: readonly number[],
  form: HistogramForm,
): Family<Histogram> {
  const fixed = form === 'native' ? [] : bounds;
  const create = () => (form === 'classic' ? new Histogram(fixed) : new NativeHistogram(fixed));
  return new Family({ ...info, type: 'histogram' }, labelNames, create);
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
