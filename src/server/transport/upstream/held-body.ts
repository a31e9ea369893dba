import { decoderOf } from '../../kernel/request/content-decoding.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { Slot } from '../../kernel/slot.ts';
import { UpstreamBody } from './upstream-body.ts';

/** A whole response body, decompressed, beside the body that it was read from. */
interface HeldBody {
  readonly source: Reply['body'];
  readonly bytes: Uint8Array;
}

const held = new Slot<HeldBody>();

/**
 * Waits for the body of a backend's response, so that expressions of the response phase can read it. `limit` in bytes
 * applies before and after decompression; a larger body, and one that cannot be decompressed, stays unread.
 *
 * @throws AppError if the backend ends the body early
 */
export async function holdBody(ctx: RequestContext, reply: Reply, limit: number): Promise<void> {
  const { body } = reply;
  if (!(body instanceof UpstreamBody)) return;
  const { bytes, isComplete } = await body.hold(limit);
  if (!isComplete) return;
  const coding = (reply.headers.get('content-encoding') ?? 'identity').trim().toLowerCase();
  const decode = decoderOf(coding);
  if (coding === 'identity' || bytes.length === 0) held.set(ctx, { source: body, bytes });
  else if (decode !== undefined) {
    const decoded = await decode(bytes, limit).catch(() => undefined);
    if (decoded !== undefined) held.set(ctx, { source: body, bytes: decoded });
  }
}

/** The body of a reply as expressions see it: undefined for a stream that was not held. */
export function bodyForExpressions(ctx: RequestContext, { body }: Reply): Uint8Array | string | undefined {
  if (typeof body === 'string' || body instanceof Uint8Array) return body;
  if (body === undefined) return '';
  const known = held.get(ctx);
  return known?.source === body ? known.bytes : undefined;
}

/** Replaces the body of a reply. The new one has no content coding. */
export function replaceBody(reply: Reply, bytes: Uint8Array): void {
  const { body } = reply;
  if (body instanceof UpstreamBody) body.replaced();
  else if (typeof body === 'object' && 'discard' in body) body.discard();
  reply.body = bytes;
  for (const name of ['content-length', 'content-encoding']) reply.headers.delete(name);
}
