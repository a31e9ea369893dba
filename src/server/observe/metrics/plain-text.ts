const VERSION = 'version=0.0.4';
const OPEN_METRICS = 'application/openmetrics-text';

/** A text of metrics for whoever has asked for it. */
interface MetricsText {
  readonly type: string;
  readonly text: string;
}

/**
 * Metrics in the format that the `accept` header names: OpenMetrics, or the older text format of Prometheus if its version is named.
 * Otherwise OpenMetrics as plain text, which readers of the older format also accept.
 */
export function metricsText(accept: string | undefined, openMetrics: string): MetricsText {
  if (accept?.includes(OPEN_METRICS))
    return { type: `${OPEN_METRICS}; version=1.0.0; charset=utf-8`, text: openMetrics };
  if (accept !== undefined && /\btext\/plain\s*;[^,]*\bversion=0\.0\.4\b/i.test(accept))
    return { type: `text/plain; ${VERSION}; charset=utf-8`, text: plainText(openMetrics) };
  return { type: 'text/plain; charset=utf-8', text: openMetrics };
}

/** OpenMetrics in the older format, where the name of a counter has its suffix in all lines, and a text has no end. */
function plainText(openMetrics: string): string {
  const lines = openMetrics.split('\n');
  const counters = new Set(lines.flatMap((line) => /^# TYPE (\S+) counter$/.exec(line)?.[1] ?? []));
  return lines
    .filter((line) => line !== '# EOF')
    .map((line) =>
      line.replace(/^(# (?:HELP|TYPE) )(\S+)/, (all, head: string, name: string) =>
        counters.has(name) ? `${head}${name}_total` : all,
      ),
    )
    .join('\n');
}
