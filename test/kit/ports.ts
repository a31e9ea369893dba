import { type AddressInfo, createServer, type Server } from 'node:net';

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
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
