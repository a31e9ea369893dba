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

const FAULTS = {
  'resets the call': (stream) => stream.close(2),
  'closes the connection': (stream) => stream.session?.destroy(),
  'sends bytes that are no message': (stream) => {
    stream.respond(HEAD, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(Buffer.concat([prefix(6), Buffer.alloc(6, 0xff)]));
  },
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
