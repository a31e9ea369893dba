import { type MetricSource, readSources } from './exposition.ts';
import type { MetricValues } from './family.ts';
import { labelKey, type NativeBuckets, ZERO_THRESHOLD } from './native-histogram.ts';
import { ProtobufMessage } from './protobuf-message.ts';
import type { SeriesValues } from './series.ts';

// The Prometheus protobuf format. Numbers of fields: `metrics.proto` of github.com/prometheus/client_model.

const MEDIA_TYPE = 'application/vnd.google.protobuf';
const PARAMETERS = ['proto=io.prometheus.client.MetricFamily', 'encoding=delimited'];
export const PROTOBUF_CONTENT_TYPE = [MEDIA_TYPE, ...PARAMETERS].join('; ');

const TYPES: Readonly<Record<string, number>> = { counter: 0, gauge: 1, histogram: 4 };

/** Whether an `accept` header prefers the protobuf format to all others. */
export function prefersProtobuf(accept = ''): boolean {
  let wanted = 0;
  let others = 0;
  for (const range of accept.split(',')) {
    const [type, ...parameters] = range.split(';').map((part) => part.trim());
    const quality = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
    if (type === MEDIA_TYPE && PARAMETERS.every((parameter) => parameters.includes(parameter)))
      wanted = Math.max(wanted, quality);
    else others = Math.max(others, quality);
  }
  return wanted > 0 && wanted >= others;
}

/** Encodes metrics in the Prometheus protobuf format. Metrics without values are omitted. */
export async function encodeMetrics(sources: readonly MetricSource[]): Promise<Buffer> {
  const families: Buffer[] = [];
  for await (const metric of readSources(sources)) families.push(familyMessage(metric).delimited());
  return Buffer.concat(families);
}

function familyMessage(metric: MetricValues): ProtobufMessage {
  const type = String(metric.type);
  const family = new ProtobufMessage();
  // Unlike OpenMetrics, this format has no suffixes: the name of the family is that of its series.
  family.string(1, type === 'counter' ? `${metric.name}_total` : metric.name);
  family.string(2, metric.help);
  family.uint(3, TYPES[type] ?? 3);
  if (type === 'histogram') for (const message of histogramMessages(metric)) family.message(4, message);
  else
    for (const { labels, value } of metric.values) {
      const number = new ProtobufMessage();
      number.double(1, value);
      const message = labelled(labels);
      message.message(type === 'counter' ? 3 : 2, number);
      family.message(4, message);
    }
  return family;
}

type Labels = SeriesValues[number]['labels'];

function labelled(labels: Labels): ProtobufMessage {
  const message = new ProtobufMessage();
  for (const [name, value] of Object.entries(labels)) {
    const pair = new ProtobufMessage();
    pair.string(1, name);
    pair.string(2, String(value));
    message.message(1, pair);
  }
  return message;
}

function* histogramMessages({ name, values, native = [] }: MetricValues): Iterable<ProtobufMessage> {
  const buckets = new Map(native.map((series) => [labelKey(series.labels), series.buckets]));
  const samples = values.map(({ labels: { le, ...labels }, ...sample }) => ({ ...sample, le, labels }));
  for (const [key, series] of Map.groupBy(samples, ({ labels }) => labelKey(labels))) {
    const histogram = new ProtobufMessage();
    for (const { metricName, value, le } of series)
      if (metricName === `${name}_sum`) histogram.double(2, value);
      else if (metricName === `${name}_count`) histogram.uint(1, value);
      // The bucket without a bound is optional: it has as many values as the histogram.
      else if (le !== '+Inf') {
        const bucket = new ProtobufMessage();
        bucket.uint(1, value);
        bucket.double(2, Number(le));
        histogram.message(3, bucket);
      }
    const found = buckets.get(key);
    if (found !== undefined) writeNative(histogram, found);
    const message = labelled(series[0]?.labels ?? {});
    message.message(7, histogram);
    yield message;
  }
}

/** Native buckets are written as runs of adjacent ones, with the difference of each count to the one before. */
function writeNative(histogram: ProtobufMessage, { schema, zero, positive }: NativeBuckets): void {
  histogram.sint(5, schema);
  histogram.double(6, ZERO_THRESHOLD);
  histogram.uint(7, zero);
  const spans: { offset: number; length: number }[] = [];
  const deltas: number[] = [];
  let end = 0;
  let before = 0;
  for (const [index, count] of positive) {
    const last = spans.at(-1);
    if (last !== undefined && index === end) last.length += 1;
    else spans.push({ offset: index - end, length: 1 });
    deltas.push(count - before);
    end = index + 1;
    before = count;
  }
  for (const { offset, length } of spans) {
    const span = new ProtobufMessage();
    span.sint(1, offset);
    span.uint(2, length);
    histogram.message(12, span);
  }
  histogram.sints(13, deltas);
}
