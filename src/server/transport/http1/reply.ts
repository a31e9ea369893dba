import type { Reply } from '../../kernel/request/request-context.ts';

/**
 * Sets `content-length` where the length is known. Returns false if a response with this status has no content (RFC 9110
 * §8.6 and §15: 204, which has no Content-Length either, and 304).
 */
export function setContentLength({ status, headers, body }: Reply): boolean {
  if (status === 204) headers.delete('content-length');
  if (status === 204 || status === 304) return false;
  if (typeof body === 'string') headers.set('content-length', String(Buffer.byteLength(body)));
  else if (body instanceof Uint8Array) headers.set('content-length', String(body.byteLength));
  else if (typeof body === 'object' && 'attach' in body && body.size !== undefined)
    headers.set('content-length', String(body.size));
  else if (body === undefined && status >= 200 && !headers.has('content-length'))
    headers.set('content-length', '0');
  return true;
}
