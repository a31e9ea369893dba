import type { FastifyInstance } from 'fastify';
import { MEMORY_API_LIMITS } from '../../core/memory-limits.ts';
import { undici } from '../../core/undici.ts';

/** One request to the memory backend. */
export interface BackendRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path below `/api/memory`, with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal;
}

export interface BackendReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number | readonly string[] | undefined>>;
  readonly text: string;
}

/** How requests reach the backend: over HTTP, or within the same process. */
export interface Transport {
  /** The address of the backend, for messages. */
  readonly origin: string;
  /** Rejects with the error of the connection, or with the reason of the signal. */
  send(request: BackendRequest): Promise<BackendReply>;
  close(): Promise<void>;
}

/** A response longer than any that the backend sends. */
export class ReplyTooLongError extends Error {}

/**
 * Transport to a backend at an address from `memoryApiUrl`. Connections are opened on demand and kept alive.
 *
 * @param socketPath Unix socket that the backend listens on, in place of the host of the address. Its connections are not kept: the process
 * behind it changes.
 */
export function httpTransport(base: URL, socketPath?: string): Transport {
  const pool = new (undici().Pool)(base.origin, {
    connections: MEMORY_API_LIMITS.backendConnections,
    connect: {
      timeout: MEMORY_API_LIMITS.connectTimeout,
      ...(socketPath !== undefined && { socketPath }),
    },
    // The caller's signal limits the duration of the whole call.
    headersTimeout: 0,
    bodyTimeout: 0,
    pipelining: socketPath === undefined ? 1 : 0,
  });
  return {
    origin: base.origin,
    send: ({ method, path, headers, body, signal }: BackendRequest): Promise<BackendReply> =>
      pool
        .request({ method, path: `${base.pathname}${path}`, headers, body: body ?? null, signal })
        .then(async (response) => ({
          status: response.statusCode,
          headers: response.headers,
          text: await textOf(response.body),
        })),
    close: () => pool.destroy(),
  };
}

async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of body) {
    length += part.length;
    if (length > MEMORY_API_LIMITS.replyBytes) throw new ReplyTooLongError();
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

/**
 * Transport to a backend in this process: the same requests, without a socket. `prefix` precedes the paths of its
 * endpoints, and `key` is their bearer token.
 */
export function injectTransport(app: FastifyInstance, prefix: string, key?: string): Transport {
  return {
    origin: 'this process',
    async send({ method, path, headers, body, signal }: BackendRequest): Promise<BackendReply> {
      signal.throwIfAborted();
      const reply = await app.inject({
        method,
        url: `${prefix}${path}`,
        headers: key === undefined ? headers : { ...headers, authorization: `Bearer ${key}` },
        signal,
        ...(body === undefined ? {} : { payload: body }),
      });
      return { status: reply.statusCode, headers: reply.headers, text: reply.body };
    },
    close: () => Promise.resolve(),
  };
}
