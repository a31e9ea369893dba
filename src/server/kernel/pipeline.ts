import { AppError } from '../../core/errors.ts';
import { replyToError } from './error-response.ts';
import { rejectRepeatedMembers } from './repeated-members.ts';
import type { ClientApi, Reply, RequestContext, Route, WeightedBackend } from './request-context.ts';
import { checkEncodedSlash } from './request-target.ts';
import type { Router } from './router.ts';
import { type RequestValidation, validateRequest } from './validate-request.ts';

/** The part of a compiled gateway that the request flow needs. */
interface GatewayRoutes {
  readonly router: Router<Route>;
  readonly routes: readonly Route[];
  readonly requestValidation: RequestValidation;
}

/**
 * The request flow. Each step may end it with a reply or an error. The response phase then runs for every entered policy
 * in reverse order, so an error response also gets CORS headers, for example. Never rejects.
 */
export async function handleRequest(ctx: RequestContext, gateway: GatewayRoutes): Promise<Reply> {
  const { routes, requestValidation } = gateway;
  let reply: Reply;
  try {
    const route = findRoute(ctx, gateway);
    ctx.observer?.routed(routes, route);
    if (route === undefined) throw new AppError('route_not_found');
    checkEncodedSlash(ctx.path, requestValidation.pathNormalization, route.api?.hasEncodedSlashes === true);
    ctx.route = route.name;
    setClientApi(ctx, route.api);
    reply = await (route.aroundPolicies.length === 0
      ? runRoute(route, ctx)
      : withAroundPolicies(route, ctx, () => runRoute(route, ctx)));
  } catch (error) {
    // Also without a route: if all routes of a port have the same API, its clients expect errors in the API's format.
    if (ctx.route === undefined) setClientApi(ctx, commonApi(routes));
    reply = replyToError(ctx.abortedWith ?? error, ctx);
  }
  // An aborted request has been answered already: this reply is discarded.
  if (ctx.abortedWith === undefined) runResponsePhase(ctx, reply);
  return reply;
}

/** Validates the request and returns its route, if there is one. @throws AppError for an invalid request */
export function findRoute(
  ctx: RequestContext,
  { router, requestValidation }: Omit<GatewayRoutes, 'routes'>,
): Route | undefined {
  const { path, query, host } = validateRequest(ctx.request, ctx.headers, requestValidation);
  ctx.path = path;
  ctx.query = query;
  ctx.host = host;
  return router(ctx);
}

function setClientApi(ctx: RequestContext, api: ClientApi | undefined): void {
  if (api === undefined) return;
  ctx.api = api;
  ctx.protocol = api.protocol;
}

/** The API of a port if all of its routes have the same one. */
function commonApi(routes: readonly Route[]): ClientApi | undefined {
  const api = routes[0]?.api;
  return routes.every((route) => route.api === api) ? api : undefined;
}

/** Response for an aborted request, after running the response phase of entered policies. */
export function endWithError(ctx: RequestContext, error: AppError): Reply {
  ctx.abortedWith = error;
  const reply = replyToError(error, ctx);
  runResponsePhase(ctx, reply);
  return reply;
}

function runResponsePhase(ctx: RequestContext, reply: Reply): void {
  ctx.reply = reply;
  const entered = ctx.entered.reverse();
  if (ctx.observer !== undefined) ctx.observer.responding(ctx, reply, entered);
  else for (const policy of entered) policy.response?.(ctx, reply);
}

async function runRoute(route: Route, ctx: RequestContext): Promise<Reply> {
  if (route.readsBody) await ctx.body.capture(route.maxBufferSize);
  if (route.decidesByBody) rejectRepeatedMembers(ctx.body);
  for (const policy of route.policies) {
    ctx.entered.push(policy);
    const verdict = policy.request?.(ctx);
    const reply = verdict instanceof Promise ? await verdict : verdict;
    // The request may have timed out, or the client disconnected, while the policy was waiting.
    if (ctx.isAbandoned) throw new AppError('request_timeout');
    ctx.observer?.policyDone(policy);
    if (reply === undefined) continue;
    ctx.reason ??= 'DirectResponse';
    return reply;
  }
  ctx.observer?.policiesPassed(route);
  const { backend, name } = pickBackend(route);
  ctx.backend = name;
  const reply = await backend.handle(ctx);
  ctx.reason ??= 'Upstream';
  return reply;
}

/** Runs `flow` inside the `around` functions of the route's policies. */
function withAroundPolicies(
  { aroundPolicies }: Route,
  ctx: RequestContext,
  flow: () => Promise<Reply>,
): Promise<Reply> {
  return aroundPolicies.reduceRight((next, policy) => () => policy.around?.(ctx, next) ?? next(), flow)();
}

function pickBackend(route: Route): WeightedBackend {
  const { backends } = route;
  if (backends.length === 1) return backends[0] as WeightedBackend;
  const total = backends.reduce((sum, { weight }) => sum + weight, 0);
  let point = Math.random() * total;
  for (const choice of backends) {
    point -= choice.weight;
    if (point < 0) return choice;
  }
  throw new AppError('no_backend');
}
