import { AppError, messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { CelEvaluationError } from '../../expressions/cel/errors.ts';
import { ResponseView } from '../../expressions/request-variables.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { Expression, VariableResolver } from '../../kernel/expression.ts';
import { HeaderList, isHeaderValue, removeHopByHop } from '../../kernel/header-list.ts';
import { definePolicy, readsMemberOf } from '../../kernel/policy.ts';
import type { Reply, RequestContext } from '../../kernel/request-context.ts';
import { canonicalAuthority } from '../../kernel/request-target.ts';
import { explainUpstreamError } from '../../transport/upstream-error.ts';
import { compilePlan, extAuthzValues, type Plan, schema } from './plan.ts';

/** External authorization over HTTP. */
export const extAuthz = definePolicy({
  key: 'extAuthz',
  conditional: true,
  places: ['gateway', 'route', 'backend'],
  restrictsClients: true,
  requestExpressions: ['protocol.http.path', 'protocol.http.addRequestHeaders'],
  schema,
  trace: { kind: 'ext_auth', stage: 'ext authz' },
  dump: ({ host, protocol, ...rest }) => ({
    extAuthz: { host, ...rest, protocol: protocol ?? { http: {} } },
  }),
  sets: {
    isReadBy: (expression) => readsMemberOf('extauthz', expression),
    missingFrom: (route) => ({
      code: 'AGW0309',
      severity: 'warning',
      message: `route \`${route}\` reads \`extauthz\`, but none of its policies sets it`,
      help: 'add the policy `extAuthz`; until then `extauthz` is null',
    }),
  },
  compile(config, context) {
    const plan = compilePlan(config, context);
    if (plan === undefined) return {};
    return { request: (ctx) => authorize(ctx, plan), close: () => plan.upstream.close() };
  },
});

/** Response of the service. `body` has at most `LIMITS.authorizationBody` bytes. */
interface Answer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Buffer;
}

/**
 * Calls the service for a request. Returns undefined if it is allowed, or the reply for the client. Throws
 * `ext_authz_failed` if it is denied with a fixed response, or the call fails and `failureMode` denies.
 */
async function authorize(ctx: RequestContext, plan: Plan): Promise<Reply | undefined> {
  const path = requestPath(ctx, plan);
  const authority = requestAuthority(ctx, plan);
  const since = ctx.observer?.now ?? 0;
  let answer: Answer;
  try {
    answer = await call(ctx, plan, { path, authority });
  } catch (error) {
    return callFailed(ctx, plan, error);
  }
  const lookup = resolverFor(ctx, {
    response: new ResponseView(answer.status, answer.headers.raw, () => answer.body),
  });
  if (answer.status < 200 || answer.status > 299) return refuse(ctx, plan, answer, lookup);
  const values = Object.fromEntries(
    plan.metadata.flatMap(([name, value]) => {
      const result = attempt(value, lookup);
      return result === undefined ? [] : [[name, result]];
    }),
  );
  extAuthzValues.set(ctx, values);
  ctx.invalidateVariable('extauthz');
  for (const name of plan.config.protocol?.http.includeResponseHeaders ?? []) {
    const received = answer.headers.all(name);
    ctx.headers.delete(name);
    for (const value of received) ctx.headers.append(name, value);
  }
  ctx.observer?.policy({
    kind: 'extAuthz',
    action: 'apply',
    reason: `the service allowed it (${answer.status})`,
    snapshot: values,
    since,
  });
  return undefined;
}

/** Path of the call. Throws for values that are not valid in a request line, which would change the request. */
function requestPath(ctx: RequestContext, plan: Plan): string {
  if (plan.path === undefined) return ctx.path + ctx.query;
  const path = attempt(plan.path, resolverFor(ctx));
  if (typeof path === 'string' && /^\/[\x21-\x7e]*$/.test(path) && !path.includes('#')) return path;
  throw denial(ctx, 'extAuthz.protocol.http.path did not evaluate to a path');
}

/** Host of the call. Throws for anything but a host with an optional port, which servers could interpret differently. */
function requestAuthority(ctx: RequestContext, { upstream, headers, config }: Plan): string {
  const expression = headers.find(([name]) => name === ':authority')?.[1];
  const value = expression === undefined ? undefined : (attempt(expression, resolverFor(ctx)) ?? undefined);
  if (value !== undefined) {
    const authority = typeof value === 'string' ? canonicalAuthority(value) : undefined;
    if (authority !== undefined) return authority;
    throw denial(ctx, 'extAuthz.protocol.http.addRequestHeaders: `:authority` did not evaluate to a host');
  }
  const usesClientHost = config.includeRequestHeaders.some((name) => name.toLowerCase() === 'host');
  return (usesClientHost && ctx.host) || upstream.authority;
}

