import { z } from 'zod';
import { durationSchema } from '../../core/duration.ts';
import { mapping } from '../../core/schema/mapping.ts';
import { backendTimeouts } from '../kernel/backend.ts';
import { definePolicy, hasConnections } from '../kernel/policy.ts';
import { backendProtocol } from '../transport/backend-upstream.ts';

const schema = mapping('Calls of this backend.', {
  version: z
    .enum(['HTTP/1.1', 'HTTP/2', 'HTTP/2.0'])
    .nullish()
    .describe(
      'Version of HTTP. `HTTP/2`: negotiated with TLS, else without an upgrade (prior knowledge). Default: `HTTP/1.1`.',
    ),
  requestTimeout: durationSchema
    .nullish()
    .describe(
      'Maximum time of one call until its response headers; then 504. It replaces `backendRequestTimeout` of the route.',
    ),
});

/** HTTP settings of one backend. */
export const http = definePolicy({
  key: 'http',
  places: ['backend'],
  schema,
  trace: { kind: 'backend_http', stage: 'backend http', isBackendPolicy: true },
  checkRoute({ version }, { backends }, context) {
    if (version == null || backends.every(hasConnections)) return;
    context.at('version').report({
      code: 'AGW0104',
      message: '`version` has no effect on MCP servers',
      help: 'remove it: the version is negotiated',
      atKey: true,
    });
  },
  compile({ version, requestTimeout }) {
    const protocol = version == null || version === 'HTTP/1.1' ? undefined : { isHttp2: true };
    return {
      request(ctx) {
        if (protocol !== undefined) backendProtocol.set(ctx, protocol);
        if (requestTimeout != null)
          backendTimeouts.set(ctx, { ...backendTimeouts.get(ctx), request: requestTimeout });
        return undefined;
      },
    };
  },
});
