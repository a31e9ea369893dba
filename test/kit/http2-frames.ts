import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { TRUSTING } from './certificates.ts';

// Frames of HTTP/2 (RFC 9113 §4.1 and §6), for clients that no library would be.

export const FRAME = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
export const END_STREAM = 1;
export const END_HEADERS = 4;

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array = new Uint8Array(),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Fields without an index and without Huffman coding (RFC 7541 §6.2.2); names and values below 127 bytes. */
export function fields(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat(
    Object.entries(headers).map(([name, value]) =>
      Buffer.concat([Buffer.from([0]), text(name), text(value)]),
    ),
  );
}

export const GET = fields({ ':method': 'GET', ':scheme': 'https', ':path': '/', ':authority': 'localhost' });

/** A connection that frames are written to, after the preface and an empty SETTINGS frame. */
export interface FrameClient extends AsyncDisposable {
  readonly socket: TLSSocket;
  write(...frames: Buffer[]): void;
  /** Frames of the gateway. */
  readonly received: readonly {
    readonly type: number;
    readonly flags: number;
    readonly stream: number;
    readonly payload: Buffer;
  }[];
  /** The error code of the GOAWAY frame, once the connection is closed. */
  readonly closed: Promise<number | undefined>;
}

export async function frameClient(port: number): Promise<FrameClient> {
  const socket = connect({ host: '127.0.0.1', port, ...TRUSTING, ALPNProtocols: ['h2'] });
  await once(socket, 'secureConnect');
  const received: { type: number; flags: number; stream: number; payload: Buffer }[] = [];
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const size = rest.readUIntBE(0, 3);
      received.push({
        type: rest.readUInt8(3),
        flags: rest.readUInt8(4),
        stream: rest.readUInt32BE(5),
        payload: rest.subarray(9, 9 + size),
      });
      rest = rest.subarray(9 + size);
    }
  });
  socket.on('error', () => undefined);
  const closed = new Promise<number | undefined>((resolve) => {
    socket.once('close', () =>
      resolve(received.find(({ type }) => type === FRAME.goaway)?.payload.readUInt32BE(4)),
    );
  });
  socket.write(Buffer.concat([PREFACE, frame(FRAME.settings, 0, 0)]));
  return {
    socket,
    write: (...frames) => void (socket.destroyed || socket.write(Buffer.concat(frames))),
    received,
    closed,
    [Symbol.asyncDispose]: async () => {
      socket.destroy();
      await closed;
    },
  };
}
