import { AppError } from '../../core/errors.ts';
import type { TracePlace } from '../../core/trace/event.ts';
import { tracePassed, traceResponse, traceRoute } from '../observe/trace/stages.ts';
import type { Backend } from './backend.ts';
import { replyToError } from './error-response.ts';
import { checkEncodedSlash } from './path.ts';
import type { Policy } from './policy.ts';
import { refuseRepeatedMembers } from './repeated-members.ts';
import type { Exchange, Reply } from './request-context.ts';
import type { Routable, Router } from './router.ts';
import { type AdmissionSettings, admitRequest } from './validate-request.ts';

/** A backend with its share of the requests. */
interface WeightedBackend {
  readonly weight: number;
  readonly backend: Backend;
  /** As the configuration dump refers to it, for metrics. */
  readonly name: string;
}

/** A route as requests see it: compiled once per configuration, never changed. */
export interface Route extends Routable {
  /** As printed in the access log, `default/<name>`. */
  readonly name: string;
  /** As the configuration dump names it: for traces. */
  readonly fullKey: string;
  /** Where it stands in the configuration, for traces. */
  readonly place: TracePlace;
  /** In the order of `policies/index.ts`. */
  readonly policies: readonly Policy[];
  /** Those of them that wrap the rest. */
  readonly wrappers: readonly Policy[];
  /** Whether an expression reads the request body, which is only then kept in memory. */
  readonly readsBody: boolean;
  /** Whether a policy or backend decides by the body, and not the log alone: then JSON must be unambiguous. */
  readonly decidesByBody: boolean;
  readonly maxBufferSize: number;
  /** Clients of this route read errors in the form of the OpenAI API. */
  readonly isLlm: boolean;
  /** Backends with their weights; empty weights are left out. */
  readonly backends: readonly WeightedBackend[];
}

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
export async function handleRequest(x: Exchange, { router, routes, admission }: Served): Promise<Reply> {
  let reply: Reply;
  try {
    const { path, query, host } = admitRequest(x.request, x.headers, admission);
    x.path = path;
    x.query = query;
    x.host = host;
    const route = router(x);
    if (x.trace !== undefined) traceRoute(x.trace, x, routes, route);
    if (route === undefined) throw new AppError('route_not_found');
    checkEncodedSlash(path, admission.pathNormalization, route.isLlm);
    x.route = route.name;
    if (route.isLlm) x.protocol = 'llm';
    reply = await wrapped(route, x, () => answer(route, x));
  } catch (error) {
    // Without a route, too: whoever asks a port that only serves models reads errors in that form.
    if (x.route === undefined && isLlmPort(routes)) x.protocol = 'llm';
    reply = replyToError(x.cut ?? error, x);
  }
  // One that was cut short has its answer: this one is dropped.
  if (x.cut === undefined) leave(x, reply);
  return reply;
}

const isLlmPort = (routes: readonly Route[]): boolean =>
  routes.length > 0 && routes.every(({ isLlm }) => isLlm);

/** The answer to a request that is not waited for any longer, with the policies that it has come by. */
export function cutShort(x: Exchange, error: AppError): Reply {
  x.cut = error;
  const reply = replyToError(error, x);
  leave(x, reply);
  return reply;
}

function leave(x: Exchange, reply: Reply): void {
  x.reply = reply;
  const entered = x.entered.reverse();
  if (x.trace !== undefined) traceResponse(x.trace, x, reply, entered);
  else for (const policy of entered) policy.response?.(x, reply);
}

async function answer(route: Route, x: Exchange): Promise<Reply> {
  if (route.readsBody) await x.body.capture(route.maxBufferSize);
  if (route.decidesByBody) refuseRepeatedMembers(x.body);
  for (const policy of route.policies) {
    x.entered.push(policy);
    const verdict = policy.request?.(x);
    const reply = verdict instanceof Promise ? await verdict : verdict;
    // The time may have run out, or the client left, while the policy asked somebody.
    if (x.isAbandoned) throw new AppError('request_timeout');
    x.trace?.policyDone(policy.key);
    if (reply === undefined) continue;
    x.reason ??= 'DirectResponse';
    return reply;
  }
  if (x.trace !== undefined) tracePassed(x.trace, route);
  const { backend, name } = pickBackend(route);
  x.backend = name;
  const reply = await backend.handle(x);
  x.reason ??= 'Upstream';
  return reply;
}

function wrapped({ wrappers }: Route, x: Exchange, flow: () => Promise<Reply>): Promise<Reply> {
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
