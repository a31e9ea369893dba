import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import { BatchQueue } from './batch-queue.ts';

/** Sends spans in batches with the SDK's exporter. Instead of its batch processor, which neither counts nor reports losses. */
export class BoundedExport implements SpanProcessor {
  readonly #exporter: SpanExporter;
  readonly #queue: BatchQueue<ReadableSpan>;

  /** `collector`: its host and port, for the log. */
  constructor(exporter: SpanExporter, log: Log, collector?: string) {
    this.#exporter = exporter;
    this.#queue = new BatchQueue({
      what: 'spans',
      target: 'telemetry::trace',
      collector,
      log,
      send: (spans) => this.#send(spans),
    });
  }

  /** Spans lost because the queue was full or the export failed. */
  get dropped(): number {
    return this.#queue.dropped;
  }

  /** Spans waiting for export, without those being exported. At most `LIMITS.spanQueue`. */
  get queued(): number {
    return this.#queue.queued;
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    this.#queue.add(span);
  }

  forceFlush(): Promise<void> {
    return this.#queue.flush();
  }

  /** Exports queued spans, for at most `LIMITS.spanFlush` ms. Spans left after that are counted as lost. */
  async shutdown(): Promise<void> {
    await this.#queue.close();
    // It waits for exports that the collector does not answer; their spans are already counted.
    void this.#exporter.shutdown().catch(() => undefined);
  }

  #send(spans: readonly ReadableSpan[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#exporter.export([...spans], ({ code, error }) => {
        if (code === 0) resolve();
        else reject(new Error(withoutEmptyNote(error?.message) || 'the collector rejected them'));
      });
    });
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
