import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';

/** An HTTP/2 server that answers gRPC calls wrongly. */
export interface BrokenGrpc extends AsyncDisposable {
  /** `host:port`. */
  readonly address: string;
  readonly calls: number;
  /** Bytes of answers that were written. */
  readonly written: number;
}

const HEAD = { ':status': 200, 'content-type': 'application/grpc' };
/** The prefix of a message: not compressed, and its length. */
const prefix = (length: number): Buffer => {
  const bytes = Buffer.alloc(5);
  bytes.writeUInt32BE(length, 1);
  return bytes;
};

type Fault = (stream: ServerHttp2Stream, count: (bytes: number) => void) => void;

function answer(stream: ServerHttp2Stream, message: Buffer): void {
  stream.respond(HEAD, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(Buffer.concat([prefix(message.length), message]));
}

/** `dynamic_metadata` of a `CheckResponse`: a `google.protobuf.Struct` whose member is a Struct, and so on. */
function deepMetadata(levels: number): Buffer {
  const heads: Buffer[] = [];
  let length = 0;
  const wrap = (tag: number, before: Buffer = Buffer.alloc(0)): void => {
    const head = Buffer.concat([before, Buffer.from([tag, ...varint(length)])]);
    heads.push(head);
    length += head.length;
  };
  // Struct.fields is a map: entries with a key (1) and a value (2), a Value, whose `struct_value` has number 5.
  for (let level = 0; level < levels; level += 1) {
    wrap(0x2a);
    wrap(0x12, Buffer.from([0x0a, 1, 0x61]));
    wrap(0x0a);
  }
  wrap(0x22);
  return Buffer.concat(heads.reverse());
}

const varint = (value: number): number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >> 7)];

const FAULTS = {
  'resets the call': (stream) => stream.close(2),
  'closes the connection': (stream) => stream.session?.destroy(),
  'sends bytes that are no message': (stream) => answer(stream, Buffer.alloc(6, 0xff)),
  'sends 60,000 groups inside of each other': (stream) => answer(stream, Buffer.alloc(60_000, 0x0b)),
  'sends metadata with 4,000 structs inside of each other': (stream) => answer(stream, deepMetadata(4_000)),
  'ends in the middle of a message': (stream) => {
    stream.respond(HEAD);
    stream.end(Buffer.concat([prefix(1000), Buffer.alloc(10)]));
  },
  'announces a message of 4 GB, and goes on sending': (stream, count) => {
    stream.respond(HEAD);
    stream.write(prefix(0xffffffff));
    const more = (): void => {
      if (stream.destroyed) return;
      count(16_384);
      stream.write(Buffer.alloc(16_384), () => setImmediate(more));
    };
    more();
  },
  'answers with a page of HTML': (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'text/html' });
    stream.end('<p>hello</p>');
  },
} as const satisfies Record<string, Fault>;

export type GrpcFault = keyof typeof FAULTS;
export const GRPC_FAULTS = Object.keys(FAULTS) as readonly GrpcFault[];

export async function brokenGrpc(fault: GrpcFault): Promise<BrokenGrpc> {
  let calls = 0;
  let written = 0;
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => {
    sessions.add(session.on('error', () => undefined));
  });
  server.on('stream', (stream) => {
    calls += 1;
    stream.on('error', () => undefined).resume();
    FAULTS[fault](stream as ServerHttp2Stream, (bytes) => {
      written += bytes;
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    get calls() {
      return calls;
    },
    get written() {
      return written;
    },
    [Symbol.asyncDispose]: async () => {
      for (const session of sessions) session.destroy();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
