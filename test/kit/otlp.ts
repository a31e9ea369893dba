import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import { type Certificate, certificateOf } from './certificates.ts';

/** A span as a collector received it. Kinds: 2 is a server's, 3 a client's; status 2 is an error. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly duration: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code: number; readonly message: string };
  readonly resource: Readonly<Record<string, unknown>>;
}

/** A log record as a collector received it. Severity 9 is INFO. */
export interface ReceivedRecord {
  readonly time: number;
  readonly severity: readonly [number: number, text: string];
  readonly body: unknown;
  readonly event: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly scope: string;
  readonly resource: Readonly<Record<string, unknown>>;
}

/** A metric as a collector received it, in one export. */
export interface ReceivedMetric {
  readonly name: string;
  readonly description: string;
  /** The member of OTLP's `Metric` that has its data. */
  readonly type: 'gauge' | 'sum' | 'histogram' | 'exponentialHistogram';
  /** 2: from the start of the process. */
  readonly temporality: number;
  readonly isMonotonic: boolean;
  readonly points: readonly ReceivedPoint[];
  readonly resource: Readonly<Record<string, unknown>>;
}

interface ReceivedPoint {
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Unix times in ms. */
  readonly start: number;
  readonly time: number;
  /** Of a gauge or sum. */
  readonly value: number | undefined;
  /** Of histograms. */
  readonly count: number;
  readonly sum: number;
  readonly counts: readonly number[];
  readonly bounds: readonly number[];
  /** Of an exponential one: `counts` begin with the bucket of this number. */
  readonly scale: number;
  readonly zeros: number;
  readonly offset: number;
}

export interface Collector extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  readonly records: readonly ReceivedRecord[];
  readonly metrics: readonly ReceivedMetric[];
  /** Header lines of the exports. */
  readonly headers: readonly Readonly<Record<string, unknown>>[];
}

interface Received {
  readonly spans: ReceivedSpan[];
  readonly records: ReceivedRecord[];
  readonly metrics: ReceivedMetric[];
  readonly headers: Record<string, unknown>[];
}

interface CollectorOptions {
  /** False leaves calls open. */
  readonly answers?: boolean;
  /** Answers the calls over HTTP, which are counted from 1. */
  readonly reply?: (response: ServerResponse, call: number) => void;
  /** For TLS, over HTTP. */
  readonly certificate?: Certificate;
}

/**
 * A real OTLP collector: gRPC over HTTP/2, or protobuf over HTTP at any path; logs at one that ends with `logs`, metrics at one
 * that ends with `metrics`.
 */
export async function collector(
  protocol: 'grpc' | 'http',
  { answers = true, certificate, reply = taken }: CollectorOptions = {},
): Promise<Collector> {
  const received: Received = { spans: [], records: [], metrics: [], headers: [] };
  const { spans, records, metrics, headers } = received;
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      headers.push({ ...request.headers, path: request.url });
      take(received, request.url ?? '', Buffer.concat(chunks));
      if (answers) reply(response, headers.length);
    });
  };
  const tls = certificate === undefined ? undefined : certificateOf(certificate);
  const http = (): Server =>
    tls === undefined
      ? createServer(listener)
      : createHttpsServer({ cert: tls.cert, key: tls.key }, listener);
  const server: Server = protocol === 'grpc' ? grpcServer(received, answers) : http();
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    records,
    metrics,
    headers,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const taken = (response: ServerResponse): void =>
  void response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();

function take({ spans, records, metrics }: Received, path: string, body: Buffer): void {
  if (/logs$|LogsService/.test(path)) records.push(...decodeLogs(body));
  else if (/metrics$|MetricsService/.test(path)) metrics.push(...decodeMetrics(body));
  else spans.push(...decodeExport(body));
}

function grpcServer(received: Received, answers: boolean): Server {
  return createHttp2Server().on('stream', (stream: ServerHttp2Stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on('error', () => undefined);
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      received.headers.push({ ...headers });
      // One message: a byte for compression, four of its length.
      take(received, headers[':path'] ?? '', Buffer.concat(chunks).subarray(5));
      if (!answers) return;
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(Buffer.alloc(5));
    });
  }) as unknown as Server;
}

type Value = number | bigint | Buffer;

/** Fields of a protobuf message by number, in their order. */
function fields(message: Buffer): Map<number, Value[]> {
  const found = new Map<number, Value[]>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] as number;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    let value: Value;
    if (tag % 8 === 0) value = varint();
    else if (tag % 8 === 1) {
      value = message.subarray(at, at + 8);
      at += 8;
    } else if (tag % 8 === 2) {
      const length = Number(varint());
      value = message.subarray(at, at + length);
      at += length;
    } else {
      value = message.readFloatLE(at);
      at += 4;
    }
    found.set(tag >> 3, [...(found.get(tag >> 3) ?? []), value]);
  }
  return found;
}

const messages = (of: Map<number, Value[]>, number: number): Map<number, Value[]>[] =>
  (of.get(number) ?? []).map((value) => fields(value as Buffer));
const bytes = (of: Map<number, Value[]>, number: number): Buffer =>
  (of.get(number)?.[0] ?? Buffer.alloc(0)) as Buffer;
const hex = (of: Map<number, Value[]>, number: number): string => bytes(of, number).toString('hex');

function attributes(of: Map<number, Value[]>, number: number): Record<string, unknown> {
  return Object.fromEntries(
    messages(of, number).map((pair) => [bytes(pair, 1).toString(), anyValue(messages(pair, 2)[0])]),
  );
}

