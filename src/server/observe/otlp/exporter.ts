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
 * The SDK's batch processor, with what it does not do itself: it says what was lost, and a stop waits for the collector
 * for a bounded time. A collector that is slow or gone costs spans, never memory or requests.
 */
export class BoundedExport implements SpanProcessor {
  readonly #exporter: SpanExporter;
  readonly #batches: BatchSpanProcessor;
  readonly #log: Log;
  #queued = 0;
  #inFlight = 0;
  #isClosed = false;
  #lastWarning = Number.NEGATIVE_INFINITY;
  /** Spans that were lost: no place in the queue, or not taken by the collector. */
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

  /** Spans that wait; those on their way are not among them. */
  get queued(): number {
    return this.#queued;
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    // As the batch processor would, which only tells its own experimental metrics.
    if (this.#queued >= LIMITS.spanQueue) this.#lost(1, 'the queue is full');
    else {
      this.#queued += 1;
      this.#batches.onEnd(span);
    }
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  /** Sends what waits, for at most `LIMITS.spanFlush` ms. */
  async shutdown(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LIMITS.spanFlush);
    });
    // What fails was counted by then.
    await Promise.race([this.#batches.shutdown().catch(() => undefined), late]);
    clearTimeout(timer);
    const left = this.#queued + this.#inFlight;
    if (left > 0) this.#lost(left, 'the collector did not take them in time');
    this.#isClosed = true;
  }

  #export(spans: ReadableSpan[], done: Done): void {
    this.#queued -= spans.length;
    this.#inFlight += spans.length;
    this.#exporter.export(spans, (result) => {
      this.#inFlight -= spans.length;
      if (result.code !== 0)
        this.#lost(spans.length, withoutEmptyNote(result.error?.message) || 'the collector refused them');
      done(result);
    });
  }

  #lost(count: number, problem: string): void {
    // What was still on its way at the end was counted then.
    if (this.#isClosed) return;
    this.dropped += count;
    const now = performance.now();
    if (now - this.#lastWarning < LIMITS.spanWarning) return;
    this.#lastWarning = now;
    this.#log.warn('telemetry::trace', 'spans were lost', { lost: this.dropped, problem });
  }
}

/** The gRPC library ends some messages in a heading with nothing below it. */
function withoutEmptyNote(message = ''): string {
  return message.replace(/\s*Resolution note:\s*$/, '').trim();
}

/** The SDK's exporter for that protocol. */
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
