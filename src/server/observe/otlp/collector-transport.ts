import { setTimeout as wait } from 'node:timers/promises';
import type { MethodDefinition } from '@grpc/grpc-js';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { createGrpcService } from '../../transport/services/grpc.ts';
import { securedAddress } from '../../transport/services/service-policies.ts';
import type { Service } from '../../transport/services/service-reference.ts';
import { createUpstream, parseAddress, type Upstream } from '../../transport/upstream/upstream.ts';
import { explainUpstreamError } from '../../transport/upstream/upstream-error.ts';

/** Sends encoded log records or metrics to a collector. */
export interface CollectorTransport {
  /** Returns the answer, an encoded response of the service. Rejects with a reason for the log. */
  send(request: Uint8Array, timeout: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** A failure after which OTLP allows to send the same again. */
class TransientError extends Error {}

/** Sends, again after failures that may pass (OTLP, "Failures"), for at most `LIMITS.spanExportTimeout` ms. */
export async function sendRepeatedly(
  transport: CollectorTransport,
  request: Uint8Array,
): Promise<Uint8Array> {
  const end = performance.now() + LIMITS.spanExportTimeout;
  for (let pause = LIMITS.logRetryWait; ; pause *= 2) {
    try {
      return await transport.send(request, end - performance.now());
    } catch (error) {
      if (!(error instanceof TransientError) || performance.now() + pause >= end) throw error;
    }
    await wait(pause, undefined, { ref: false });
  }
}

/** What is sent: the service of OTLP/gRPC, and how calls are named in metrics. */
const SIGNALS = {
  logs: { service: 'opentelemetry.proto.collector.logs.v1.LogsService', subtype: 'AccessLog' },
  metrics: { service: 'opentelemetry.proto.collector.metrics.v1.MetricsService', subtype: 'Metrics' },
} as const;

type Signal = keyof typeof SIGNALS;

/** Encoded messages in both directions: the SDK encodes them. */
const exportOf = (service: string): MethodDefinition<object, object> => ({
  path: `/${service}/Export`,
  requestStream: false,
  responseStream: false,
  requestSerialize: bytesOf,
  requestDeserialize: (bytes) => bytes,
  responseSerialize: bytesOf,
  responseDeserialize: (bytes) => bytes,
});

function bytesOf(message: object): Buffer {
  if (message instanceof Uint8Array) return Buffer.from(message);
  throw new TypeError('expected an encoded message');
}

/** The retryable codes of OTLP/gRPC. */
const TRANSIENT_CODES = new Set(
  ['CANCELLED', 'DEADLINE_EXCEEDED', 'ABORTED', 'OUT_OF_RANGE', 'UNAVAILABLE', 'DATA_LOSS'].map(
    (code) => `gRPC status ${code}`,
  ),
);

export function grpcTransport(
  collector: Service,
  signal: Signal,
  context: CompileContext,
): CollectorTransport | undefined {
  const { service: name, subtype } = SIGNALS[signal];
  const service = createGrpcService(
    collector,
    { methods: { Export: exportOf(name) } },
    { maxBytes: LIMITS.logAnswerBytes, meter: context.settings.callMeter('Policy', subtype) },
  );
  if (service === undefined) return undefined;
  const { signal: never } = new AbortController();
  return {
    async send(request, timeout) {
      try {
        return bytesOf(Object(await service.call('Export', request, { timeout, signal: never })));
      } catch (error) {
        const problem = messageOf(error);
        throw TRANSIENT_CODES.has(problem) ? new TransientError(problem) : error;
      }
    },
    close: () => service.close(),
  };
}

/** The retryable statuses of OTLP/HTTP. */
const TRANSIENT_STATUSES = new Set([429, 502, 503, 504]);

export function httpTransport(
  { host, at, connection }: Service,
  signal: Signal,
  path: string,
  context: CompileContext,
): CollectorTransport | undefined {
  const address = parseAddress(host, at);
  if (address === undefined) return undefined;
  const { tls, authorization, connectTimeout } = connection;
  const upstream = createUpstream(securedAddress(address, connection), {
    connections: 1,
    meter: context.settings.callMeter('Policy', SIGNALS[signal].subtype),
    ...(tls && { tls }),
    ...(authorization !== undefined && { authorization }),
    ...(connectTimeout !== undefined && { connectTimeout }),
  });
  return {
    send: (request, timeout) => post(upstream, path, request, timeout),
    close: () => upstream.close(),
  };
}

async function post(
  upstream: Upstream,
  path: string,
  body: Uint8Array,
  timeout: number,
): Promise<Uint8Array> {
  const signal = AbortSignal.timeout(Math.max(1, Math.ceil(timeout)));
  let status: number;
  let type: unknown;
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    const response = await upstream.request({
      method: 'POST',
      path,
      headers: ['host', upstream.authority, 'content-type', 'application/x-protobuf'],
      body,
      signal,
    });
    status = response.statusCode;
    type = response.headers['content-type'];
    const received: AsyncIterable<Buffer> = response.body;
    for await (const chunk of received) {
      size += chunk.length;
      chunks.push(chunk);
      if (size > LIMITS.logAnswerBytes) break;
    }
  } catch (error) {
    if (signal.aborted) throw new Error('the collector did not answer in time');
    throw new TransientError(explainUpstreamError(error));
  }
  if (TRANSIENT_STATUSES.has(status))
    throw new TransientError(`the collector answered with status ${status}`);
  if (status < 200 || status > 299) throw new Error(`the collector answered with status ${status}`);
  // Servers that answer every path with a page have taken nothing.
  if (String(type ?? '').startsWith('text/') || size > LIMITS.logAnswerBytes)
    throw new Error('the answer is not OTLP: is this a collector?');
  return String(type).startsWith('application/json') ? new Uint8Array() : Buffer.concat(chunks);
}
