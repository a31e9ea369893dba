import { membersOf } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { TOOL_ERROR } from '../../core/outcome.ts';
import { variableOf } from '../expressions/variable.ts';
import type { CelResult } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { a2aCall, jwtClaims, principal } from '../kernel/shared-slots.ts';
import { type LlmCall, llmCall, refusedModel } from '../llm/llm-call.ts';
import { type McpFields, mcpFields } from '../mcp/request-fields.ts';
import { costUnits } from './money.ts';
import type { RecordPolicy } from './policy.ts';

/** Columns of `agctl_records` except its id, in the order of `RecordRow`. */
export const COLUMNS = [
  'time',
  'duration',
  'protocol',
  'operation',
  'listener',
  'route',
  'path',
  'status',
  'error',
  'reason',
  'cut',
  'caller',
  'user_name',
  'user_group',
  'client',
  'agent',
  'session',
  'trace_id',
  'provider',
  'model',
  'used_model',
  'target',
  'tool',
  'streamed',
  'first_token',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'estimated',
  'cost',
  'added',
] as const;

type Text = string | null;
type Count = number | null;

/** One recorded request. Times are in ms since 1970, durations in µs, the cost in 10⁻¹⁰ USD. */
export interface RequestRecord {
  readonly time: number;
  readonly duration: number;
  /** `llm`, `mcp`, `a2a` or `http`. */
  readonly protocol: string;
  /** The LLM operation (`chat`), the method of the message (`tools/call`), or the HTTP method. */
  readonly operation: string;
  readonly listener: string;
  readonly route: Text;
  /** Without query. */
  readonly path: string;
  readonly status: number;
  readonly error: Text;
  readonly reason: Text;
  /** Who ended a response before it was complete: `client`, `upstream` or `timeout`. */
  readonly cut: Text;
  readonly caller: Text;
  readonly user: Text;
  readonly group: Text;
  readonly client: string;
  readonly agent: Text;
  readonly session: Text;
  readonly traceId: Text;
  readonly provider: Text;
  /** The requested model, and the one that answered. */
  readonly model: Text;
  readonly usedModel: Text;
  readonly target: Text;
  /** Tool, prompt or URI of the resource. */
  readonly tool: Text;
  readonly streamed: boolean;
  readonly firstToken: Count;
  readonly input: Count;
  readonly output: Count;
  readonly cached: Count;
  readonly cacheWrite: Count;
  readonly reasoning: Count;
  /** Why the token counts are an estimate. */
  readonly estimated: Text;
  readonly cost: Count;
  /** Added fields as JSON. */
  readonly added: Text;
}

/** The record of a request that has ended. All its texts are redacted. */
export function recordOf(ctx: RequestContext, status: number, policy: RecordPolicy): RequestRecord {
  const llm = llmCall.get(ctx);
  const mcp = mcpFields.get(ctx);
  const added = policy.added(ctx);
  const text = (value: string | undefined): Text => (value === undefined ? null : policy.label(value));
  return {
    time: ctx.timings.startedAt,
    duration: Math.round(ctx.timings.duration * 1000),
    protocol: a2aCall.get(ctx) === undefined ? ctx.protocol : 'a2a',
    operation: policy.label(llm?.operation ?? mcp?.method ?? a2aCall.get(ctx)?.method ?? ctx.requestedMethod),
    listener: ctx.listener,
    route: ctx.route ?? null,
    path: policy.label(pathOf(ctx)),
    status,
    error: text(errorOf(ctx, llm, mcp)),
    reason: ctx.reason === undefined || ctx.reason === 'Upstream' ? null : ctx.reason,
    cut: cutBy(ctx, llm),
    ...callerOf(ctx, added, text),
    client: ctx.client.address,
    agent: text(ctx.headers.get('user-agent')),
    session: text(mcp?.sessionId),
    traceId: ctx.span?.traceId ?? null,
    target: text(mcp?.target),
    tool: text(mcp?.tool ?? mcp?.prompt ?? mcp?.resourceUri),
    ...(llm === undefined ? { ...NO_CALL, model: text(refusedModel.get(ctx)) } : callFields(llm, text)),
    added: addedText(added, policy),
  };
}