const SET_BY_GATEWAY = new Set(['host', 'content-length']);

interface Target {
  readonly path: string;
  readonly authority: string;
}

async function call(
  ctx: RequestContext,
  { upstream, timeout, headers: added, config }: Plan,
  { path, authority }: Target,
): Promise<Answer> {
  const headers: string[] = [];
  for (const name of config.includeRequestHeaders) {
    // The gateway sets these for the call: a second value would make it ambiguous.
    if (SET_BY_GATEWAY.has(name.toLowerCase())) continue;
    for (const value of ctx.headers.all(name)) headers.push(name, value);
  }
  const lookup = resolverFor(ctx);
  for (const [name, expression] of added) {
    if (name === ':authority') continue;
    const value = attempt(expression, lookup);
    if (typeof value === 'string' && isHeaderValue(value)) headers.push(name, value);
  }
  const request = {
    method: ctx.method,
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
  const body = await readUpTo(response.body, LIMITS.authorizationBody);
  const raw = Object.entries(response.headers).flatMap(([name, value]) =>
    [value].flat().flatMap((one) => (one === undefined ? [] : [name, one])),
  );
  const received = new HeaderList(raw);
  removeHopByHop(received);
  return { status: response.statusCode, headers: received, body };
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

function callFailed(ctx: RequestContext, { config, upstream }: Plan, error: unknown): undefined {
  // The request was aborted: not a denial and not a failure of the service.
  if (ctx.isAbandoned)
    throw new AppError('ext_authz_failed', { detail: ctx.abandonReason ?? 'the client disconnected' });
  const problem =
    error instanceof Error && error.name === 'TimeoutError' ? 'timed out' : explainUpstreamError(error);
  if (config.failureMode === 'allow') {
    ctx.observer?.policy({
      kind: 'extAuthz',
      action: 'skip',
      reason: `the service could not be reached (${upstream.address}: ${problem}); failureMode allows the request`,
    });
    return undefined;
  }
  const status = typeof config.failureMode === 'object' ? config.failureMode.denyWithStatus : undefined;
  throw denial(
    ctx,
    `the authorization service could not be reached: ${upstream.address}: ${problem}`,
    status,
  );
}

function refuse(ctx: RequestContext, plan: Plan, answer: Answer, lookup: VariableResolver): Reply {
  const { status, headers, body } = answer;
  if (plan.redirect !== undefined && (status === 401 || status === 403)) {
    const location = attempt(plan.redirect, lookup);
    if (typeof location !== 'string' || !isHeaderValue(location))
      throw denial(ctx, 'extAuthz.protocol.http.redirect did not evaluate to a URL');
    ctx.observer?.policy({
      kind: 'extAuthz',
      action: 'respond',
      reason: `the service answered ${status}: redirect`,
    });
    ctx.reason = 'ExtAuth';
    return { status: 302, headers: new HeaderList(['location', location]), body: undefined };
  }
  if (plan.config.denyResponse === 'fixed') throw denial(ctx, `the authorization service answered ${status}`);
  ctx.observer?.policy({ kind: 'extAuthz', action: 'deny', reason: `the service answered ${status}` });
  ctx.reason = 'ExtAuth';
  ctx.error = 'external authorization failed';
  const kept = ['content-type', 'www-authenticate', 'location', 'retry-after'].flatMap((name) =>
    headers.all(name).flatMap((value) => [name, value]),
  );
  return { status, headers: new HeaderList(kept), body };
}

function denial(ctx: RequestContext, reason: string, status?: number): AppError {
  ctx.observer?.policy({ kind: 'extAuthz', action: 'deny', reason });
  return new AppError('ext_authz_failed', { detail: reason, ...(status === undefined ? {} : { status }) });
}

/** The value of an expression; undefined if the evaluation fails. */
function attempt(compiled: Expression, lookup: VariableResolver): unknown {
  try {
    return compiled.evaluate(lookup);
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined;
    throw new Error(`expression failed: ${messageOf(error)}`, { cause: error });
  }
}
