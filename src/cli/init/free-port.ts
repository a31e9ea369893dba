import { createServer } from 'node:net';

/** The first of some ports on which nothing listens; the first of all if none is free. */
export async function freePort(first: number, count = 20): Promise<number> {
  for (let port = first; port < first + count; port += 1) if (await isFree(port)) return port;
  return first;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}
