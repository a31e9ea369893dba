import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { LruMap } from '../../core/lru-map.ts';
import { mapping } from '../../core/schema/mapping.ts';
import { defineBackend } from '../kernel/backend.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import { type BackendUpstream, backendUpstream } from '../transport/backend-upstream.ts';
import { forwardTo, requestSigner } from '../transport/host-backend.ts';
import { pickedEndpoints } from '../transport/picked-endpoints.ts';
import { isUnsent } from '../transport/upstream/upstream-error.ts';
import { LOOP_MARK, refuseLoop } from './loop.ts';

const schema = mapping(
  'One of the top-level `services`, whose endpoints the policy `inferenceRouting` picks.',
  {
    name: z
      .string()
      .regex(/^[^\s/]+\/[^\s/]+$/, { error: 'expected `namespace/hostname`' })
      .describe('Namespace and host name of the service: `namespace/hostname`.'),
    port: z.int().min(0).max(65_535).describe('One of its `ports`.'),
  },
);

const addressOf = ({ name, port }: z.output<typeof schema>): string => `${name}:${port}`;

/** A service of which a picker names an endpoint for each request. */
export const service = defineBackend({
  key: 'service',
  schema,
  api: 'http',
  countsTokens: false,
  connectsTo: (config) => ({ kind: 'service', address: addressOf(config), isPicked: true }),
  describe: (config) => `service ${addressOf(config)}`,
  view: (config) => ({ address: addressOf(config) }),
  dump: (config, { name }) => [{ backend: { service: { name, namespace: '', target: config } } }],
  probes: () => [],
  open(_, context) {
    const upstreams = new LruMap<string, BackendUpstream>(LIMITS.dynamicTargets);
    const upstreamFor = (endpoint: string): BackendUpstream => {
      const known = upstreams.get(endpoint);
      if (known !== undefined) return known;
      const upstream = backendUpstream(
        { origin: `http://${endpoint}` },
        { meter: context.settings.callMeter('Primary', 'Http'), log: context.log },
      );
      // Idle connections of one that is forgotten are closed after 4 s.
      upstreams.set(endpoint, upstream);
      return upstream;
    };
    const call = (ctx: RequestContext, endpoint: string): Promise<Reply> =>
      forwardTo(ctx, upstreamFor(endpoint).for(ctx), {
        maxBody: context.settings.maxBufferSize,
        sign: requestSigner.get(ctx),
        added: LOOP_MARK,
      });
    return {
      async handle(ctx) {
        refuseLoop(ctx);
        const picked = pickedEndpoints.get(ctx);
        for (;;) {
          const endpoint = picked?.remaining.shift();
          if (picked === undefined || endpoint === undefined) throw new AppError('no_endpoint');
          try {
            const reply = await call(ctx, endpoint);
            picked.served = endpoint;
            return reply;
          } catch (error) {
            const next = picked.remaining[0];
            if (next === undefined || ctx.isAbandoned || !isUnsent(error) || !isKept(ctx)) throw error;
            context.log.debug('proxy::httpproxy', 'an endpoint was not reached: the next one is tried', {
              endpoint,
              next,
            });
          }
        }
      },
      close: async () => {
        await Promise.all(upstreams.values().map((upstream) => upstream.close()));
      },
    };
  },
});

/** Whether the request can be sent again. */
const isKept = ({ body }: RequestContext): boolean => body.captured !== undefined || !body.isPresent;
