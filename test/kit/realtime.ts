import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';

// A provider of realtime sessions, and clients, for tests.

/** A WebSocket server that keeps what it received. */
export interface RealtimeProvider extends AsyncDisposable {
  /** `http://127.0.0.1:PORT/v1`. */
  readonly baseUrl: string;
  readonly handshakes: readonly IncomingMessage[];
  readonly sessions: readonly WebSocket[];
  /** Text messages, in order. */
  readonly messages: readonly string[];
  /** Closing codes and reasons of sessions. */
  readonly closed: readonly (readonly [code: number, reason: string])[];
}

/** `onMessage` answers a text message; `refuse` answers handshakes instead; `onOpen` begins a session. */
export async function realtimeProvider(
  onMessage: (session: WebSocket, text: string) => unknown = () => undefined,
  refuse?: { status: number; body: string; header?: string },
  onOpen: (session: WebSocket) => unknown = (session) =>
    session.send(JSON.stringify({ type: 'session.created', session: { object: 'realtime.session' } })),
): Promise<RealtimeProvider> {
  const http = createServer();
  const server = new WebSocketServer({ noServer: true, handleProtocols: ([first]) => first ?? false });
  const handshakes: IncomingMessage[] = [];
  const sessions: WebSocket[] = [];
  const messages: string[] = [];
  const closed: [number, string][] = [];
  http.on('upgrade', (request, socket, head) => {
    handshakes.push(request);
    if (refuse !== undefined) {
      socket.end(
        `HTTP/1.1 ${refuse.status} No\r\n${refuse.header ?? 'x-a: b'}\r\ncontent-type: application/json\r\ncontent-length: ${refuse.body.length}\r\n\r\n${refuse.body}`,
      );
      return;
    }
    server.handleUpgrade(request, socket, head, (session) => {
      sessions.push(session);
      session.on('close', (code, reason) => closed.push([code, reason.toString()]));
      session.on('error', () => undefined);
      session.on('message', (data, isBinary) => {
        if (isBinary) session.send(data, { binary: true });
        else {
          const text = (data as Buffer).toString();
          messages.push(text);
          onMessage(session, text);
        }
      });
      onOpen(session);
    });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    baseUrl: `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1`,
    handshakes,
    sessions,
    messages,
    closed,
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.terminate();
      http.close();
      await once(http, 'close');
    },
  };
}

/** An open session of a client, with what it received. */
export interface RealtimeClient extends AsyncDisposable {
  readonly socket: WebSocket;
  readonly received: readonly (string | Buffer)[];
  /** Resolves with code and reason when it is closed. */
  readonly closed: Promise<readonly [code: number, reason: string]>;
}

/** Connects to a gateway. Rejects with the status and the body of a refusal. */
export async function realtimeClient(
  url: string,
  options: { headers?: Record<string, string>; protocols?: string[] } = {},
): Promise<RealtimeClient> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), options.protocols ?? [], {
    headers: options.headers ?? {},
  });
  const received: (string | Buffer)[] = [];
  socket.on('message', (data, isBinary) =>
    received.push(isBinary ? (data as Buffer) : (data as Buffer).toString()),
  );
  const closed = new Promise<readonly [number, string]>((resolve) => {
    socket.on('close', (code, reason) => resolve([code, reason.toString()]));
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.on('error', reject);
    socket.once('unexpected-response', (request, response) => {
      void (async () => {
        const chunks = await response.toArray();
        request.destroy();
        reject(new Error(`${response.statusCode} ${Buffer.concat(chunks as Buffer[]).toString()}`));
      })();
    });
  });
  return {
    socket,
    received,
    closed,
    [Symbol.asyncDispose]: async () => {
      socket.terminate();
      await closed;
    },
  };
}
