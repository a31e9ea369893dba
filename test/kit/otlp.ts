import { createServer } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo, Server, Socket } from 'node:net';

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

export interface Collector extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Header lines of the exports. */
  readonly headers: readonly Readonly<Record<string, unknown>>[];
}

/** A real OTLP collector: gRPC over HTTP/2, or protobuf over HTTP at any path. `answers: false` leaves calls open. */
export async function collector(protocol: 'grpc' | 'http', { answers = true } = {}): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const headers: Record<string, unknown>[] = [];
  const server: Server =
    protocol === 'grpc'
      ? grpcServer(spans, headers, answers)
      : createServer((request, response) => {
          const chunks: Buffer[] = [];
          request.on('data', (chunk: Buffer) => chunks.push(chunk));
          request.on('end', () => {
            headers.push({ ...request.headers, path: request.url });
            spans.push(...decodeExport(Buffer.concat(chunks)));
            if (answers) response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
          });
        });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function grpcServer(spans: ReceivedSpan[], all: Record<string, unknown>[], answers: boolean): Server {
  return createHttp2Server().on('stream', (stream: ServerHttp2Stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on('error', () => undefined);
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      all.push({ ...headers });
      // One message: a byte for compression, four of its length.
      spans.push(...decodeExport(Buffer.concat(chunks).subarray(5)));
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
