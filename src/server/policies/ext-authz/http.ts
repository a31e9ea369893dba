import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { bodyOf } from '../../expressions/body-value.ts';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import { ResponseView } from '../../expressions/request-variables.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import { HeaderList, isHeaderValue, removeHopByHop } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { canonicalAuthority } from '../../kernel/request/request-target.ts';
import { requestBodyFor } from './body.ts';
import { denial, type Outcome } from './outcome.ts';
import { type HttpPlan, isCallPath } from './plan.ts';

/** Response of the service. `body` has at most `LIMITS.authorizationBody` bytes. */
interface Answer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Buffer;
}

/** Calls the service over HTTP. Rejects with an error of the call if the service cannot be reached. */
export async function askHttp(ctx: RequestContext, plan: HttpPlan): Promise<Outcome> {
  const path = requestPath(ctx, plan);
  const authority = requestAuthority(ctx, plan);
  const answer = await call(ctx, plan, { path, authority });
  const { status, headers } = answer;
  const lookup = resolverFor(ctx, { response: new ResponseView(status, headers.raw, () => answer.body) });
  if (status < 200 || status > 299) return refusal(ctx, plan, answer, lookup);
  const values = Object.fromEntries(
    plan.metadata.flatMap(([name, value]) => {
      const result = tryEvaluate(value, lookup);
      return result === undefined ? [] : [[name, result]];
    }),
  );
  const copied = plan.http.includeResponseHeaders.map((name) => [name, headers.all(name)] as const);
  return {
    reason: `the service allowed it (${status})`,
    isCacheable: true,
    values,
    apply(request) {
      for (const [name, received] of copied) {
        request.headers.delete(name);
        for (const value of received) request.headers.append(name, value);
      }
      return undefined;
    },
  };
}

/** Path of the call. Throws for values that are not valid in a request line, which would change the request. */
function requestPath(ctx: RequestContext, plan: HttpPlan): string {
  if (plan.path === undefined) return ctx.path + ctx.query;
  const path = tryEvaluate(plan.path, resolverFor(ctx));
  if (isCallPath(path)) return path;
  throw denial(ctx, 'extAuthz.protocol.http.path did not evaluate to a path');
}

/** Host of the call. Throws for anything but a host with an optional port, which servers could interpret differently. */
function requestAuthority(
  ctx: RequestContext,
  { upstream, headers, includeRequestHeaders }: HttpPlan,
): string {
  const expression = headers.find(([name]) => name === ':authority')?.[1];
  const value =
    expression === undefined ? undefined : (tryEvaluate(expression, resolverFor(ctx)) ?? undefined);
  if (value !== undefined) {
    const authority = typeof value === 'string' ? canonicalAuthority(value) : undefined;
    if (authority !== undefined) return authority;
    throw denial(ctx, 'extAuthz.protocol.http.addRequestHeaders: `:authority` did not evaluate to a host');
  }
  const usesClientHost = includeRequestHeaders.some((name) => /^(?:host|:authority)$/i.test(name));
  return (usesClientHost && ctx.host) || upstream.authority;
}

/** Method of the call. Throws for anything but the name of a method. */
function requestMethod(ctx: RequestContext, { headers }: HttpPlan): string {
  const expression = headers.find(([name]) => name === ':method')?.[1];
  if (expression === undefined) return ctx.method;
  const value = tryEvaluate(expression, resolverFor(ctx));
  // CONNECT would open a tunnel (RFC 9110 §9.3.6).
  if (typeof value === 'string' && /^[A-Z]{1,20}$/.test(value) && value !== 'CONNECT') return value;
  throw denial(ctx, 'extAuthz.protocol.http.addRequestHeaders: `:method` did not evaluate to a method');
}

const SET_BY_GATEWAY = new Set(['host', 'content-length']);

interface Target {
  readonly path: string;
  readonly authority: string;
}

