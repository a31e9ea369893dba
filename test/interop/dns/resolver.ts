import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';

/** What is answered for a name: an address, nothing at all, `no such name`, or failures. */
export type Record = string | 'silent' | 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED';

export interface Resolver extends AsyncDisposable {
  /** Answers by name; a name that is not there does not exist. Change them at any time. */
  readonly records: Map<string, Record>;
  /** Names that were asked for, in order: one A question each. */
  readonly asked: readonly string[];
}

const A = 1;
const CODES = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 } as const;

/** A DNS server on port 53 of 127.0.0.1 (RFC 1035 §4): addresses of IPv4 only. */
export async function resolver(records: { readonly [name: string]: Record }): Promise<Resolver> {
  const known = new Map(Object.entries(records));
  const asked: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const { name, type, end } = question(query);
    const record = known.get(name) ?? 'NXDOMAIN';
    if (type === A) asked.push(name);
    if (record !== 'silent') socket.send(answer(query, end, type, record), from.port, from.address);
  });
  socket.bind(53, '127.0.0.1');
  await once(socket, 'listening');
  return {
    records: known,
    asked,
    [Symbol.asyncDispose]: async () => {
      socket.close();
      await once(socket, 'close');
    },
  };
}

function question(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function answer(query: Buffer, end: number, type: number, record: Record): Buffer {
  const code: number = CODES[record as keyof typeof CODES] ?? 0;
  const hasAddress = code === 0 && type === A;
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  // A response, recursion desired and available.
  header.writeUInt16BE(0x8180 | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(hasAddress ? 1 : 0, 6);
  // The name of the question, class IN, 0 s to live, 4 bytes.
  const fixed = Buffer.from([0xc0, 12, 0, A, 0, 1, 0, 0, 0, 0, 0, 4]);
  const address = hasAddress ? [fixed, Buffer.from(record.split('.').map(Number))] : [];
  return Buffer.concat([header, query.subarray(12, end), ...address]);
}
