import { AppError } from '../../core/errors.ts';
import { backendCaller, responseWaits } from './backend.ts';
import { rejectRepeatedMembers } from './json/repeated-members.ts';
import { replyToError, runResponse } from './request/error-response.ts';
import type { ClientApi, Policy, Reply, RequestContext } from './request/request-context.ts';
import { checkEncodedSlash } from './request/request-target.ts';
import { operatorRequest } from './request/shared-slots.ts';
import { type RequestValidation, validateRequest } from './request/validate-request.ts';
import type { ListenerSelection } from './routing/listener-selection.ts';
import type { BodyUse, Listener, Route, WeightedBackend } from './routing/route.ts';
import { pickByWeight } from './routing/router.ts';

/** The part of a compiled gateway that the request flow needs. */
interface GatewayListeners {
  readonly listeners: readonly Listener[];
  /** The listener for the Host of a request. */
  readonly listenerOf: ListenerSelection;
  readonly requestValidation: RequestValidation;
}

/**
 * The request flow: policies of the listener, routing, policies of the route, the backend with its own policies. Each step
 * may end it with a reply or an error. The response phase then runs for every entered policy in reverse order, so an error
 * response also gets CORS headers, for example. Never rejects.
 */
export async function handleRequest(ctx: RequestContext, gateway: GatewayListeners): Promise<Reply> {
  let listener: Listener | undefined;
  let reply: Reply;
  try {
    listener = findListener(ctx, gateway);
    if (listener === undefined) throw new AppError('listener_not_found');
    ctx.listener = listener.name;
    ctx.observer?.listenerSelected(listener);
    reply =
      (listener.policies.length === 0 ? undefined : await runListener(listener, ctx)) ??
      (await runRoute(findRoute(ctx, listener, gateway.requestValidation), ctx));
  } catch (error) {
    // Also without a route: if all routes have the same API, clients expect errors in the API's format.
    if (ctx.route === undefined)
      setClientApi(ctx, commonApi(listener === undefined ? gateway.listeners : [listener]));
    reply = replyToError(ctx.abortedWith ?? error, ctx);
  }
  // An aborted request has been answered already: this reply is discarded.
  return ctx.abortedWith === undefined ? runResponsePhase(ctx, reply) : reply;
}

/** Validates the request and returns the listener for its host, if there is one. @throws AppError for an invalid request */
export function findListener(
  ctx: RequestContext,
  { listenerOf, requestValidation }: GatewayListeners,
): Listener | undefined {
  const { path, query, host } = validateRequest(ctx.request, ctx.headers, requestValidation);
  ctx.path = path;
  ctx.query = query;
  ctx.host = host;
  const listener = listenerOf(ctx);
  const { tlsListener } = ctx.client;
  // The other listener may ask clients for certificates, which this connection has not seen (RFC 9110 §15.5.20).
  if (tlsListener !== undefined && listener !== undefined && listener.name !== tlsListener)
    throw new AppError('misdirected');
  return listener;
}

async function runListener(listener: Listener, ctx: RequestContext): Promise<Reply | undefined> {
  await prepareBody(listener, ctx);
  return runPolicies(listener.policies, ctx);
}

/** @throws AppError `route_not_found`, or `bad_request` for a path that the API of the route does not have */
function findRoute(
  ctx: RequestContext,
  { routes, router }: Listener,
  { pathNormalization }: RequestValidation,
): Route {
  ctx.observer?.listenerPassed();
  const route = router(ctx);
  ctx.observer?.routed(routes, route);
  ctx.span?.routed(route);
  if (route === undefined) throw new AppError('route_not_found');
  checkEncodedSlash(ctx.path, pathNormalization, route.api?.hasEncodedSlashes === true);
  ctx.route = route.name;
  if (route.isForOperators === true) operatorRequest.set(ctx, true);
  setClientApi(ctx, route.api);
  return route;
}

function setClientApi(ctx: RequestContext, api: ClientApi | undefined): void {
  if (api === undefined) return;
  ctx.api = api;
  ctx.protocol = api.protocol;
}

