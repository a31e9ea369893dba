import { Pool } from 'undici';
import { MEMORY_API_LIMITS } from '../../core/memory-limits.ts';
import { type BackendReply, type BackendRequest, ReplyTooLongError, type Transport } from './transport.ts';

/** Transport to a backend at an address from `memoryApiUrl`. Connections are opened on demand and kept alive. */
export function httpTransport(base: URL): Transport {
  const pool = new Pool(base.origin, {
    connections: MEMORY_API_LIMITS.backendConnections,
    connect: { timeout: MEMORY_API_LIMITS.connectTimeout },
    // The caller's signal limits the duration of the whole call.
    headersTimeout: 0,
    bodyTimeout: 0,
    pipelining: 1,
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
