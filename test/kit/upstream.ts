import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import {
  type AddressInfo,
  connect,
  createServer as createSocketServer,
  type Server,
  type Socket,
} from 'node:net';
import { type Certificate, certificateOf } from './certificates.ts';
import { temporarySocket } from './folder.ts';
import { freePort } from './ports.ts';

/** One request as an upstream got it. */
export interface Received {
  readonly method: string;
  /** Path and query, as on the wire. */
  readonly target: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  /** Alternating names and values, as on the wire. */
  readonly rawHeaders: readonly string[];
  /** The whole body; empty until it has ended, and when the answer reads it itself. */
  body: string;
}

export interface HttpUpstream extends AsyncDisposable {
  /** What goes into `host:` of a backend or an authorization service. */
  readonly address: string;
  /** 0 on a unix socket. */
  readonly port: number;
  readonly received: readonly Received[];
  /** Connections that were ever made. */
  readonly connections: number;
  close(): Promise<void>;
}

export type Answer = (request: IncomingMessage, response: ServerResponse, received: Received) => unknown;

export interface UpstreamOptions {
  /** On a unix socket: at this path, or at a fresh one. */
  readonly socket?: true | string;
  /** Address to listen on; 127.0.0.1 by default. */
  readonly host?: string;
  /** Any free one by default. */
  readonly port?: number;
  /** Leaves the request body to the answer. */
  readonly streaming?: boolean;
  /** Speaks TLS, with this certificate. */
  readonly certificate?: Certificate;
}

/** An HTTP service in this process that records what it gets. Answers 200 `ok` unless told otherwise. */
export async function httpUpstream(
  answer: Answer = (_, response) => response.end('ok'),
  { socket, host = '127.0.0.1', port: wanted = 0, streaming = false, certificate }: UpstreamOptions = {},
): Promise<HttpUpstream> {
  const received: Received[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url: target = '', headers, rawHeaders } = request;
    const record: Received = { method, target, headers, rawHeaders, body: '' };
    received.push(record);
    if (!streaming) record.body = (await readAll(request)).toString('latin1');
    await answer(request, response, record);
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    serve(request, response).catch(() => response.destroy());
  };
  const server =
    certificate === undefined
      ? createServer(onRequest)
      : createTlsServer(certificateOf(certificate), onRequest);
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  const folder = socket === true ? await temporarySocket() : undefined;
  const path = folder?.path ?? (typeof socket === 'string' ? socket : undefined);
  await release(wanted);
  await listening(server, path === undefined ? { port: wanted, host } : { path });
  const port = path === undefined ? (server.address() as AddressInfo).port : 0;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await folder?.remove();
  };
  return {
    address: path === undefined ? `${host.includes(':') ? `[${host}]` : host}:${port}` : `unix:${path}`,
    port,
    received,
    get connections() {
      return connections;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Gets each request head of a connection, and the connection to do with as it likes. `count` starts at 1. */
export type Script = (socket: Socket, head: string, count: number) => unknown;

export interface RawUpstream extends AsyncDisposable {
  readonly address: string;
  readonly port: number;
  /** Request heads, without what followed them. */
  readonly heads: readonly string[];
  readonly connections: number;
}

/** A service that answers bytes of any kind. It reads request heads only, so give it requests without a body. */
export async function rawUpstream(script: Script): Promise<RawUpstream> {
  const heads: string[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createSocketServer((socket) => {
    connections += 1;
    sockets.add(socket);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end);
        text = text.slice(end + 4);
        script(socket, head, heads.push(head));
      }
    });
    // A caller that resets the connection is no failure here.
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  await listening(server, { port: 0, host: '127.0.0.1' });
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    port,
    heads,
    get connections() {
      return connections;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Client ends of connections; the port of each is its key. */
const refusing = new Map<number, Socket>();

/**
 * A port of 127.0.0.1 that refuses connections until this process ends or `release` frees it. It is the local port of
 * an open connection: nobody listens there, and nobody else, such as a test that runs at the same time, is given it.
 */
export async function refusingPort(): Promise<number> {
  const server = createSocketServer((socket) => socket.on('error', () => undefined).unref());
  await listening(server, { port: 0, host: '127.0.0.1' });
  // One that the system does not hand out: it could, between `release` and the use of the port.
  const port = await freePort();
  const to = { port: (server.address() as AddressInfo).port, host: '127.0.0.1', localPort: port };
  const socket = connect(to).unref();
  await once(socket, 'connect');
  server.close();
  refusing.set(port, socket);
  return port;
}

/** Lets a server listen on a port of `refusingPort`. */
export async function release(port: number): Promise<void> {
  const socket = refusing.get(port);
  if (socket === undefined) return;
  refusing.delete(port);
  await new Promise((resolve) => socket.once('close', resolve).resetAndDestroy());
}

export async function readAll(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function listening(server: Server, where: { port?: number; host?: string; path?: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(where, resolve);
  });
}
