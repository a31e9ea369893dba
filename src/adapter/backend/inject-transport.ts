import type { FastifyInstance } from 'fastify';
import type { BackendReply, BackendRequest, Transport } from './transport.ts';

/**
 * Transport to a backend in this process: the same requests, without a socket. `prefix` precedes the paths of its
 * endpoints.
 */
export function injectTransport(app: FastifyInstance, prefix: string): Transport {
  return {
    origin: 'this process',
    async send({ method, path, headers, body, signal }: BackendRequest): Promise<BackendReply> {
      signal.throwIfAborted();
      const reply = await app.inject({
        method,
        url: `${prefix}${path}`,
        headers,
        signal,
        ...(body === undefined ? {} : { payload: body }),
      });
      const replyHeaders = reply.headers as BackendReply['headers'];
      return { status: reply.statusCode, headers: replyHeaders, text: reply.body };
    },
    close: () => Promise.resolve(),
  };
}
