import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { choice, mapping } from '../../core/schema/mapping.ts';
import { responseWaits } from '../kernel/backend.ts';
import { definePolicy, isService } from '../kernel/policy.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import { handshake } from '../kernel/request/upgrade.ts';
import { UpstreamBody } from '../transport/upstream/upstream-body.ts';

const sideSchema = z.strictObject({
  maxBytes: z
    .int()
    .min(1)
    .optional()
    .describe('Maximum size in bytes; by default, `frontendPolicies.http.maxBufferSize`.'),
  failureMode: choice(
    'What happens to a larger body: `failClosed` rejects the request with 413, or the response with 502; `failOpen` streams it.',
    ['failClosed', 'failOpen'],
    'failClosed',
  ),
});

const schema = mapping('Buffers whole bodies. By default, bodies are streamed.', {
  request: sideSchema.optional().describe('Buffer request bodies before the backend is called.'),
  response: sideSchema
    .optional()
    .describe('Buffer response bodies of plain HTTP services before they are sent to the client.'),
});

interface Side {
  readonly limit: number;
  readonly isClosed: boolean;
}

/** Waits for whole bodies before they are passed on. */
export const buffer = definePolicy({
  key: 'buffer',
  schema,
  trace: { kind: 'buffer', stage: 'buffer' },
  checkRoute({ response }, { name, backends }, context) {
    if (response === undefined || backends.some(isService)) return;
    context.at('response').report({
      code: 'AGW0303',
      atKey: true,
      message: `\`buffer.response\` has no effect: route \`${name}\` has no \`host\` backend`,
      label: 'only responses of plain HTTP services are buffered',
      help: 'remove it',
    });
  },
  compile({ request, response }, { settings }) {
    const side = ({ maxBytes, failureMode }: z.output<typeof sideSchema>): Side => ({
      limit: maxBytes ?? settings.maxBufferSize,
      isClosed: failureMode === 'failClosed',
    });
    const [inbound, outbound] = [request && side(request), response && side(response)];
    return {
      async request(ctx) {
        if (outbound !== undefined)
          responseWaits.ensure(ctx, () => []).push((reply) => bufferResponse(reply, outbound));
        if (inbound !== undefined) await bufferRequest(ctx, inbound);
        return undefined;
      },
    };
  },
});

async function bufferRequest(ctx: RequestContext, { limit, isClosed }: Side): Promise<void> {
  // What follows the handshake of a WebSocket is not a body.
  if (handshake.get(ctx) !== undefined) return;
  await ctx.body.capture(limit);
  const { captured } = ctx.body;
  if (!isClosed || (captured !== undefined && captured.length <= limit)) return;
  throw new AppError('body_too_large', {
    message: `request body is larger than ${limit} bytes`,
    headers: ['connection', 'close'],
  });
}

async function bufferResponse({ body }: Reply, { limit, isClosed }: Side): Promise<void> {
  if (!(body instanceof UpstreamBody)) return;
  const { isComplete } = await body.hold(limit);
  if (isComplete || !isClosed) return;
  body.discard();
  throw new AppError('upstream_invalid', { message: `response body is larger than ${limit} bytes` });
}
