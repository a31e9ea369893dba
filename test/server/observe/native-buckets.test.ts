import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { Metrics } from '../../../src/server/observe/metrics/metrics.ts';
import {
  ExponentialBuckets,
  mergeNative,
  type NativeBuckets,
  ZERO_THRESHOLD,
} from '../../../src/server/observe/metrics/native-histogram.ts';
import { decodeFamilies, nativeCounts } from '../../kit/prometheus-protobuf.ts';

const bucketsOf = (...values: readonly number[]): NativeBuckets => {
  const buckets = new ExponentialBuckets();
  for (const value of values) buckets.observe(value);
  return buckets.read();
};
const indexOf = (value: number): number => bucketsOf(value).positive[0]?.[0] as number;

/** The next number above or below a positive one. */
function beside(value: number, steps: number): number {
  const bits = new BigInt64Array(new Float64Array([value]).buffer);
  bits[0] = (bits[0] as bigint) + BigInt(steps);
  return new Float64Array(bits.buffer)[0] as number;
}

describe('buckets of native histograms', () => {
  test('a power of two is the upper bound of its bucket', () => {
    for (let exponent = -127; exponent < 1024; exponent++) {
      const bound = 2 ** exponent;
      expect([beside(bound, -1), bound, beside(bound, 1)].map(indexOf)).toEqual([
        exponent * 8,
        exponent * 8,
        exponent * 8 + 1,
      ]);
    }
  });

  test('numbers next to a bound that no number has exactly are in different buckets', () => {
    for (let index = -80; index < 80; index++) {
      const near = 2 ** (index / 8);
      // The last digit of a power is not exact.
      const [below, above] = [beside(near, -2), beside(near, 2)];
      expect([indexOf(below), indexOf(above)], String(near)).toEqual([index, index + 1]);
    }
  });

  test('the zero bucket has zero, negative numbers and those up to the threshold', () => {
    expect(bucketsOf(0, -1, Number.MIN_VALUE, ZERO_THRESHOLD)).toEqual({ schema: 3, zero: 4, positive: [] });
    expect(bucketsOf(beside(ZERO_THRESHOLD, 1))).toEqual({ schema: 3, zero: 0, positive: [[-1023, 1]] });
  });

  test('pairs of buckets are merged where there are more than the limit', () => {
    const values = Array.from({ length: LIMITS.nativeBuckets }, (_, index) => 2 ** ((index - 80) / 8) * 0.99);
    const full = bucketsOf(...values);
    expect(full).toMatchObject({ schema: 3 });
    expect(full.positive).toHaveLength(LIMITS.nativeBuckets);
    const merged = bucketsOf(...values, 2000);
    expect(merged.schema).toBe(2);
    expect(merged.positive).toHaveLength(82);
    expect(merged.positive.reduce((sum, [, count]) => sum + count, 0)).toBe(values.length + 1);
    expect(merged.positive.at(-1)).toEqual([Math.ceil(Math.log2(2000) * 4), 1]);
    // Indexes -79 and -78 of the first schema are index -39 of the next.
    expect(merged.positive.slice(0, 2)).toEqual([
      [-40, 1],
      [-39, 2],
    ]);
  });

  test('all numbers that there are need at most the limit', () => {
    const every = Array.from({ length: 1152 }, (_, index) => 2 ** (index - 128) * 1.5);
    const { schema, positive } = bucketsOf(...every);
    expect(schema).toBe(-3);
    expect(positive.length).toBeLessThanOrEqual(LIMITS.nativeBuckets);
  });
});

describe('native histograms of several processes', () => {
  test('are added up at the lower resolution', () => {
    const coarse: NativeBuckets = { schema: 1, zero: 1, positive: [[0, 2]] };
    const fine: NativeBuckets = {
      schema: 3,
      zero: 2,
      positive: [
        [-4, 1],
        [-3, 1],
        [0, 1],
        [1, 5],
      ],
    };
    const sum = {
      schema: 1,
      zero: 3,
      positive: [
        [-1, 1],
        [0, 4],
        [1, 5],
      ],
    };
    const labels = { a: 'x' };
    for (const order of [
      [fine, coarse],
      [coarse, fine],
    ])
      expect(mergeNative(order.map((buckets) => ({ labels, buckets })))).toEqual([{ labels, buckets: sum }]);
    expect(
      mergeNative([
        { labels, buckets: fine },
        { labels: { a: 'y' }, buckets: coarse },
      ]),
    ).toEqual([
      { labels, buckets: fine },
      { labels: { a: 'y' }, buckets: coarse },
    ]);
  });
});

test('spans and deltas of the protobuf format have every bucket, with counts that need several bytes', async () => {
  const metrics = new Metrics([], 'gw_', 'native');
  const series = metrics.families.connectDuration.with(['tcp']);
  const values: [number, number][] = [
    [0.001, 1],
    [0.0011, 300],
    [1, 3],
    [1000, 70_000],
  ];
  for (const [value, times] of values) for (let time = 0; time < times; time++) series.observe(value);
  const families = decodeFamilies((await metrics.encode()) as Buffer);
  const histogram = families.get('gw_upstream_connect_duration_seconds')?.metric[0]?.histogram;
  expect(histogram).toMatchObject({ sample_count: 70_304, schema: 3, zero_count: 0 });
  expect(histogram?.bucket).toBeUndefined();
  expect(histogram && nativeCounts(histogram)).toEqual(
    values.map(([value, times]) => [Math.ceil(Math.log2(value) * 8), times]),
  );
  expect(histogram?.positive_span).toEqual([
    { offset: -79, length: 2 },
    { offset: 77, length: 1 },
    { offset: 79, length: 1 },
  ]);
});
