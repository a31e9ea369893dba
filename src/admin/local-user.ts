import { readFile } from 'node:fs/promises';
import { isIPv4, type Socket } from 'node:net';
import { userInfo } from 'node:os';

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>;

/** Connections keep their user. */
const known = new WeakMap<Peer, Promise<string | undefined>>();

/**
 * The user whose program has opened a connection from this machine. On Linux, the kernel lists it for TCP; on other systems, it is not known. Only
 * the user of this process can open its unix socket. Never rejects.
 */
export function localUser(socket: Peer, isUnixSocket: boolean): Promise<string | undefined> {
  const user = known.get(socket) ?? lookedUp(socket, isUnixSocket);
  known.set(socket, user);
  return user;
}

async function lookedUp(socket: Peer, isUnixSocket: boolean): Promise<string | undefined> {
  try {
    const { remoteAddress, remotePort, localAddress, localPort } = socket;
    if (isUnixSocket) return userInfo().username;
    if (remoteAddress === undefined || remotePort === undefined) return undefined;
    if (process.platform !== 'linux' || localAddress === undefined || localPort === undefined)
      return undefined;
    const client = endOf(remoteAddress, remotePort);
    const server = endOf(localAddress, localPort);
    const table = await readFile(
      isIPv4(mapped(remoteAddress)) ? '/proc/net/tcp' : '/proc/net/tcp6',
      'latin1',
    );
    // `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid …`; only an established connection has its user.
    const line = new RegExp(`^ *\\d+: ${client} ${server} 01 \\S+ \\S+ \\S+ +(\\d+) `, 'm').exec(table);
    return line?.[1] === undefined ? undefined : await nameOf(line[1]);
  } catch {
    return undefined;
  }
}

/** A client of a dual-stack socket has its IPv4 address. */
const mapped = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');

/** An address and a port as the kernel prints them: in hexadecimal digits, each four bytes in the order of the processor. */
function endOf(given: string, port: number): string {
  const address = mapped(given);
  const bytes = isIPv4(address) ? Buffer.from(address.split('.').map(Number)) : bytesOf(address);
  if (littleEndian) bytes.swap32();
  return `${bytes.toString('hex')}:${port.toString(16).padStart(4, '0')}`.toUpperCase();
}

const littleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/** The 16 bytes of an IPv6 address. */
function bytesOf(address: string): Buffer {
  const [before = '', after] = address
    .split('::')
    .map((part) => part.split(':').filter((each) => each !== ''));
  const groups = [...before];
  while (after !== undefined && groups.length + after.length < 8) groups.push('0');
  return Buffer.from([...groups, ...(after ?? [])].map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** The name of a user id; `uid 1000` if it has none here. */
async function nameOf(id: string): Promise<string> {
  const users = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const entry = users.split('\n').find((line) => line.split(':')[2] === id);
  return entry?.split(':')[0] ?? `uid ${id}`;
}
