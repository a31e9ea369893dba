import { LIMITS } from '../../../core/limits.ts';

/** What a client or provider named too often to count apart, and what has no value. */
export const OVERFLOW = 'overflow';
export const UNKNOWN = 'unknown';

/** One line of the exposition: which name, which labels, which value. */
export interface Sample {
  readonly suffix: '' | '_total' | '_sum' | '_count' | '_bucket';
  /** Goes before the other labels. */
  readonly le?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export type FamilyType = 'counter' | 'gauge' | 'histogram';

export interface FamilyInfo {
  /** Without the `_total` of a counter. */
  readonly name: string;
  readonly help: string;
}

/** A metric with all its label values, as it is printed. */
export interface Family extends FamilyInfo {
  readonly type: FamilyType;
  samples(): Sample[];
}

/** A family whose values change with requests: a series for each combination of labels, made when first used. */
abstract class SeriesFamily<Series extends { readonly labels: Readonly<Record<string, string>> }>
  implements Family
{
  abstract readonly type: FamilyType;
  readonly name: string;
  readonly help: string;
  readonly #labelNames: readonly string[];
  readonly #series = new Map<string, Series>();
  /** Takes what does not fit, so that sums stay right. */
  #overflow: Series | undefined;

  constructor({ name, help }: FamilyInfo, labelNames: readonly string[]) {
    this.name = name;
    this.help = help;
    this.#labelNames = labelNames;
  }

  /** The series of these label values, in the order of the names. Keep it: adding to it costs no look-up. */
  with(values: readonly string[]): Series {
    const key = values.join('\u0000');
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    if (this.#series.size >= LIMITS.metricSeries) {
      this.#overflow ??= this.create(this.#labelled(this.#labelNames.map(() => OVERFLOW)));
      return this.#overflow;
    }
    const made = this.create(this.#labelled(values));
    this.#series.set(key, made);
    return made;
  }

  /** How many combinations of labels there are, without the one for what does not fit. */
  get size(): number {
    return this.#series.size;
  }

  samples(): Sample[] {
    const all = [...this.#series.values(), ...(this.#overflow === undefined ? [] : [this.#overflow])];
    return all.flatMap((series) => this.print(series));
  }

  #labelled(values: readonly string[]): Record<string, string> {
    return Object.fromEntries(this.#labelNames.map((name, index) => [name, values[index] ?? UNKNOWN]));
  }

  protected abstract create(labels: Record<string, string>): Series;
  protected abstract print(series: Series): Sample[];
}

export class CounterSeries {
  readonly labels: Readonly<Record<string, string>>;
  value = 0;

  constructor(labels: Readonly<Record<string, string>>) {
    this.labels = labels;
  }

  add(amount = 1): void {
    this.value += amount;
  }
}

export class Counter extends SeriesFamily<CounterSeries> {
  readonly type = 'counter';

  protected create(labels: Record<string, string>): CounterSeries {
    return new CounterSeries(labels);
  }

  protected print({ labels, value }: CounterSeries): Sample[] {
    return [{ suffix: '_total', labels, value }];
  }
}

export class HistogramSeries {
  readonly labels: Readonly<Record<string, string>>;
  readonly #bounds: readonly number[];
  /** Observations per bucket, not cumulative; the last one is above all bounds. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(labels: Readonly<Record<string, string>>, bounds: readonly number[]) {
    this.labels = labels;
    this.#bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
    this.counts[bucket] = (this.counts[bucket] as number) + 1;
    this.sum += value;
  }
}

export class Histogram extends SeriesFamily<HistogramSeries> {
  readonly type = 'histogram';
  readonly #bounds: readonly number[];

  constructor(info: FamilyInfo, labelNames: readonly string[], bounds: readonly number[]) {
    super(info, labelNames);
    this.#bounds = bounds;
  }

  protected create(labels: Record<string, string>): HistogramSeries {
    return new HistogramSeries(labels, this.#bounds);
  }

  protected print({ labels, counts, sum }: HistogramSeries): Sample[] {
    let below = 0;
    const buckets = [...counts].map((count, index): Sample => {
      below += count;
      const bound = this.#bounds[index];
      return {
        suffix: '_bucket',
        le: bound === undefined ? '+Inf' : openMetricsNumber(bound),
        labels,
        value: below,
      };
    });
    return [{ suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: below }, ...buckets];
  }
}

/** A family that is read when it is printed. */
export class Gauge implements Family {
  readonly type: FamilyType;
  readonly name: string;
  readonly help: string;
  readonly #read: () => number | undefined;
  readonly #labels: Readonly<Record<string, string>>;

  constructor(
    { name, help }: FamilyInfo,
    read: () => number | undefined,
    { labels = {}, type = 'gauge' }: { labels?: Record<string, string>; type?: 'gauge' | 'counter' } = {},
  ) {
    this.name = name;
    this.help = help;
    this.type = type;
    this.#read = read;
    this.#labels = labels;
  }

  samples(): Sample[] {
    const value = this.#read();
    if (value === undefined) return [];
    return [{ suffix: this.type === 'counter' ? '_total' : '', labels: this.#labels, value }];
  }
}

/** OpenMetrics: "le ... MUST be a float", so that `1` is written `1.0`. */
function openMetricsNumber(value: number): string {
  return Number.isInteger(value) ? `${value}.0` : String(value);
}
