import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { backendTimeouts } from '../kernel/backend.ts';
import { HeaderList, withoutFields } from '../kernel/header-list.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import type { UpstreamResponse } from '../transport/upstream-request.ts';
import type { LlmCall } from './call.ts';
import type { CallBody } from './call-body.ts';
import { dropCredentials, withoutCredentials } from './client-credentials.ts';
import { decodedAnswer } from './decode-answer.ts';
import type { EndpointStats, Outcome } from './endpoint-stats.ts';
import { pathAtProvider } from './endpoints.ts';
import { llmError } from './errors.ts';
import type { Model } from './model.ts';
import { traceEviction } from './trace-events.ts';

const NOT_FORWARDED = new Set([
  'host',
  'content-length',
  'content-encoding',
  'expect',
  'accept-encoding',
  'cookie',
]);

const NOT_RETURNED = new Set([
  // The client's cookies do not go to the provider, so the provider's would never come back.
  'set-cookie',
  // Addresses of the provider: a client that followed them would take its key there.
  'location',
  'refresh',
  // About the origin that was asked, which is the provider's to us and ours to the client.
  'alt-svc',
  'strict-transport-security',
  'clear-site-data',
]);

/** Calls the provider and notes how that went: for the model, and for the target of a virtual one. */
export async function callProvider(
  ctx: RequestContext,
  model: Model,
  { call, body, stats }: { readonly call: LlmCall; readonly body: CallBody; readonly stats: EndpointStats },
): Promise<Reply> {
  const told = stats === model.stats ? [stats] : [stats, model.stats];
  const began = told.map((each) => each.began());
  let outcome: Outcome = { status: 0, isFailure: true };
  try {
    const reply = await askProvider(ctx, model, call, body);
    outcome = model.health.judge(ctx, reply);
    return reply;
  } finally {
    const isOver = ctx.response.destroyed || ctx.abortedWith !== undefined;
    const hasLeft = outcome.status === 0 && ctx.isAbandoned && isOver;
    for (const [index, each] of told.entries()) {
      if (hasLeft) each.left();
      else each.ended(began[index] as number, outcome);
    }
    if (ctx.observer !== undefined && outcome.isFailure) traceEviction(ctx.observer, call, stats);
  }
}

async function askProvider(ctx: RequestContext, model: Model, call: LlmCall, body: CallBody): Promise<Reply> {
  if (model.provider.answer !== undefined) {
    const answer = model.provider.answer(ctx, call, JSON.parse(body.toString()) as Record<string, unknown>);
    return ctx.observer === undefined
      ? answer
      : ctx.observer.call(model.provider.key, Promise.resolve(answer));
  }
  if (model.upstream === undefined) throw new AppError('no_backend');
  ctx.endpoint = model.upstream.address;
  const { apiKey } = model;
  const headers = new HeaderList(withoutFields(ctx.headers.raw, NOT_FORWARDED));
  if (apiKey !== undefined) dropCredentials(headers, ctx.request);
  headers.append('host', model.upstream.authority);
  // Answers are counted, guarded and freed of an echoed key here: compression would only cost both sides.
  headers.append('accept-encoding', 'identity');
  if (body.contentType !== undefined) headers.set('content-type', body.contentType);
  if (apiKey !== undefined) headers.append('authorization', `Bearer ${apiKey}`);
  model.changeRequestHeaders?.(headers);
  call.progress = 'asked';
  const query = apiKey === undefined ? ctx.query : withoutCredentials(ctx.query);
  const path = pathAtProvider(model.basePath, ctx.path) + query;
  const bytes = body.encode();
  const timeouts = backendTimeouts.get(ctx);
  ctx.observer?.hide(model.apiKey, true);
  ctx.observer?.sending({ headers: headers.raw, path, authority: model.upstream.authority, body: bytes });
  const sent = model.upstream.relay({
    method: ctx.method,
    path,
    headers: headers.raw,
    body: bytes,
    client: ctx,
    // Streams have a clock of their own, which ends them with an event; who asked for one may get something else.
    bodyIdle: (timeouts?.idle ?? LIMITS.streamIdle) * (body.get('stream') === true ? 2 : 1),
    ...(timeouts?.request === undefined ? {} : { timeout: timeouts.request }),
  });
  const {
    status,
    headers: received,
    body: answer,
  } = await (ctx.observer === undefined ? sent : ctx.observer.call(model.upstream.address, sent));
  refuseRedirect(ctx, status, received, answer);
  ctx.reason = 'Upstream';
  const reply = { status, headers: new HeaderList(withoutFields(received.raw, NOT_RETURNED)) };
  return { ...reply, body: await decodedAnswer(ctx, reply.headers, answer) };
}

/**
 * A redirect is not followed, since the body and the key would go elsewhere, and not handed on, since the client would
 * go there with its own key. The log says where it leads: to correct `baseUrl`.
 */
function refuseRedirect(
  { endpoint }: RequestContext,
  status: number,
  headers: HeaderList,
  body: UpstreamResponse['body'],
): void {
  if (status < 300 || status > 399 || status === 304) return;
  body.discard();
  const location = headers.get('location') ?? '';
  // The rest may hold a secret.
  const origin = URL.canParse(location) ? ` to ${new URL(location).origin}` : '';
  throw llmError(
    'upstream_invalid',
    'upstream_failed',
    'upstream call failed: the provider answered with a redirect',
    `${endpoint}: the provider answered ${status}, a redirect${origin}: \`baseUrl\` is to name the address itself`,
  );
}
