import { AppError } from '../../../core/errors.ts';
import { resolverFor } from '../../expressions/variable.ts';
import { definePolicy, readsMemberOf } from '../../kernel/policy.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { Slot } from '../../kernel/slot.ts';
import { explainUpstreamError } from '../../transport/upstream/upstream-error.ts';
import { askGrpc } from './grpc.ts';
import { askHttp } from './http.ts';
import { denial, type Outcome } from './outcome.ts';
import { compilePlan, extAuthzValues, type Plan, schema } from './plan.ts';

/** External authorization over HTTP or gRPC. */
export const extAuthz = definePolicy({
  key: 'extAuthz',
  conditional: true,
  places: ['gateway', 'route', 'backend'],
  restrictsClients: true,
  refusesBy: 'the answer of its service',
  requestExpressions: [
    'protocol.http.path',
    'protocol.http.addRequestHeaders',
    'protocol.http.body',
    'protocol.grpc.metadata',
    'cache.key',
    'cache.ttl',
  ],
  schema,
  trace: { kind: 'ext_auth', stage: 'ext authz' },
  dump: ({ host, protocol, ...rest }) => ({
    extAuthz: { host, ...rest, protocol },
  }),
  sets: {
    isReadBy: (expression) => readsMemberOf('extauthz', expression),
    missingFrom: (route) => ({
      code: 'AGW0309',
      message: `route \`${route}\` reads \`extauthz\`, but none of its policies sets it`,
      help: 'add the policy `extAuthz`; until then `extauthz` is null',
    }),
  },
  compile(config, context) {
    const plan = compilePlan(config, context);
    if (plan === undefined) return {};
    return {
      request: (ctx) => authorize(ctx, plan),
      response(ctx, reply) {
        for (const [name, value] of responseHeaders.get(ctx) ?? []) reply.headers.set(name, value);
      },
      close: () => plan.close(),
    };
  },
});

/** Headers that the service adds to the response for the client. */
const responseHeaders = new Slot<readonly (readonly [string, string])[]>();

/**
 * Asks the service, or its cached outcomes, about a request. Returns undefined if it is allowed, or the reply for the
 * client. Throws `ext_authz_failed` if it is denied with a fixed response, or the call fails and `failureMode` denies.
 */
async function authorize(ctx: RequestContext, plan: Plan): Promise<Reply | undefined> {
  const since = ctx.observer?.now ?? 0;
  const key = plan.cache?.keyOf(resolverFor(ctx));
  const known = key === undefined ? undefined : plan.cache?.find(key);
  if (known !== undefined) return settle(ctx, known, since, ' (cached)');
  let outcome: Outcome;
  try {
    outcome = await (plan.kind === 'grpc' ? askGrpc(ctx, plan) : askHttp(ctx, plan));
  } catch (error) {
    if (error instanceof AppError) throw error;
    return callFailed(ctx, plan, error);
  }
  try {
    return settle(ctx, outcome, since);
  } finally {
    // After the outcome was applied, whose values `ttl` may read.
    if (key !== undefined && outcome.isCacheable) plan.cache?.add(key, outcome, resolverFor(ctx));
  }
}

function settle(ctx: RequestContext, outcome: Outcome, since: number, how = ''): Reply | undefined {
  const { values, reason } = outcome;
  if (values !== undefined) {
    extAuthzValues.set(ctx, values);
    ctx.invalidateVariable('extauthz');
  }
  const result = outcome.apply(ctx);
  responseHeaders.set(ctx, outcome.responseHeaders);
  const note = { kind: 'extAuthz', reason: reason + how, since } as const;
  if (result === undefined) {
    ctx.observer?.policy({ ...note, action: 'apply', snapshot: values ?? {} });
    return undefined;
  }
  const isRedirect = !(result instanceof AppError) && result.status === 302;
  ctx.observer?.policy({ ...note, action: isRedirect ? 'respond' : 'deny' });
  if (result instanceof AppError) throw result;
  ctx.reason = 'ExtAuth';
  if (!isRedirect) ctx.error = 'external authorization failed';
  return result;
}

function callFailed(ctx: RequestContext, { config, address }: Plan, error: unknown): undefined {
  // The request was aborted: not a denial and not a failure of the service.
  if (ctx.isAbandoned)
    throw new AppError('ext_authz_failed', { detail: ctx.abandonReason ?? 'the client disconnected' });
  const problem =
    error instanceof Error && error.name === 'TimeoutError' ? 'timed out' : explainUpstreamError(error);
  if (config.failureMode === 'allow') {
    ctx.observer?.policy({
      kind: 'extAuthz',
      action: 'skip',
      reason: `the service could not be reached (${address}: ${problem}); failureMode allows the request`,
    });
    return undefined;
  }
  const status = typeof config.failureMode === 'object' ? config.failureMode.denyWithStatus : undefined;
  throw denial(ctx, `the authorization service could not be reached: ${address}: ${problem}`, status);
}
