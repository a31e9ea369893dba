import { AppError } from '../../core/errors.ts';
import { replyToError } from './error-response.ts';
import { checkEncodedSlash } from './path.ts';
import { refuseRepeatedMembers } from './repeated-members.ts';
import type { ClientApi, Reply, RequestContext, Route, WeightedBackend } from './request-context.ts';
import type { Router } from './router.ts';
import { type RequestValidation, validateRequest } from './validate-request.ts';

/** What a port serves with, as far as the request flow is concerned. */
interface Served {
  readonly router: Router<Route>;
  readonly routes: readonly Route[];
  readonly admission: RequestValidation;
}

/**
 * THE request flow. Each step may stop it with a reply or an error; what was entered is left again in reverse
 * order, so that a refusal also carries, say, its CORS headers.
 */
export async function handleRequest(
  ctx: RequestContext,
  { router, routes, admission }: Served,
): Promise<Reply> {
  let reply: Reply;
  try {
    const { path, query, host } = validateRequest(ctx.request, ctx.headers, admission);
    ctx.path = path;
    ctx.query = query;
    ctx.host = host;
    const route = router(ctx);
    ctx.observer?.routed(routes, route);
    if (route === undefined) throw new AppError('route_not_found');
    checkEncodedSlash(path, admission.pathNormalization, route.api?.hasEncodedSlashes === true);
    ctx.route = route.name;
    speak(ctx, route.api);
    reply = await wrapped(route, ctx, () => answer(route, ctx));
  } catch (error) {
    // Without a route, too: clients of a port with a single API read errors in its form.
    if (ctx.route === undefined) speak(ctx, commonApi(routes));
    reply = replyToError(ctx.cut ?? error, ctx);
  }
  // One that was cut short has its answer: this one is dropped.
  if (ctx.cut === undefined) leave(ctx, reply);
  return reply;
}

function speak(ctx: RequestContext, api: ClientApi | undefined): void {
  if (api === undefined) return;
  ctx.api = api;
  ctx.protocol = api.protocol;
}

/** The API of a port whose routes all speak the same one. */
function commonApi(routes: readonly Route[]): ClientApi | undefined {
  const api = routes[0]?.api;
  return routes.every((route) => route.api === api) ? api : undefined;
}

/** The answer to a request that is not waited for any longer, with the policies that it has come by. */
export function endWithError(ctx: RequestContext, error: AppError): Reply {
  ctx.cut = error;
  const reply = replyToError(error, ctx);
  leave(ctx, reply);
  return reply;
}

function leave(ctx: RequestContext, reply: Reply): void {
  ctx.reply = reply;
  const entered = ctx.entered.reverse();
  if (ctx.observer !== undefined) ctx.observer.responding(ctx, reply, entered);
  else for (const policy of entered) policy.response?.(ctx, reply);
}

async function answer(route: Route, ctx: RequestContext): Promise<Reply> {
  if (route.readsBody) await ctx.body.capture(route.maxBufferSize);
  if (route.decidesByBody) refuseRepeatedMembers(ctx.body);
  for (const policy of route.policies) {
    ctx.entered.push(policy);
    const verdict = policy.request?.(ctx);
    const reply = verdict instanceof Promise ? await verdict : verdict;
    // The time may have run out, or the client left, while the policy asked somebody.
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

function wrapped({ wrappers }: Route, ctx: RequestContext, flow: () => Promise<Reply>): Promise<Reply> {
  return wrappers.reduceRight((next, policy) => () => policy.around?.(ctx, next) ?? next(), flow)();
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
