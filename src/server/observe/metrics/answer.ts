import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';

const OPEN_METRICS = 'application/openmetrics-text';

/** Metrics for whoever has asked for them. */
interface MetricsAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

type Asked = Pick<IncomingHttpHeaders, 'accept' | 'accept-encoding'>;

/**
 * Metrics in the format that the `accept` header prefers: OpenMetrics, or else the text format of Prometheus, which is its default
 * (prometheus.io/docs/instrumenting/content_negotiation, "Basic Format").
 */
export function textAnswer(asked: Asked, openMetrics: string): Promise<MetricsAnswer> {
  const { accept = '' } = asked;
  const ranges = accept.split(',').map((range) => range.trim().toLowerCase());
  const open = wishFor(ranges, (range) => range.startsWith(OPEN_METRICS));
  const plain = wishFor(ranges, (range) => PLAIN.test(range));
  if (open > 0 && open >= plain)
    return metricsAnswer(asked, `${OPEN_METRICS}; version=1.0.0; charset=utf-8`, openMetrics);
  return metricsAnswer(asked, 'text/plain; version=0.0.4; charset=utf-8', plainText(openMetrics));
}

const PLAIN = /^(?:text\/(?:plain|\*)|\*\/\*)\s*(?:;|$)/;

/** The highest weight of the media ranges that fit (RFC 9110 section 12.4.2); 0 if none does. */
function wishFor(ranges: readonly string[], fits: (range: string) => boolean): number {
  const weights = ranges.filter(fits).map((range) => Number(/;\s*q=([\d.]{1,5})/.exec(range)?.[1] ?? 1));
  return Math.max(0, ...weights.filter((weight) => weight <= 1));
}

/** Metrics of a content type, compressed for those who accept gzip: the labels of 300 models repeat, 8 MB become 0.2. */
export async function metricsAnswer(
  { 'accept-encoding': encodings }: Asked,
  type: string,
  body: string | Buffer,
): Promise<MetricsAnswer> {
  const headers = { 'content-type': type, vary: 'accept, accept-encoding' };
  if (!acceptsGzip(encodings)) return { headers, body };
  const level = constants.Z_BEST_SPEED;
  return {
    headers: { ...headers, 'content-encoding': 'gzip' },
    body: await promisify(gzip)(body, { level }),
  };
}

/** By RFC 9110 section 12.5.3; `*` alone is not a wish for gzip. */
function acceptsGzip(encodings: string | readonly string[] = ''): boolean {
  return /(?:^|,)\s*gzip\s*(?:,|$|;\s*q=(?!0(?:\.0*)?\s*(?:,|$)))/i.test(String(encodings));
}

/** OpenMetrics in the older format, where the name of a counter has its suffix in all lines, and a text has no end. */
function plainText(openMetrics: string): string {
  const lines = openMetrics.split('\n');
  const counters = new Set(
    lines.flatMap(
      (line) => (line.startsWith('# ') ? /^# TYPE (\S+) counter$/.exec(line)?.[1] : undefined) ?? [],
    ),
  );
  return lines
    .filter((line) => line !== '# EOF')
    .map((line) =>
      line.startsWith('# ')
        ? line.replace(/^(# (?:HELP|TYPE) )(\S+)/, (all, head: string, name: string) =>
            counters.has(name) ? `${head}${name}_total` : all,
          )
        : line,
    )
    .join('\n');
}
