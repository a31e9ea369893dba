import { z } from 'zod';
import { durationSchema, durationText } from '../../../core/duration.ts';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { MetricValues } from '../metrics/family.ts';
import { collectorFields, compileCollector } from './collector.ts';
import { type CollectorTransport, sendRepeatedly } from './collector-transport.ts';
import type { ResourceSettings } from './settings.ts';

/** `config.metrics.otlp`. */
export const metricsExportSchema = z.lazy(() =>
  mapping('Also sends the metrics to an OTLP collector, from the start of the process until its end.', {
    host: nonEmpty.describe(
      'Address of the collector: `host:port`, a URL without a path, or `unix:/path/of/socket`.',
    ),
    ...collectorFields('/v1/metrics'),
    interval: durationSchema
      .refine((interval) => interval >= LIMITS.metricsExportMin, {
        error: `expected at least ${durationText(LIMITS.metricsExportMin)}`,
      })
      .prefault(durationText(LIMITS.metricsExport))
      .describe('How often the metrics are sent.'),
  }),
);

/** Where the metrics are sent. */
export interface MetricsExport {
  /** In ms. */
  readonly interval: number;
  /** Sends all metrics; never rejects. What is lost is counted and logged. */
  send(metrics: readonly MetricValues[]): Promise<void>;
  close(): Promise<void>;
}

/** Compiles the export. Opens nothing: packages are loaded, and connections opened, for the first metrics. */
export function compileMetricsExport(
  { interval, ...config }: z.output<typeof metricsExportSchema>,
  resource: ResourceSettings,
  context: CompileContext,
): MetricsExport | undefined {
  const collector = compileCollector(config, 'metrics', 'metricPointsLost', context);
  if (collector === undefined) return undefined;
  const { transport } = collector;
  const lost = lossLog(context.log, collector.lost);
  return {
    interval,
    async send(metrics) {
      // Loaded for the first metrics: most gateways export none.
      const { encodePoints, rejectedIn } = await import('./metric-points.ts');
      for (const { request, points } of encodePoints(metrics, resource)) {
        const problem = await sent(transport, request, rejectedIn, (rejected) =>
          lost(Math.min(rejected, points), 'the collector rejected them'),
        );
        if (problem === undefined) continue;
        lost(points, problem);
        // The others would only wait for the same collector; the next time, all are sent again.
        return;
      }
    },
    close: () => transport.close(),
  };
}

/** Why a request was lost; undefined if it was not. */
async function sent(
  transport: CollectorTransport,
  request: Uint8Array,
  rejectedIn: (answer: Uint8Array) => number,
  rejected: (count: number) => void,
): Promise<string | undefined> {
  try {
    const count = rejectedIn(await sendRepeatedly(transport, request));
    if (count > 0) rejected(count);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Counts lost data points, and reports them at most once per `LIMITS.spanWarningInterval` ms. */
function lossLog(log: Log, count: (lost: number) => void): (lost: number, problem: string) => void {
  let total = 0;
  let lastWarning = Number.NEGATIVE_INFINITY;
  return (lost, problem) => {
    total += lost;
    count(lost);
    const now = performance.now();
    if (now - lastWarning < LIMITS.spanWarningInterval) return;
    lastWarning = now;
    log.warn('telemetry::metrics', 'data points of metrics were lost', { lost: total, problem });
  };
}

/**
 * Sends metrics again and again, one export at a time: while a collector is slow, turns are left out, which loses nothing,
 * because values count from the start of the process.
 */
export class PeriodicExport {
  readonly #active: () => MetricsExport | undefined;
  readonly #read: () => Promise<readonly MetricValues[]>;
  readonly #timer: NodeJS.Timeout;
  #sending: Promise<void> | undefined;

  /** `active`: that of the active configuration. `read`: the metrics of all processes. */
  constructor(
    interval: number,
    active: () => MetricsExport | undefined,
    read: () => Promise<readonly MetricValues[]>,
  ) {
    this.#active = active;
    this.#read = read;
    this.#timer = setInterval(() => void this.#send(), interval).unref();
  }

  /** Sends the last values, for at most `LIMITS.spanFlush` ms. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LIMITS.spanFlush);
    });
    await Promise.race([this.#sendLast(), late]);
    clearTimeout(timer);
  }

  async #sendLast(): Promise<void> {
    await this.#sending;
    await this.#send();
  }

  #send(): Promise<void> {
    this.#sending ??= this.#read()
      .then((metrics) => this.#active()?.send(metrics))
      .finally(() => {
        this.#sending = undefined;
      });
    return this.#sending;
  }
}