async function call(ctx: RequestContext, plan: HttpPlan, { path, authority }: Target): Promise<Answer> {
  const { upstream, timeout, headers: added, includeRequestHeaders, body, config } = plan;
  const headers: string[] = [];
  for (const name of includeRequestHeaders) {
    // The gateway sets these for the call: a second value would make it ambiguous.
    if (SET_BY_GATEWAY.has(name.toLowerCase())) continue;
    for (const value of ctx.headers.all(name)) headers.push(name, value);
  }
  const lookup = resolverFor(ctx);
  const method = requestMethod(ctx, plan);
  for (const [name, expression] of added) {
    if (name.startsWith(':')) continue;
    const value = tryEvaluate(expression, lookup);
    if (typeof value === 'string' && isHeaderValue(value)) headers.push(name, value);
  }
  const sentBody = body === undefined ? await requestBodyFor(ctx, config.includeRequestBody) : undefined;
  if (sentBody !== undefined) headers.push('x-envoy-auth-partial-body', String(sentBody.isPartial));
  const computed = body === undefined ? undefined : bodyOf(body, lookup);
  if (body !== undefined && computed === undefined)
    throw denial(ctx, 'extAuthz.protocol.http.body could not be evaluated');
  const request = {
    method,
    body: computed ?? sentBody?.bytes ?? null,
    path,
    headers: ['host', authority, ...headers],
    isReplaySafe: true,
    span: ctx.span,
  };
  const signal = AbortSignal.any([AbortSignal.timeout(timeout), ctx.signal]);
  const sent = upstream.request({ ...request, signal });
  const response = await (ctx.observer === undefined
    ? sent
    : ctx.observer.call(upstream.address, sent, 'ext_authz'));
  const received = await readUpTo(response.body, LIMITS.authorizationBody);
  // Statuses have no meaning beyond, and HTTP/2 cannot send them (RFC 9110 §15).
  if (response.statusCode > 599) throw new Error(`the service answered with status ${response.statusCode}`);
  const raw = Object.entries(response.headers).flatMap(([name, value]) =>
    [value].flat().flatMap((one) => (one === undefined ? [] : [name, one])),
  );
  const fields = new HeaderList(raw);
  removeHopByHop(fields);
  return { status: response.statusCode, headers: fields, body: received };
}

async function readUpTo(stream: AsyncIterable<Buffer> & { destroy(): void }, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit);
}

/** Statuses that say no, and not that the service has failed. */
const NO = new Set([401, 403]);

/** Whether a status is an answer to the question, and not a failure. */
export const isDecision = (status: number): boolean => (status >= 200 && status <= 299) || NO.has(status);

function refusal(ctx: RequestContext, plan: HttpPlan, answer: Answer, lookup: VariableResolver): Outcome {
  const { status, headers, body } = answer;
  const common = { reason: `the service answered ${status}`, isCacheable: NO.has(status), values: undefined };
  if (plan.redirect !== undefined && NO.has(status)) {
    const location = tryEvaluate(plan.redirect, lookup);
    if (typeof location !== 'string' || !isHeaderValue(location))
      throw denial(ctx, 'extAuthz.protocol.http.redirect did not evaluate to a URL');
    return {
      ...common,
      reason: `${common.reason}: redirect`,
      apply: () => ({ status: 302, headers: new HeaderList(['location', location]), body: undefined }),
    };
  }
  if (plan.config.denyResponse !== 'passthrough') {
    const reason = `the authorization service answered ${status}`;
    return { ...common, reason, apply: () => new AppError('ext_authz_failed', { detail: reason }) };
  }
  const kept = ['content-type', 'www-authenticate', 'location', 'retry-after'].flatMap((name) =>
    headers.all(name).flatMap((value) => [name, value]),
  );
  return {
    ...common,
    size: body.length,
    apply: (): Reply => ({ status, headers: new HeaderList(kept), body }),
  };
}
