import { z } from 'zod';
import { durationSchema } from '../../core/duration.ts';
import { mapping } from '../../core/schema/mapping.ts';
import { definePolicy, hasConnections } from '../kernel/policy.ts';
import { backendConnections } from '../transport/backend-upstream.ts';

const seconds = durationSchema.refine((value) => value >= 1000, { error: 'expected at least one second' });

const schema = z.lazy(() =>
  mapping('Connections to this backend.', {
    connectTimeout: durationSchema
      .refine((value) => value > 0, { error: 'expected a time above zero' })
      .optional()
      .describe('Maximum time to open a connection; then 504. Default: 10 s.'),
    keepalives: mapping('Keepalive probes of TCP.', {
      enabled: z.boolean().default(true).describe('Whether idle connections are probed.'),
      time: seconds.prefault('180s').describe('Idle time before the first probe.'),
    })
      .optional()
      .meta({
        elsewhere: {
          interval: 'remove it: the time between probes is that of the operating system',
          retries: 'remove it: the number of probes is that of the operating system',
        },
      }),
  }),
);

/** TCP settings of one backend. */
export const tcp = definePolicy({
  key: 'tcp',
  places: ['backend'],
  schema,
  trace: { kind: 'backend_tcp', stage: 'backend tcp', isBackendPolicy: true },
  checkRoute(_config, { backends }, context) {
    if (backends.every(hasConnections)) return;
    context.report({
      code: 'AGW0104',
      message: '`tcp` has no effect on MCP servers',
      help: 'remove it: connections to them have fixed settings',
      atKey: true,
    });
  },
  compile({ connectTimeout, keepalives }) {
    const keepAlive = keepalives?.enabled === false ? (false as const) : keepalives?.time;
    const connections = {
      ...(connectTimeout !== undefined && { connectTimeout }),
      ...(keepAlive !== undefined && { keepAlive }),
    };
    return {
      request(ctx) {
        backendConnections.set(ctx, connections);
        return undefined;
      },
    };
  },
});
