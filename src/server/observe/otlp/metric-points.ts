import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api';
import { millisToHrTime } from '@opentelemetry/core';
import { ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer';
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type ExponentialHistogram,
  type Histogram,
  type MetricData,
} from '@opentelemetry/sdk-metrics';
import { LIMITS } from '../../../core/limits.ts';
import { VERSION } from '../../../core/version.ts';
import type { MetricValues } from '../metrics/family.ts';
import { labelKey, type NativeBuckets } from '../metrics/native-histogram.ts';
import { resourceOf } from './resource.ts';
import type { ResourceSettings } from './settings.ts';

const SCOPE = { name: 'agctl', version: VERSION };
const resources = new WeakMap<ResourceSettings, Resource>();

/** An encoded `ExportMetricsServiceRequest`, and the number of its data points. */
export interface EncodedPoints {
  readonly request: Uint8Array;
  readonly points: number;
}

/**
 * Encodes metrics as requests of at most `LIMITS.metricPoints` data points each, because collectors limit their size. Names are
 * those that Prometheus scrapes, without `_total`, which its receivers append. All values count from the start of the process.
 */
export function* encodePoints(
  metrics: readonly MetricValues[],
  settings: ResourceSettings,
): Iterable<EncodedPoints> {
  const resource = resources.get(settings) ?? resourceOf(settings);
  resources.set(settings, resource);
  const times = { startTime: millisToHrTime(performance.timeOrigin), endTime: millisToHrTime(Date.now()) };
  let batch: MetricData[] = [];
  let points = 0;
  const encoded = (): EncodedPoints => {
    const request = ProtobufMetricsSerializer.serializeRequest({
      resource,
      scopeMetrics: [{ scope: SCOPE, metrics: batch }],
    });
    if (request === undefined) throw new Error('the metrics cannot be encoded');
    const full = { request, points };
    batch = [];
    points = 0;
    return full;
  };
  for (const metric of metrics)
    for (const part of partsOf(dataOf(metric, times))) {
      if (points > 0 && points + part.dataPoints.length > LIMITS.metricPoints) yield encoded();
      batch.push(part);
      points += part.dataPoints.length;
    }
  if (points > 0) yield encoded();
}

/** Number of data points that the collector has rejected. Throws if this is not an `ExportMetricsServiceResponse`. */
export function rejectedIn(answer: Uint8Array): number {
  if (answer.length === 0) return 0;
  try {
    return Number(
      ProtobufMetricsSerializer.deserializeResponse(answer).partialSuccess?.rejectedDataPoints ?? 0,
    );
  } catch {
    throw new Error('the answer is not OTLP: is this a collector?');
  }
}

/** A metric with more data points than a request may have, as several. */
function* partsOf(data: MetricData): Iterable<MetricData> {
  for (let from = 0; from < data.dataPoints.length; from += LIMITS.metricPoints) {
    const dataPoints = data.dataPoints.slice(from, from + LIMITS.metricPoints);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- points of the same metric
    yield { ...data, dataPoints } as MetricData;
  }
}

type Times = Pick<DataPoint<unknown>, 'startTime' | 'endTime'> & { readonly startTime: HrTime };

function dataOf(metric: MetricValues, times: Times): MetricData {
  const { name, help, values, native = [] } = metric;
  const descriptor = { name, description: help, unit: '', valueType: ValueType.DOUBLE };
  const base = { descriptor, aggregationTemporality: AggregationTemporality.CUMULATIVE };
  const type = String(metric.type);
  if (type === 'histogram') {
    const series = histogramsIn(metric);
    // With `histograms: both`, the fixed buckets: a metric has one form.
    if (native.length > 0 && series.every(({ value }) => value.buckets.boundaries.length === 0))
      return {
        ...base,
        dataPointType: DataPointType.EXPONENTIAL_HISTOGRAM,
        dataPoints: exponential(native, series, times),
      };
    const dataPoints = series.map(({ attributes, value }) => ({ ...times, attributes, value }));
    return { ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = values.map(({ labels, value }) => ({ ...times, attributes: { ...labels }, value }));
  return type === 'counter'
    ? { ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...base, dataPointType: DataPointType.GAUGE, dataPoints };
}

interface Series {
  readonly attributes: Attributes;
  readonly value: Histogram;
}

/** The series of a histogram. Its buckets as Prometheus has them count all smaller values, too. */
function histogramsIn({ name, values }: MetricValues): Series[] {
  const samples = values.map(({ labels: { le, ...attributes }, ...sample }) => ({
    ...sample,
    le,
    attributes,
  }));
  return [...Map.groupBy(samples, ({ attributes }) => labelKey(attributes)).values()].map((same) => {
    const boundaries: number[] = [];
    const counts: number[] = [];
    let sum = 0;
    let count = 0;
    let below = 0;
    for (const { metricName, value, le } of same)
      if (metricName === `${name}_sum`) sum = value;
      else if (metricName === `${name}_count`) count = value;
      else {
        if (le !== '+Inf') boundaries.push(Number(le));
        counts.push(value - below);
        below = value;
      }
    return { attributes: { ...same[0]?.attributes }, value: { buckets: { boundaries, counts }, sum, count } };
  });
}

function exponential(
  native: NonNullable<MetricValues['native']>,
  series: readonly Series[],
  times: Times,
): DataPoint<ExponentialHistogram>[] {
  const byLabels = new Map(
    series.map(({ attributes, value }) => [JSON.stringify(Object.entries(attributes)), value]),
  );
  return native.map(({ labels, buckets }) => {
    const { sum = 0, count = 0 } = byLabels.get(labelKey(labels)) ?? {};
    const positive = denseOf(buckets);
    const value = {
      sum,
      count,
      scale: buckets.schema,
      zeroCount: buckets.zero,
      positive,
      negative: NO_BUCKETS,
    };
    return { ...times, attributes: { ...labels }, value };
  });
}

const NO_BUCKETS = { offset: 0, bucketCounts: [] };

/** OTLP lists all buckets between the first and the last, and numbers each by its lower bound instead of its upper one. */
function denseOf({ positive }: NativeBuckets): ExponentialHistogram['positive'] {
  const [[first] = [0]] = positive;
  const [last] = positive.at(-1) ?? [0];
  const bucketCounts = Array.from({ length: positive.length === 0 ? 0 : last - first + 1 }, () => 0);
  for (const [index, count] of positive) bucketCounts[index - first] = count;
  return { offset: first - 1, bucketCounts };
}