/** The API of listeners if all of their routes have the same one. */
function commonApi(listeners: readonly Listener[]): ClientApi | undefined {
  const routes = listeners.flatMap((listener) => listener.routes);
  const api = routes[0]?.api;
  return routes.every((route) => route.api === api) ? api : undefined;
}

/** Response for an aborted request, after running the response phase of entered policies. */
export function endWithError(ctx: RequestContext, error: AppError): Reply {
  ctx.abortedWith = error;
  return runResponsePhase(ctx, replyToError(error, ctx));
}

/** Returns the reply to send, which is another one after a policy has thrown. */
function runResponsePhase(ctx: RequestContext, first: Reply): Reply {
  let reply = first;
  ctx.reply = reply;
  const entered = ctx.entered.reverse();
  if (ctx.observer !== undefined) return ctx.observer.responding(ctx, reply, entered);
  for (const policy of entered) reply = runResponse(policy, ctx, reply);
  return reply;
}

function runRoute(route: Route, ctx: RequestContext): Promise<Reply> {
  return route.aroundPolicies.length === 0
    ? runInside(route, ctx)
    : withAroundPolicies(route, ctx, () => runInside(route, ctx));
}

async function runInside(route: Route, ctx: RequestContext): Promise<Reply> {
  if (route.readsBody) await prepareBody(route, ctx);
  const early = route.policies.length === 0 ? undefined : await runPolicies(route.policies, ctx);
  if (early !== undefined) return early;
  ctx.observer?.policiesPassed();
  const caller = backendCaller.get(ctx);
  const reply = await (caller === undefined ? callBackend(route, ctx) : callRepeatedly(route, ctx, caller));
  ctx.reason ??= 'Upstream';
  const waits = responseWaits.get(ctx);
  if (waits !== undefined) for (const wait of waits) await wait(reply);
  return reply;
}

/** Picks a backend, runs its policies and calls it. Not `async`, because that costs 0.4 kB for each request. */
function callBackend(route: Route, ctx: RequestContext, called?: Set<WeightedBackend>): Promise<Reply> {
  const choice = pickBackend(route, called);
  called?.add(choice);
  ctx.backend = choice.name;
  ctx.observer?.backendSelected(route, choice);
  return choice.policies.length === 0 ? choice.backend.handle(ctx) : callAfterPolicies(choice, ctx);
}

async function callAfterPolicies(
  { policies, backend }: WeightedBackend,
  ctx: RequestContext,
): Promise<Reply> {
  return (await runPolicies(policies, ctx)) ?? backend.handle(ctx);
}

function callRepeatedly(
  route: Route,
  ctx: RequestContext,
  caller: (call: () => Promise<Reply>) => Promise<Reply>,
): Promise<Reply> {
  const called = new Set<WeightedBackend>();
  return caller(async () => callBackend(route, ctx, called));
}

/** Buffers the body for expressions that read it. */
async function prepareBody(
  { readsBody, decidesByBody, maxBufferSize }: BodyUse,
  { body }: RequestContext,
): Promise<void> {
  if (readsBody) await body.capture(maxBufferSize);
  if (decidesByBody) rejectRepeatedMembers(body);
}

/** Runs the request phase of policies. Returns the reply of the first that answers. */
async function runPolicies(policies: readonly Policy[], ctx: RequestContext): Promise<Reply | undefined> {
  for (const policy of policies) {
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
  return undefined;
}

/** Runs `flow` inside the `around` functions of the route's policies. */
function withAroundPolicies(
  { aroundPolicies }: Route,
  ctx: RequestContext,
  flow: () => Promise<Reply>,
): Promise<Reply> {
  return aroundPolicies.reduceRight((next, policy) => () => policy.around?.(ctx, next) ?? next(), flow)();
}

/** Picks a backend by weight; one of `avoided` only if there is no other. */
function pickBackend({ backends }: Route, avoided?: ReadonlySet<WeightedBackend>): WeightedBackend {
  const others = avoided === undefined ? [] : backends.filter((each) => !avoided.has(each));
  const choice = pickByWeight(others.length === 0 ? backends : others);
  if (choice === undefined) throw new AppError('no_backend');
  return choice;
}
