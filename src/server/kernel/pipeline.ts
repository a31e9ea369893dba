import { AppError } from '../../core/errors.ts';
import { replyToError } from './error-response.ts';
import { checkEncodedSlash } from './path.ts';
import { refuseRepeatedMembers } from './repeated-members.ts';
import type { ClientApi, Reply, RequestContext, Route, WeightedBackend } from './request-context.ts';
import type { Router } from './router.ts';
import { type AdmissionSettings, admitRequest } from './validate-request.ts';

/** What a port serves with, as far as the request flow is concerned. */
interface Served {
  readonly router: Router<Route>;
  readonly routes: readonly Route[];
  readonly admission: AdmissionSettings;
}

/**
 * THE request flow. Each step may stop it with a reply or an error; what was entered is left again in reverse
 * order, so that a refusal also carries, say, its CORS headers.
 */
export async function handleRequest(
  x: RequestContext,
  { router, routes, admission }: Served,
): Promise<Reply> {
  let reply: Reply;
  try {
    const { path, query, host } = admitRequest(x.request, x.headers, admission);
    x.path = path;
    x.query = query;
    x.host = host;
    const route = router(x);
    x.observer?.routed(routes, route);
    if (route === undefined) throw new AppError('route_not_found');
    checkEncodedSlash(path, admission.pathNormalization, route.api?.hasEncodedSlashes === true);
    x.route = route.name;
    speak(x, route.api);
    reply = await wrapped(route, x, () => answer(route, x));
  } catch (error) {
    // Without a route, too: clients of a port with a single API read errors in its form.
    if (x.route === undefined) speak(x, commonApi(routes));
    reply = replyToError(x.cut ?? error, x);
  }
  // One that was cut short has its answer: this one is dropped.
  if (x.cut === undefined) leave(x, reply);
  return reply;
}

function speak(x: RequestContext, api: ClientApi | undefined): void {
  if (api === undefined) return;
  x.api = api;
  x.protocol = api.protocol;
}

/** The API of a port whose routes all speak the same one. */
function commonApi(routes: readonly Route[]): ClientApi | undefined {
  const api = routes[0]?.api;
  return routes.every((route) => route.api === api) ? api : undefined;
}

/** The answer to a request that is not waited for any longer, with the policies that it has come by. */
export function cutShort(x: RequestContext, error: AppError): Reply {
  x.cut = error;
  const reply = replyToError(error, x);
  leave(x, reply);
  return reply;
}

function leave(x: RequestContext, reply: Reply): void {
  x.reply = reply;
  const entered = x.entered.reverse();
  if (x.observer !== undefined) x.observer.responding(x, reply, entered);
  else for (const policy of entered) policy.response?.(x, reply);
}

async function answer(route: Route, x: RequestContext): Promise<Reply> {
  if (route.readsBody) await x.body.capture(route.maxBufferSize);
  if (route.decidesByBody) refuseRepeatedMembers(x.body);
  for (const policy of route.policies) {
    x.entered.push(policy);
    const verdict = policy.request?.(x);
    const reply = verdict instanceof Promise ? await verdict : verdict;
    // The time may have run out, or the client left, while the policy asked somebody.
    if (x.isAbandoned) throw new AppError('request_timeout');
    x.observer?.policyDone(policy);
    if (reply === undefined) continue;
    x.reason ??= 'DirectResponse';
    return reply;
  }
  x.observer?.policiesPassed(route);
  const { backend, name } = pickBackend(route);
  x.backend = name;
  const reply = await backend.handle(x);
  x.reason ??= 'Upstream';
  return reply;
}

function wrapped({ wrappers }: Route, x: RequestContext, flow: () => Promise<Reply>): Promise<Reply> {
  return wrappers.reduceRight((next, policy) => () => policy.around?.(x, next) ?? next(), flow)();
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
