import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { goDuration } from '../../core/go-duration.ts';
import { LIMITS } from '../../core/limits.ts';
import { durationSchema, durationText } from '../../core/schema/duration.ts';
import { backendTimeouts } from '../kernel/backend.ts';
import { definePolicy } from '../kernel/policy.ts';

const schema = z
  .strictObject({
    requestTimeout: durationSchema
      .optional()
      .describe(
        'Time for a request until its response headers, with everything that happens in between; then 504. Without it there is no such limit.',
      ),
    backendRequestTimeout: durationSchema
      .optional()
      .describe(
        `Time for one call to a backend until its response headers; then 504. ${durationText(LIMITS.upstreamHeadersTimeout)} by default.`,
      ),
    backendIdleTimeout: durationSchema
      .optional()
      .describe(
        `How long the response body of a backend may be silent; then the response is cut. \`0s\` for no limit. ${durationText(LIMITS.backendIdle)} for plain HTTP services by default, ${durationText(LIMITS.streamIdle)} for models. MCP servers may be silent.`,
      ),
  })
  .describe('Bounds how long a request may take.');

/** Time limits of a request. First of all, so that no other policy can outlast it. */
export const timeout = definePolicy({
  key: 'timeout',
  schema,
  dump: (settings) => ({ timeout: withDurations(settings) }),
  compile({ requestTimeout, backendRequestTimeout, backendIdleTimeout }) {
    const timeouts = { request: backendRequestTimeout, idle: backendIdleTimeout };
    return {
      request(ctx) {
        backendTimeouts.set(ctx, timeouts);
        return undefined;
      },
      ...(requestTimeout === undefined
        ? {}
        : {
            around: (ctx, next) =>
              new Promise((resolve, reject) => {
                const timer = setTimeout(() => {
                  const reason = `no response within ${requestTimeout} ms`;
                  ctx.observer?.policy({ kind: 'timeout', action: 'end', reason });
                  ctx.abandon(`the request was ended by its timeout: ${reason}`);
                  reject(new AppError('request_timeout'));
                }, requestTimeout);
                next()
                  .then(resolve, reject)
                  .finally(() => clearTimeout(timer));
              }),
          }),
    };
  },
});

function withDurations(settings: z.output<typeof schema>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(settings).map(([key, value]) => [
      key,
      typeof value === 'number' ? goDuration(value) : value,
    ]),
  );
}
