import { redactTarget } from '../../../core/credentials.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { RequestState } from '../../../core/trace/event.ts';
import { HeadersView } from '../../expressions/cel/headers-view.ts';
import { CelStruct } from '../../expressions/cel/values.ts';
import { ResponseView } from '../../expressions/request-variables.ts';
import { variableOf } from '../../expressions/resolver.ts';
import type { SecretNames } from '../../kernel/compile-context.ts';
import type { Reply, RequestContext } from '../../kernel/request-context.ts';
import { type Allowance, plain } from './plain.ts';

const REQUEST_ROOTS = [
  'request',
  'source',
  'jwt',
  'apiKey',
  'extauthz',
  'proxy',
  'backend',
  'mcp',
  'llmRequest',
] as const;
const RESPONSE_ROOTS = [...REQUEST_ROOTS.filter((root) => root !== 'llmRequest'), 'llm', 'response'] as const;

/** A request as a backend gets it. */
export interface FinalRequest {
  readonly headers: readonly string[];
  readonly path: string;
  readonly authority: string;
}

export interface StateOptions {
  readonly final?: FinalRequest | undefined;
  /** Adds `response`. */
  readonly reply?: Reply | undefined;
}

/** The variables of a request at this moment. */
export function stateOf(
  ctx: RequestContext,
  names: SecretNames,
  { final, reply }: StateOptions,
): RequestState {
  const roots = reply === undefined ? REQUEST_ROOTS : RESPONSE_ROOTS;
  const read = (root: string): unknown =>
    root === 'response' && reply !== undefined
      ? new ResponseView(reply.status, reply.headers.raw, nothing)
      : variableOf(root, ctx);
  return shown(roots, read, ctx, names, LIMITS.traceStateLength, final);
}

const nothing = (): undefined => undefined;

/** The variables that an expression reads. */
export function stateFor(
  roots: Iterable<string>,
  peek: (root: string) => unknown,
  ctx: RequestContext,
  names: SecretNames,
): RequestState {
  return shown(roots, peek, ctx, names, LIMITS.traceCelStateLength);
}

function shown(
  roots: Iterable<string>,
  read: (root: string) => unknown,
  ctx: RequestContext,
  names: SecretNames,
  length: number,
  final?: FinalRequest,
): RequestState {
  const allowance: Allowance = { left: length, scrub: names.scrub };
  const state: Record<string, unknown> = {};
  for (const root of roots) {
    const value = read(root) ?? null;
    if (value === null) continue;
    if (root === 'request') state[root] = requestOf(ctx, names, allowance, final);
    else if (root === 'response') state[root] = responseOf(value, names, allowance);
    else if (root === 'backend' && ctx.endpoint === undefined) continue;
    else state[root] = plain(value, allowance, names.headers);
  }
  return state;
}

/** Before admission there is no canonical path yet: then it is as it came. */
function requestOf(
  ctx: RequestContext,
  names: SecretNames,
  allowance: Allowance,
  final?: FinalRequest,
): object {
  const isRaw = ctx.path === '';
  const target = final?.path ?? (isRaw ? (ctx.request.url ?? '') : ctx.path + ctx.query);
  const [path = ''] = target.split('?', 1);
  const pathAndQuery = redactTarget(target, names.parameters);
  const host = final?.authority ?? (isRaw ? (ctx.request.headers.host?.toLowerCase() ?? '') : ctx.host);
  const body = ctx.body.captured ?? ctx.body.prefix;
  const whole = ctx.body.captured !== undefined && ctx.body.captured.length <= LIMITS.traceTextLength;
  return plain(
    {
      method: ctx.method,
      uri: pathAndQuery,
      path,
      pathAndQuery,
      ...(host === '' ? {} : { host }),
      scheme: 'http',
      version: `HTTP/${ctx.request.httpVersion}`,
      headers: new HeadersView(final?.headers ?? ctx.headers.raw),
      ...(body === undefined || body.length === 0 ? {} : { [whole ? 'body' : 'bodyPrefix']: body }),
      startTime: new Date(ctx.startedAt).toISOString(),
      ...(ctx.endedAt === undefined ? {} : { endTime: new Date(ctx.endedAt).toISOString() }),
    },
    allowance,
    names.headers,
  ) as object;
}

/** Status and headers; a body has an event of its own, unless an expression reads it. */
function responseOf(response: unknown, names: SecretNames, allowance: Allowance): unknown {
  const value = plain(response, allowance, names.headers);
  if (!(response instanceof CelStruct)) return value;
  const body = plain(response.field('body'), allowance, names.headers);
  return body === undefined ? value : { ...(value as object), body };
}
