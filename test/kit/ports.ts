import { type AddressInfo, createServer, type Server } from 'node:net';

/**
 * Ports that systems do not hand out on their own (Linux from 32768, others from 49152), so that nobody gets one between
 * `freePort` and its use: a thousand for each worker of the tests.
 */
const FIRST = 20_000;
const PER_WORKER = 1_000;
const first = FIRST + (Number(process.env['VITEST_POOL_ID'] ?? 0) % 12) * PER_WORKER;
// Where another run is under way on this machine, few of its ports are met.
let next = Math.floor(Math.random() * PER_WORKER);

/** A port that nobody uses, and that nobody else gets. */
export async function freePort(): Promise<number> {
  for (;;) {
    next = (next + 1) % PER_WORKER;
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(first + next, () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return first + next;
  }
}

/**
 * A port that is in use until its scope is left.
 *
 * @param host the address of this machine that it is in use on; all of them by default
 * @throws Error (EADDRINUSE) when somebody else has the port already
 */
export async function busyPort(
  host?: string,
  port = 0,
): Promise<{ readonly port: number } & AsyncDisposable> {
  // Says nothing, and reads, because a connection that is not read never ends.
  const server = createServer((socket) => socket.resume().on('error', () => undefined));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** Takes a port, unless somebody else has it already, which serves as well. */
export async function occupy(port: number): Promise<{ server: Server; taken: boolean }> {
  const server = createServer();
  const taken = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, () => resolve(true));
  });
  return { server, taken };
}
