import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';

/** The part of the library's exporters that is used. */
export interface Transport {
  export(spans: ReadableSpan[], done: (result: { code: number; error?: Error }) => void): void;
  shutdown(): Promise<void>;
}

/** Spans waiting for the collector. One that is slow or gone costs spans, never memory or requests. */
export class SpanQueue {
  readonly #transport: Promise<Transport>;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #waiting: ReadableSpan[] = [];
  #sending: Promise<void> | undefined;
  #inFlight = 0;
  #isClosed = false;
  #lastWarning = Number.NEGATIVE_INFINITY;
  /** Spans that were lost: no place in the queue, or refused by the collector. */
  dropped = 0;
  exported = 0;

  constructor(transport: Promise<Transport>, log: Log) {
    this.#transport = transport;
    this.#log = log;
    this.#timer = setInterval(() => void this.#send(), LIMITS.spanBatchTime).unref();
  }

  /** Spans that wait; those on their way are not among them. */
  get queued(): number {
    return this.#waiting.length;
  }

  add(spans: readonly ReadableSpan[]): void {
    if (this.#waiting.length + spans.length > LIMITS.spanQueue) {
      this.#lost(spans.length, 'the queue is full');
      return;
    }
    this.#waiting.push(...spans);
    if (this.#waiting.length >= LIMITS.spanBatch) void this.#send();
  }

  /** Sends what waits, for a bounded time. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LIMITS.spanFlush);
    });
    const all = async (): Promise<void> => {
      while (this.#waiting.length > 0 || this.#sending !== undefined) await this.#send();
    };
    await Promise.race([all(), late]);
    clearTimeout(timer);
    const left = this.#waiting.splice(0).length + this.#inFlight;
    if (left > 0) this.#lost(left, 'the collector did not take them in time');
    this.#isClosed = true;
    // Not waited for: an exporter that hangs is not ours to wait for.
    void this.#transport.then((transport) => transport.shutdown()).catch(() => undefined);
  }

  #send(): Promise<void> {
    if (this.#sending !== undefined) return this.#sending;
    if (this.#waiting.length === 0) return Promise.resolve();
    this.#sending = this.#sendBatch(this.#waiting.splice(0, LIMITS.spanBatch)).finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #sendBatch(batch: ReadableSpan[]): Promise<void> {
    this.#inFlight = batch.length;
    try {
      const transport = await this.#transport;
      const { code, error } = await new Promise<{ code: number; error?: Error }>((resolve) =>
        transport.export(batch, resolve),
      );
      if (code === 0) this.exported += batch.length;
      else this.#lost(batch.length, withoutEmptyNote(error?.message) || 'the collector refused them');
    } catch (error) {
      this.#lost(batch.length, error instanceof Error ? error.message : String(error));
    } finally {
      this.#inFlight = 0;
    }
  }

  #lost(count: number, problem: string): void {
    // What is still on its way at the end was counted then.
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

/** The library's exporter, loaded only now: most gateways trace nothing. */
export async function loadTransport(
  protocol: 'grpc' | 'http',
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<Transport> {
  const timeoutMillis = LIMITS.spanExportTimeout;
  if (protocol === 'grpc') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc');
    return new OTLPTraceExporter({ url, timeoutMillis }) as unknown as Transport;
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter({ url, timeoutMillis, headers: { ...headers } }) as unknown as Transport;
}
