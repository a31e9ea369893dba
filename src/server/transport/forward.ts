import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type ClientConnection, clientConnection } from '../kernel/request/client-connection.ts';
import { FieldNames, type HeaderList, withoutFields } from '../kernel/request/header-list.ts';
import { ownCookies } from '../kernel/request/own-cookies.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import type { Upstream } from './upstream/upstream.ts';

/**
 * Last header of a request that one worker forwards to another: the client's connection, and its certificate. Only read from
 * requests on the worker's own socket, where no client can send one.
 */
const CLIENT_HEADER = 'x-agctl-client';

const NOT_FORWARDED = new FieldNames(['expect', CLIENT_HEADER]);

/**
 * Lets another worker answer a request, with its own policies, metrics and access log. `upstream` is the socket of that
 * worker for the port of the request.
 *
 * @throws AppError if the worker cannot be reached or does not answer
 */
export async function forwardToWorker(ctx: RequestContext, upstream: Upstream): Promise<Reply> {
  const { address, port, local, scheme, tls } = ctx.client;
  const { localAddress = '', localPort = 0 } = local;
  const certificate = tls?.certificate?.raw.toString('base64') ?? '';
  const client = [address, port, localAddress, localPort, scheme, certificate, tls?.serverName ?? ''].join(
    ' ',
  );
  const own = ownCookies.get(ctx);
  const sent = withoutFields(ctx.headers.raw, NOT_FORWARDED);
  if (own !== undefined) sent.push('cookie', own.join('; '));
  sent.push(CLIENT_HEADER, client);
  const { status, headers, body } = await upstream.relay({
    method: ctx.method,
    path: ctx.request.url ?? '/',
    headers: sent,
    body: ctx.body.forUpstream(),
    client: ctx,
  });
  return { status, headers, body };
}

/** Removes the header of `forwardToWorker` and returns the client's connection from it. */
export function forwardedClient(headers: HeaderList, { socket }: IncomingMessage): ClientConnection {
  const [address = '', port, localAddress = '', localPort, scheme, certificate = '', serverName = ''] = (
    headers.get(CLIENT_HEADER) ?? ''
  ).split(' ');
  headers.delete(CLIENT_HEADER);
  const local = { localAddress, localPort: Number(localPort) };
  return clientConnection(address, Number(port), {
    connection: socket,
    local,
    scheme: scheme === 'https' ? 'https' : 'http',
    tls: {
      serverName: serverName || undefined,
      certificate: certificate === '' ? undefined : new X509Certificate(Buffer.from(certificate, 'base64')),
    },
  });
}
