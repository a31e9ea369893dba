import { LIMITS } from '../../../core/limits.ts';

/** Values up to this one, also negative ones, are counted in the zero bucket: the default of Prometheus clients. */
export const ZERO_THRESHOLD = 2 ** -128;

/** A power of two is divided into `2^schema` buckets: 8 at the start, so that bounds grow by a factor of 1.09. */
const FIRST_SCHEMA = 3;
/** The lowest schema that Prometheus knows: one bucket for 16 powers of two. */
const LAST_SCHEMA = -4;

/** Bounds of the buckets from 0.5 to 1, `2^(i/8) / 2`, with the last digit that Prometheus and its client for Go have. */
const FRACTIONS = [
  0.5, 0.5452538663326288, 0.5946035575013605, 0.6484197773255048, 0.7071067811865475, 0.7711054127039704,
  0.8408964152537144, 0.9170040432046711,
];

/** The buckets of a native histogram. Bucket `i` has values above `2^((i-1) / 2^schema)`, up to `2^(i / 2^schema)`. */
export interface NativeBuckets {
  readonly schema: number;
  /** Values in the zero bucket. */
  readonly zero: number;
  /** Index and number of values of the buckets that have any, in ascending order. */
  readonly positive: readonly (readonly [index: number, count: number])[];
}

/** The native buckets of one combination of label values. */
export interface NativeSeries {
  readonly labels: Readonly<Record<string, string>>;
  readonly buckets: NativeBuckets;
}

/** Counts values in exponential buckets. Beyond `LIMITS.nativeBuckets`, pairs of buckets become one. */
export class ExponentialBuckets {
  #schema = FIRST_SCHEMA;
  #zero = 0;
  readonly #counts = new Map<number, number>();

  observe(value: number): void {
    if (value > ZERO_THRESHOLD) this.#count(bucketOf(value), FIRST_SCHEMA, 1);
    else this.#zero += 1;
  }

  /** Adds the values of other buckets, at the lower resolution of both. */
  add({ schema, zero, positive }: NativeBuckets): void {
    while (this.#schema > schema) this.#halve();
    this.#zero += zero;
    for (const [index, count] of positive) this.#count(index, schema, count);
  }

  read(): NativeBuckets {
    const positive = [...this.#counts].sort(([a], [b]) => a - b);
    return { schema: this.#schema, zero: this.#zero, positive };
  }

  /** `index`: of a bucket of this schema, which is not below ours. */
  #count(index: number, schema: number, count: number): void {
    const own = merged(index, schema - this.#schema);
    this.#counts.set(own, (this.#counts.get(own) ?? 0) + count);
    while (this.#counts.size > LIMITS.nativeBuckets && this.#schema > LAST_SCHEMA) this.#halve();
  }

  #halve(): void {
    this.#schema -= 1;
    const counts = [...this.#counts];
    this.#counts.clear();
    for (const [index, count] of counts) {
      const own = merged(index, 1);
      this.#counts.set(own, (this.#counts.get(own) ?? 0) + count);
    }
  }
}

/** The buckets of several processes as one for each combination of label values. */
export function mergeNative(all: readonly NativeSeries[]): NativeSeries[] {
  return [...Map.groupBy(all, ({ labels }) => labelKey(labels)).values()].map((same) => {
    const sum = new ExponentialBuckets();
    for (const { buckets } of same) sum.add(buckets);
    return { labels: same[0]?.labels ?? {}, buckets: sum.read() };
  });
}

/** Identifies a combination of label values. */
export function labelKey(labels: Readonly<Partial<Record<string, string | number>>>): string {
  return JSON.stringify(Object.entries(labels));
}

/** Index of a bucket after the resolution was halved this many times. */
function merged(index: number, times: number): number {
  return (index + (1 << times) - 1) >> times;
}

const number = new DataView(new ArrayBuffer(8));

/** Index of the bucket of a normal number at the first schema. Logarithms would be wrong next to bounds. */
function bucketOf(value: number): number {
  number.setFloat64(0, value);
  const high = number.getUint32(0);
  // The value is `fraction * 2^exponent`, with a fraction from 0.5 and below 1 (IEEE 754 binary64).
  const exponent = (high >>> 20) - 1022;
  number.setUint32(0, (high & 0xfffff) | (1022 << 20));
  const fraction = number.getFloat64(0);
  let part = 0;
  while (part < FRACTIONS.length && fraction > (FRACTIONS[part] ?? 0)) part += 1;
  return (exponent - 1) * FRACTIONS.length + part;
}