/** OTLP's `AnyValue`, as far as attributes use it. */
function anyValue(any: Map<number, Value[]> | undefined): unknown {
  const [[kind, [value]] = [0, [undefined]]] = [...(any ?? [])] as [number, Value[]][];
  switch (kind) {
    case 1:
      return (value as Buffer).toString();
    case 2:
      return value === 1n;
    case 3:
      return Number(value);
    case 5:
      return messages(fields(value as Buffer), 1).map(anyValue);
    default:
      return (value as Buffer).readDoubleLE();
  }
}

function decodeExport(body: Buffer): ReceivedSpan[] {
  return messages(fields(body), 1).flatMap((resourceSpans) => {
    const resource = attributes(messages(resourceSpans, 1)[0] as Map<number, Value[]>, 1);
    const spans = messages(resourceSpans, 2).flatMap((scope) => messages(scope, 2));
    return spans.map((span): ReceivedSpan => {
      const [status = new Map<number, Value[]>()] = messages(span, 15);
      return {
        traceId: hex(span, 1),
        spanId: hex(span, 2),
        parentSpanId: hex(span, 4),
        name: bytes(span, 5).toString(),
        kind: Number(span.get(6)?.[0]),
        duration: Number(bytes(span, 8).readBigUInt64LE() - bytes(span, 7).readBigUInt64LE()) / 1e6,
        attributes: attributes(span, 9),
        status: { code: Number(status.get(3)?.[0] ?? 0), message: bytes(status, 2).toString() },
        resource,
      };
    });
  });
}

function decodeLogs(body: Buffer): ReceivedRecord[] {
  return messages(fields(body), 1).flatMap((resourceLogs) => {
    const resource = attributes(messages(resourceLogs, 1)[0] as Map<number, Value[]>, 1);
    return messages(resourceLogs, 2).flatMap((scopeLogs) => {
      const scope = bytes(messages(scopeLogs, 1)[0] as Map<number, Value[]>, 1).toString();
      return messages(scopeLogs, 2).map(
        (record): ReceivedRecord => ({
          time: Number(bytes(record, 1).readBigUInt64LE() / 1_000_000n),
          severity: [Number(record.get(2)?.[0]), bytes(record, 3).toString()],
          body: anyValue(messages(record, 5)[0]),
          event: bytes(record, 12).toString(),
          traceId: hex(record, 9),
          spanId: hex(record, 10),
          attributes: attributes(record, 6),
          scope,
          resource,
        }),
      );
    });
  });
}

/** Fields of `Metric`. */
const TYPES = { 5: 'gauge', 7: 'sum', 9: 'histogram', 10: 'exponentialHistogram' } as const;

function decodeMetrics(body: Buffer): ReceivedMetric[] {
  return messages(fields(body), 1).flatMap((resourceMetrics) => {
    const resource = attributes(messages(resourceMetrics, 1)[0] as Map<number, Value[]>, 1);
    return messages(resourceMetrics, 2)
      .flatMap((scope) => messages(scope, 2))
      .flatMap((metric) =>
        Object.entries(TYPES).flatMap(([number, type]) =>
          messages(metric, Number(number)).map((data) => ({
            name: bytes(metric, 1).toString(),
            description: bytes(metric, 2).toString(),
            type,
            temporality: Number(data.get(2)?.[0]),
            isMonotonic: data.get(3)?.[0] === 1n,
            points: messages(data, 1).map((point) => pointOf(point, type)),
            resource,
          })),
        ),
      );
  });
}

const double = (of: Map<number, Value[]>, number: number): number | undefined =>
  of.has(number) ? bytes(of, number).readDoubleLE() : undefined;

/** Fields of `NumberDataPoint`, `HistogramDataPoint` and `ExponentialHistogramDataPoint`. */
function pointOf(point: Map<number, Value[]>, type: ReceivedMetric['type']): ReceivedPoint {
  const isExponential = type === 'exponentialHistogram';
  const [buckets = new Map<number, Value[]>()] = isExponential ? messages(point, 8) : [];
  const packed = (of: Map<number, Value[]>, number: number, size: number): Buffer[] => {
    const all = bytes(of, number);
    return Array.from({ length: all.length / size }, (_, index) =>
      all.subarray(index * size, (index + 1) * size),
    );
  };
  const time = (number: number): number => Number(bytes(point, number).readBigUInt64LE() / 1_000_000n);
  const isNumber = type === 'gauge' || type === 'sum';
  return {
    attributes: attributes(point, isNumber ? 7 : isExponential ? 1 : 9),
    start: time(2),
    time: time(3),
    value: isNumber ? double(point, 4) : undefined,
    count: isNumber ? 0 : Number(bytes(point, 4).readBigUInt64LE()),
    sum: isNumber ? 0 : (double(point, 5) ?? 0),
    counts: isExponential
      ? varints(bytes(buckets, 2))
      : packed(point, 6, 8).map((each) => Number(each.readBigUInt64LE())),
    bounds: type === 'histogram' ? packed(point, 7, 8).map((each) => each.readDoubleLE()) : [],
    scale: isExponential ? zigzag(point.get(6)?.[0]) : 0,
    zeros: isExponential && point.has(7) ? Number(bytes(point, 7).readBigUInt64LE()) : 0,
    offset: zigzag(buckets.get(1)?.[0]),
  };
}

function varints(packed: Buffer): number[] {
  const found: number[] = [];
  let value = 0;
  let factor = 1;
  for (const byte of packed) {
    value += (byte & 0x7f) * factor;
    factor *= 128;
    if (byte >= 0x80) continue;
    found.push(value);
    value = 0;
    factor = 1;
  }
  return found;
}

function zigzag(value: Value | undefined): number {
  const raw = Number(value ?? 0);
  return raw % 2 === 0 ? raw / 2 : -(raw + 1) / 2;
}
