import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';

type Done = Parameters<SpanExporter['export']>[1];

/**
 * Wraps the SDK's batch processor: counts and reports lost spans, and bounds the time that a shutdown waits for the
 * collector. A slow or unreachable collector loses spans but never delays requests or grows memory.
 */
export class BoundedExport implements SpanProcessor {
  readonly #exporter: SpanExporter;
  readonly #batches: BatchSpanProcessor;
  readonly #log: Log;
  #queued = 0;
  #inFlight = 0;
  #isClosed = false;
  #lastWarning = Number.NEGATIVE_INFINITY;
  /** Spans lost because the queue was full or the export failed. */
  dropped = 0;

  constructor(exporter: SpanExporter, log: Log) {
    this.#exporter = exporter;
    this.#log = log;
    this.#batches = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) => this.#export(spans, done),
        shutdown: () => exporter.shutdown(),
      },
      maxQueueSize: LIMITS.spanQueue,
      maxExportBatchSize: LIMITS.spanBatch,
      scheduledDelayMillis: LIMITS.spanBatchTime,
      exportTimeoutMillis: LIMITS.spanExportTimeout,
    });
  }

  /** Spans waiting for export, without those being exported. At most `LIMITS.spanQueue`. */
  get queued(): number {
    return this.#queued;
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    // The batch processor would drop it too, but reports that only in its own experimental metrics.
    if (this.#queued >= LIMITS.spanQueue) this.#lost(1, 'the queue is full');
    else {
      this.#queued += 1;
      this.#batches.onEnd(span);
    }
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  /** Exports queued spans, for at most `LIMITS.spanFlush` ms. Spans left after that are counted as lost. */
  async shutdown(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LIMITS.spanFlush);
    });
    // Failed exports are already counted.
    await Promise.race([this.#batches.shutdown().catch(() => undefined), late]);
    clearTimeout(timer);
    const left = this.#queued + this.#inFlight;
    if (left > 0) this.#lost(left, 'the export did not finish before the shutdown timeout');
    this.#isClosed = true;
  }

  #export(spans: ReadableSpan[], done: Done): void {
    this.#queued -= spans.length;
    this.#inFlight += spans.length;
    this.#exporter.export(spans, (result) => {
      this.#inFlight -= spans.length;
      if (result.code !== 0)
        this.#lost(spans.length, withoutEmptyNote(result.error?.message) || 'the collector rejected them');
      done(result);
    });
  }

  #lost(count: number, problem: string): void {
    // Spans in flight at shutdown are already counted.
    if (this.#isClosed) return;
    this.dropped += count;
    const now = performance.now();
    if (now - this.#lastWarning < LIMITS.spanWarningInterval) return;
    this.#lastWarning = now;
    this.#log.warn('telemetry::trace', 'spans were lost', { lost: this.dropped, problem });
  }
}

/** Removes the empty `Resolution note:` heading that the gRPC library appends to some messages. */
function withoutEmptyNote(message = ''): string {
  return message.replace(/\s*Resolution note:\s*$/, '').trim();
}

/** Loads the SDK's exporter for a protocol. Rejects if its package is not installed. */
export async function loadExporter(
  protocol: 'grpc' | 'http',
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<SpanExporter> {
  const timeoutMillis = LIMITS.spanExportTimeout;
  if (protocol === 'grpc') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc');
    return new OTLPTraceExporter({ url, timeoutMillis });
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter({ url, timeoutMillis, headers: { ...headers } });
}
