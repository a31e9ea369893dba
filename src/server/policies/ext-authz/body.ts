import { z } from 'zod';
import { mapping } from '../../../core/schema/mapping.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { denial } from './outcome.ts';

export const bodySchema = z.lazy(() =>
  mapping('Sends the body of the request to the service.', {
    maxRequestBytes: z
      .int()
      .min(1)
      .max(16_777_216)
      .default(8192)
      .describe('Bytes of the body that are sent.'),
    allowPartialMessage: z
      .boolean()
      .default(false)
      .describe('Send the beginning of a larger body, instead of denying the request with 413.'),
    packAsBytes: z.boolean().default(false).describe('For gRPC: send `raw_body` instead of `body`.'),
  }),
);

/** The body for the service; undefined if none is sent. Throws `ext_authz_failed` with 413 for one that is too large. */
export async function requestBodyFor(
  ctx: RequestContext,
  options: z.output<typeof bodySchema> | undefined,
): Promise<{ readonly bytes: Buffer; readonly isPartial: boolean } | undefined> {
  if (options === undefined) return undefined;
  const { maxRequestBytes, allowPartialMessage } = options;
  await ctx.body.capture(maxRequestBytes);
  const { captured, prefix = Buffer.alloc(0) } = ctx.body;
  const isPartial = captured === undefined || captured.length > maxRequestBytes;
  if (isPartial && !allowPartialMessage)
    throw denial(ctx, `the body is larger than ${maxRequestBytes} bytes`, 413);
  return { bytes: prefix.subarray(0, maxRequestBytes), isPartial };
}
