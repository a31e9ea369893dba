import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import { PeriodicExport } from '../observe/otlp/metrics-export.ts';
import type { Tracing } from '../observe/otlp/tracing.ts';
import type { Runtime } from './runtime.ts';

/** What a running gateway sends to collectors: the spans of its requests, and its metrics. */
export class Telemetry {
  readonly #log: Log;
  readonly #metrics: Metrics;
  #tracing: Tracing | undefined;
  #metricsExport: PeriodicExport | undefined;
  /** Spans lost by exporters that have been closed. */
  #spansLost = 0;

  constructor(metrics: Metrics, log: Log) {
    this.#metrics = metrics;
    this.#log = log;
  }

  /** The exporter in use. */
  get tracing(): Tracing | undefined {
    return this.#tracing;
  }

  /** Opens the exporter of a runtime, which `use` puts into use. */
  async open({ tracing }: Runtime): Promise<Tracing | undefined> {
    if (tracing === undefined) return undefined;
    // Loaded on demand together with the SDK: most gateways export no traces.
    const { openTracing } = await import('../observe/otlp/tracing.ts');
    return openTracing(tracing, this.#log);
  }

  use({ inspection }: Runtime, tracing: Tracing | undefined): void {
    this.#tracing = tracing;
    if (tracing === undefined) return;
    this.#metrics.spansLost = () => this.#spansLost + (this.#tracing?.dropped ?? 0);
    inspection.bounds.push({ name: 'tracing.spans', max: LIMITS.spanQueue, used: () => tracing.queued });
  }

  /** Closes an exporter that is not in use any more. */
  async retire(tracing: Tracing | undefined): Promise<void> {
    await tracing?.close();
    this.#spansLost += tracing?.dropped ?? 0;
  }

  /** @param current the active runtime: a reload changes where metrics are sent */
  exportMetrics(current: () => Runtime): void {
    const { metricsExport } = current();
    if (metricsExport === undefined) return;
    this.#metricsExport = new PeriodicExport(
      metricsExport.interval,
      () => current().metricsExport,
      () => this.#metrics.read(),
    );
  }

  /** At the same time: a collector may hang. */
  async close(): Promise<void> {
    await Promise.all([this.#tracing?.close(), this.#metricsExport?.close()]);
  }
}
