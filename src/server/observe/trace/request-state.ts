import { redactTarget } from '../../../core/credentials.ts';
import { isRecord, membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { RequestState } from '../../../core/trace/event.ts';
import { HeadersView } from '../../expressions/cel/headers-view.ts';
import { CelStruct } from '../../expressions/cel/values.ts';
import { ResponseView } from '../../expressions/request-variables.ts';
import { variableOf } from '../../expressions/variable.ts';
import type { SecretNames } from '../../kernel/compile-context.ts';
import type { Expression } from '../../kernel/expression.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { type SizeBudget, toTraceJson } from './trace-json.ts';

const REQUEST_ROOTS = [
  'request',
  'source',
  'jwt',
  'basicAuth',
  'apiKey',
  'extauthz',
  'extproc',
  'proxy',
  'backend',
  'mcp',
  'llmRequest',
] as const;
const RESPONSE_ROOTS = [...REQUEST_ROOTS.filter((root) => root !== 'llmRequest'), 'llm', 'response'] as const;

/** A request as sent to the backend. */
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

/** The current variables of a request, up to `LIMITS.traceStateLength` characters. */
export function snapshotState(
  ctx: RequestContext,
  names: SecretNames,
  { final, reply }: StateOptions,
): RequestState {
  const roots = reply === undefined ? REQUEST_ROOTS : RESPONSE_ROOTS;
  const read = (root: string): unknown =>
    root === 'response' && reply !== undefined
      ? new ResponseView(reply.status, reply.headers.raw, noBody)
      : variableOf(root, ctx);
  return stateOf(roots, read, ctx, names, LIMITS.traceStateLength, final);
}

/** Variables and members with content of a call that guardrails may not have checked yet. */
const UNCHECKED = [
  'request.body',
  'request.bodyPrefix',
  'llmRequest',
  'llm.params',
  'mcp.tool.arguments',
] as const;

/** Whether an expression may read content that guardrails have not checked. */
export const readsUnchecked = (expression: Expression): boolean =>
  UNCHECKED.some((path) => expression.reads(path));

const noBody = (): undefined => undefined;

/** The variables that an expression reads, up to `LIMITS.traceCelStateLength` characters. */
export function expressionState(
  roots: Iterable<string>,
  peek: (root: string) => unknown,
  ctx: RequestContext,
  names: SecretNames,
): RequestState {
  return stateOf(roots, peek, ctx, names, LIMITS.traceCelStateLength);
}

function stateOf(
  roots: Iterable<string>,
  read: (root: string) => unknown,
  ctx: RequestContext,
  names: SecretNames,
  length: number,
  final?: FinalRequest,
): RequestState {
  const budget: SizeBudget = { left: length, scrub: names.scrub };
  const state: Record<string, unknown> = {};
  const omits = names.omitsUnchecked === true;
  for (const root of roots) {
    const value = read(root) ?? null;
    if (value === null || (omits && root === 'llmRequest')) continue;
    if (root === 'request') state[root] = requestOf(ctx, names, budget, final);
    else if (root === 'response') state[root] = responseOf(value, names, budget);
    else if (root === 'backend' && ctx.endpoint === undefined) continue;
    else state[root] = checkedPart(root, toTraceJson(value, budget, names.headers), omits);
  }
  return state;
}

/** The value of a variable without content that guardrails have not checked. */
function checkedPart(root: string, value: unknown, omits: boolean): unknown {
  if (!omits || !isRecord(value)) return value;
  if (root === 'llm') return without(value, 'params');
  const { tool } = value;
  return root === 'mcp' && isRecord(tool) ? { ...value, tool: without(tool, 'arguments') } : value;
}

const without = (value: Readonly<Record<string, unknown>>, omitted: string): object =>
  Object.fromEntries(Object.entries(value).filter(([name]) => name !== omitted));

/** The variable `request`. Before validation there is no canonical path, so the raw one is used. */
function requestOf(
  ctx: RequestContext,
  names: SecretNames,
  budget: SizeBudget,
  final?: FinalRequest,
): unknown {
  const isRaw = ctx.path === '';
  const target = final?.path ?? (isRaw ? (ctx.request.url ?? '') : ctx.path + ctx.query);
  const [path = ''] = target.split('?', 1);
  const pathAndQuery = redactTarget(target, names.parameters);
  const host = final?.authority ?? (isRaw ? (ctx.request.headers.host?.toLowerCase() ?? '') : ctx.host);
  const body = names.omitsUnchecked === true ? undefined : (ctx.body.captured ?? ctx.body.prefix);
  const whole = ctx.body.captured !== undefined && ctx.body.captured.length <= LIMITS.traceTextLength;
  return toTraceJson(
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
      startTime: new Date(ctx.timings.startedAt).toISOString(),
      ...(ctx.timings.endedAt === undefined ? {} : { endTime: new Date(ctx.timings.endedAt).toISOString() }),
    },
    budget,
    names.headers,
  );
}

/** The variable `response`. The body is included only if an expression reads it; it has its own event otherwise. */
function responseOf(response: unknown, names: SecretNames, budget: SizeBudget): unknown {
  const value = toTraceJson(response, budget, names.headers);
  if (!(response instanceof CelStruct)) return value;
  const body = toTraceJson(response.field('body'), budget, names.headers);
  return body === undefined ? value : { ...membersOf(value), body };
}
