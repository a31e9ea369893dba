export type Tone = 'main' | 'second' | 'warn' | 'bad';

export interface Series {
  readonly name: string;
  readonly tone: Tone;
  /** One per bucket; undefined without data. */
  readonly values: readonly (number | undefined)[];
}

/** Numbers over time, in buckets of equal length. */
export interface ChartData {
  /** Start of the first bucket in ms since 1970. */
  readonly from: number;
  /** Length of a bucket in ms. */
  readonly step: number;
  readonly series: readonly [Series, ...Series[]];
  /** Bars are stacked. */
  readonly kind: 'bars' | 'lines';
  /** Formats a value with its unit. */
  readonly show: (value: number) => string;
  /** Formats the values of the axis, which are read together. Default: each with `show`. */
  readonly showAxis?: (values: readonly number[]) => string[];
}
