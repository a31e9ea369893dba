import type { z } from 'zod';
import { durationSchema, durationText, goDuration } from '../../core/duration.ts';
import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { mapping } from '../../core/schema/mapping.ts';
import { backendTimeouts } from '../kernel/backend.ts';
import { definePolicy } from '../kernel/policy.ts';

const schema = mapping('Limits how long requests may take.', {
  requestTimeout: durationSchema
    .optional()
    .describe(
      'Maximum time from the request to its response headers, including all policies and backend calls; then 504. Unlimited by default.',
    ),
  backendRequestTimeout: durationSchema
    .optional()
    .describe(
      `Maximum time of one backend call until its response headers; then 504, or an MCP error for calls of MCP servers over HTTP and of \`openapi\` targets. ${durationText(LIMITS.upstreamHeadersTimeout)} by default. No effect on stdio targets, whose responses have no headers.`,
    ),
  backendIdleTimeout: durationSchema
    .optional()
    .describe(
      `Maximum time without data in a backend's response body, or on a WebSocket to a plain HTTP service; then it is aborted. \`0s\`: unlimited. ${durationText(LIMITS.backendIdle)} for plain HTTP services by default (${durationText(LIMITS.tcpIdle)} for WebSockets), ${durationText(LIMITS.streamIdle)} for models. No limit for MCP servers.`,
    ),
});

/** Timeouts of a request. The first policy, so that they include all others. */
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
