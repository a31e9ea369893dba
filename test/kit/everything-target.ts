import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Eras, serveHttp } from './everything/http.ts';

const fixture = fileURLToPath(new URL('./everything-server.ts', import.meta.url));

/** The everything fixture as a target of the gateway. */
export interface EverythingTarget {
  readonly config: { readonly name: string };
  stop(): Promise<void>;
}

/** Started by the gateway. */
export function everythingStdio(name: string, eras: Eras): EverythingTarget & { config: { stdio: object } } {
  // The gateway hands on variables that it knows, and no others.
  const { NODE_COMPILE_CACHE } = process.env;
  const env = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
  const stdio = { cmd: process.execPath, args: [fixture, '--eras', eras], env };
  const config = { name, stdio };
  return { config, stop: async () => undefined };
}

/** In this process, on a free port. */
export async function everythingHttp(name: string, eras: Eras): Promise<EverythingTarget> {
  const server = await serveHttp(0, eras);
  const { port } = server.address() as AddressInfo;
  const config = { name, mcp: { host: `http://127.0.0.1:${port}/mcp` } };
  return {
    config,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
