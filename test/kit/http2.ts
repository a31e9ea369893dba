import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { request as httpsRequest } from 'node:https';
import type { ConnectionOptions } from 'node:tls';
import { TRUSTING } from './certificates.ts';

export interface Answer2 {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** An HTTP/2 connection of a client. */
export interface Http2Client extends AsyncDisposable {
  readonly session: ClientHttp2Session;
  /** Opens a stream. */
  open(headers: OutgoingHttpHeaders, options?: { endStream?: boolean }): ClientHttp2Stream;
  /** Sends a request and reads its answer. */
  send(headers: OutgoingHttpHeaders, body?: string | Buffer): Promise<Answer2>;
}

/** Connects to a port of this machine. */
export async function http2Client(port: number, options: ConnectionOptions = TRUSTING): Promise<Http2Client> {
  const session = connect(`https://127.0.0.1:${port}`, options);
  session.on('error', () => undefined);
  await once(session, 'connect');
  const open: Http2Client['open'] = (headers, how) => {
    const stream = session.request({ ':authority': 'localhost', ...headers }, how);
    stream.on('error', () => undefined);
    return stream;
  };
  return {
    session,
    open,
    send: async (headers, body) => {
      const stream = open(headers, { endStream: body === undefined });
      if (body !== undefined) stream.end(body);
      return answerOf(stream);
    },
    [Symbol.asyncDispose]: async () => {
      if (session.destroyed) return;
      const closed = once(session, 'close');
      session.destroy();
      await closed;
    },
  };
}

/** The answer on a stream. Rejects if the stream is reset. */
export async function answerOf(stream: ClientHttp2Stream): Promise<Answer2> {
  return new Promise((resolve, reject) => {
    let headers: Record<string, unknown> = {};
    const chunks: Buffer[] = [];
    stream.on('response', (received) => {
      headers = received;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('close', () => {
      if (stream.rstCode !== 0 || stream.aborted)
        reject(new Error(`stream was reset with ${stream.rstCode}`));
      else
        resolve({
          status: Number(headers[':status']),
          headers,
          text: Buffer.concat(chunks).toString(),
        });
    });
  });
}

/** A request over HTTP/1.1 and TLS, on a connection of its own. */
export function sendHttps(
  port: number,
  {
    body,
    ...options
  }: { method?: string; path?: string; headers?: Record<string, string>; body?: string } = {},
  tls: ConnectionOptions = TRUSTING,
): Promise<Answer2> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(
      { host: '127.0.0.1', port, agent: false, ...options, ...(tls as object) },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}
