import { AppError, messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { LruMap } from '../../core/lru-map.ts';
import { mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import { defineBackend } from '../kernel/backend.ts';
import type { TracedExpression } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { type BackendUpstream, backendUpstream } from '../transport/backend-upstream.ts';
import { forwardTo, requestSigner } from '../transport/host-backend.ts';
import { LOOP_MARK, refuseLoop } from './loop.ts';

/** Settings of the backend that are expressions of the request phase. */
export const dynamicRequestExpressions = ['backends[].dynamic.target'] as const;

const TARGET = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/;

/** The server that each request names, or an expression computes from it. */
export const dynamic = defineBackend({
  key: 'dynamic',
  schema: mapping(
    'The server that a request names in `Host`; port 80 by default, or 443 if the request came over TLS. Clients can reach every host that the gateway reaches: restrict them with `hostnames` or `authorization`.',
    {
      target: nonEmpty
        .nullish()
        .describe(
          'CEL expression for the server, as `host:port`, instead of the one that the request names.',
        ),
    },
  ),
  api: 'http',
  countsTokens: false,
  exposes: ({ target }) => (target == null ? 'make it call any host' : undefined),
  connectsTo: () => ({ kind: 'service', address: 'dynamic' }),
  describe: ({ target }) => `dynamic ${target ?? 'request.host'}`,
  view: ({ target }) => ({ address: target ?? 'request.host' }),
  dump: ({ target }, { name }) => [{ backend: { dynamic: { name, namespace: '', target: target ?? null } } }],
  probes: () => [],
  open({ target }, context) {
    const expression = target == null ? undefined : context.at('target').cel(target, requestScope);
    const upstreams = new LruMap<string, BackendUpstream>(LIMITS.dynamicTargets);
    const upstreamFor = (authority: string): BackendUpstream => {
      const known = upstreams.get(authority);
      if (known !== undefined) return known;
      const upstream = backendUpstream(
        { origin: `http://${authority}` },
        { meter: context.settings.callMeter('Primary', 'Http'), log: context.log },
      );
      // Idle connections of one that is forgotten are closed after 4 s.
      upstreams.set(authority, upstream);
      return upstream;
    };
    return {
      async handle(ctx) {
        refuseLoop(ctx);
        const upstream = upstreamFor(authorityOf(ctx, expression));
        return forwardTo(ctx, upstream.for(ctx), {
          maxBody: context.settings.maxBufferSize,
          sign: requestSigner.get(ctx),
          added: LOOP_MARK,
        });
      },
      close: async () => {
        await Promise.all(upstreams.values().map((upstream) => upstream.close()));
      },
    };
  },
});

/** Host and port of the server. Throws an `AppError` (500) if there is none. */
function authorityOf(ctx: RequestContext, expression: TracedExpression | undefined): string {
  const named = expression === undefined ? ctx.host : computed(expression, ctx);
  const [, port] = TARGET.exec(named) ?? [];
  const usual = expression !== undefined ? undefined : ctx.client.scheme === 'https' ? '443' : '80';
  const authority = `${port === undefined ? `${named}:${usual}` : named}`;
  const isValid = TARGET.test(named) && (port ?? usual) !== undefined && URL.canParse(`http://${authority}`);
  if (isValid) return authority;
  throw new AppError('no_backend', {
    detail: 'the request names no server, as `host:port`, that it could be sent to',
  });
}

function computed(expression: TracedExpression, ctx: RequestContext): string {
  try {
    const value = expression.evaluate(resolverFor(ctx));
    if (typeof value === 'string') return value;
    throw new TypeError('expected `host:port` as a string');
  } catch (error) {
    throw new AppError('no_backend', { detail: `target: ${messageOf(error)}`, cause: error });
  }
}
