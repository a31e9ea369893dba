import { recordedResponseBody } from '../expressions/request-variables.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import { UpstreamBody } from '../transport/upstream-body.ts';

/** Keeps up to `limit` bytes of a response body on its way to the client, for access-log expressions that read it. */
export function recordBody(ctx: RequestContext, { body }: Reply, limit: number): void {
  if (typeof body === 'string' || body instanceof Uint8Array) recordedResponseBody.set(ctx, () => body);
  if (!(body instanceof UpstreamBody)) return;
  const chunks: Buffer[] = [];
  let size = 0;
  body.observers.push({
    see(chunk) {
      if (size >= limit) return;
      chunks.push(chunk.subarray(0, limit - size));
      size += chunk.length;
    },
  });
  recordedResponseBody.set(ctx, () => Buffer.concat(chunks));
}
