import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Reply } from '../kernel/request-context.ts';

/** Writes the reply to a response that has not started. */
export function writeReply(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: Reply,
): void {
  // An unread body would be parsed as the next request, or keep the client sending.
  if (!request.readableEnded && !request.complete) {
    headers.set('connection', 'close');
    request.resume();
  } else if (asksForUpgrade(request)) headers.set('connection', 'close');
  // RFC 9110 §8.6 and §15: responses with these statuses have no content, and 204 has no Content-Length either.
  if (status === 204 || status === 304) {
    if (status === 204) headers.delete('content-length');
    response.writeHead(status, headers.raw);
    discardReply({ status, headers, body });
    response.end();
    return;
  }
  if (typeof body === 'string') headers.set('content-length', String(Buffer.byteLength(body)));
  else if (body instanceof Uint8Array) headers.set('content-length', String(body.byteLength));
  else if (
    body === undefined &&
    status >= 200 &&
    status !== 204 &&
    status !== 304 &&
    !headers.has('content-length')
  ) {
    headers.set('content-length', '0');
  }
  response.writeHead(status, headers.raw);
  if (typeof body === 'object' && 'attach' in body) body.attach(response);
  else response.end(body);
}

/**
 * Whether the connection must be closed after this request: Node's parser stops after an upgrade request and drops the
 * rest of the same read, such as a pipelined request. Measured with Node.js 26: these requests are never answered.
 */
function asksForUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && /\bupgrade\b/i.test(headers.connection ?? '');
}

/** Discards a reply that is not sent. */
export function discardReply({ body }: Reply): void {
  if (typeof body === 'object' && 'discard' in body) body.discard();
}