const NO_CALL = {
  provider: null,
  model: null,
  usedModel: null,
  streamed: false,
  firstToken: null,
  input: null,
  output: null,
  cached: null,
  cacheWrite: null,
  reasoning: null,
  estimated: null,
  cost: null,
} as const;

function callFields(call: LlmCall, text: (value: string | undefined) => Text) {
  const { usage, cost } = call;
  return {
    provider: call.provider,
    model: text(call.requestModel),
    usedModel: text(call.responseModel ?? call.providerModel),
    streamed: call.streaming,
    firstToken: call.firstTokenAfter === undefined ? null : Math.round(call.firstTokenAfter * 1000),
    input: usage?.input ?? null,
    output: usage?.output ?? null,
    cached: usage?.cachedInput ?? null,
    cacheWrite: usage?.cacheWrite ?? null,
    reasoning: usage?.reasoning ?? null,
    estimated: call.estimated ?? null,
    cost: cost?.total === undefined ? null : costUnits(cost.total),
  };
}

function errorOf(
  ctx: RequestContext,
  llm: LlmCall | undefined,
  mcp: McpFields | undefined,
): string | undefined {
  const provider = llm?.providerError;
  if (provider !== undefined)
    return [ctx.error, provider.name].filter((each) => each !== undefined).join(': ');
  return ctx.error ?? mcp?.errorMessage ?? (mcp?.isToolError ? TOOL_ERROR : undefined);
}

/** A stream whose client has left, or whose provider ended it early, has fewer tokens than it would have had. */
function cutBy(ctx: RequestContext, llm: LlmCall | undefined): Text {
  if (ctx.reason === 'Timeout') return 'timeout';
  if (ctx.isAbandoned || ctx.reason === 'ClientClosed') return 'client';
  return llm?.progress === 'responding' && llm.streaming ? 'upstream' : null;
}

/** Expressions of `add` come first; then what the policies know of the caller. */
function callerOf(
  ctx: RequestContext,
  added: Readonly<Record<string, CelResult>> | undefined,
  text: (value: string | undefined) => Text,
) {
  const who = principal.get(ctx);
  const key = who?.startsWith('apiKey:') ? membersOf(variableOf('apiKey', ctx)) : undefined;
  const claims = jwtClaims.get(ctx);
  return {
    // Eight digits of its hash tell keys without a name apart.
    caller: text(textOf(added?.['key']) ?? textOf(key?.['name']) ?? (key && `key ${who?.slice(7, 15)}`)),
    user: text(
      textOf(added?.['user']) ??
        textOf(claims?.['sub']) ??
        textOf(key?.['user']) ??
        (who?.startsWith('basicAuth:') ? who.slice('basicAuth:'.length) : undefined),
    ),
    group: text(textOf(added?.['group']) ?? textOf(key?.['group']) ?? textOf(key?.['team'])),
  };
}

const textOf = (value: unknown): string | undefined => {
  if (typeof value === 'string') return value === '' ? undefined : value;
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : undefined;
};

function addedText(added: Readonly<Record<string, CelResult>> | undefined, policy: RecordPolicy): Text {
  if (added === undefined) return null;
  const { key, user, group, ...rest } = added;
  if (Object.keys(rest).length === 0) return null;
  const text = JSON.stringify(policy.value(rest));
  return text.length > LIMITS.recordText * 4 ? null : withoutNul(text);
}

function pathOf({ path, requestedTarget, request }: RequestContext): string {
  const target = requestedTarget ?? (path === '' ? (request.url ?? '') : path);
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

/** PostgreSQL stores neither NUL nor half of a surrogate pair, which JSON text has as escapes. */
export function withoutNul(json: string): string {
  return json
    .replace(/(?<!\\)((?:\\\\)*)\\u0000/g, '$1')
    .replace(/(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}/g, '$1\\ufffd');
}
