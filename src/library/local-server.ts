import { type FastifyReply, fastify } from 'fastify';
import { LIMITS } from '../core/limits.ts';

/** A server of HTTP. */
export interface LocalServer {
  readonly origin: string;
  close(): Promise<void>;
}

/** Starts a server whose requests are answered by a function, on a free port of 127.0.0.1 by default. Rejects with Node's error. */
export async function listen(
  answer: (request: Request) => Promise<Response>,
  { host = '127.0.0.1', port = 0 }: { readonly host?: string; readonly port?: number } = {},
): Promise<LocalServer> {
  // What a gateway forwards is not too large for the stub behind it.
  const app = fastify({ forceCloseConnections: true, bodyLimit: LIMITS.llmRequestBytes });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.all('/*', async ({ method, url, headers, body }, reply) => {
    const copied = new Headers();
    for (const [name, value] of Object.entries(headers))
      if (typeof value === 'string' && !OF_CONNECTION.has(name)) copied.set(name, value);
    const request = new Request(new URL(url, 'http://127.0.0.1'), {
      method,
      headers: copied,
      signal: whileConnected(reply),
      ...(Buffer.isBuffer(body) && { body }),
    });
    return reply.send(await answer(request));
  });
  const origin = await app.listen({ host, port });
  return { origin, close: () => app.close() };
}

const OF_CONNECTION = new Set(['connection', 'content-length', 'expect', 'keep-alive', 'transfer-encoding']);

function whileConnected({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) gone.abort(new Error('the client has disconnected'));
  });
  return gone.signal;
}
