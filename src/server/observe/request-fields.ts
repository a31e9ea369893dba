import { redactTarget } from '../../core/credentials.ts';
import { TOOL_ERROR } from '../../core/outcome.ts';
import { byForm } from '../../core/redact.ts';
import type { CelResult } from '../kernel/expression.ts';
import { GATEWAY } from '../kernel/gateway-name.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { withoutParameters } from '../kernel/request-target.ts';
import { credentialParameters, jwtClaims } from '../kernel/shared-slots.ts';
import { type LlmCall, llmCall, refusedModel } from '../llm/call.ts';
import { mcpFields } from '../mcp/request-fields.ts';

export type FieldValue = CelResult | undefined;
/** One access-log field. `quoted`: free text, always quoted in the text format. */
export type Field = readonly [name: string, value: FieldValue, style?: 'quoted'];

/**
 * The built-in fields of an access-log line, in printing order; fields whose value is undefined are omitted.
 * Names and order follow the specification's "Access log" and upstream's wire format.
 */
export function requestFields(ctx: RequestContext, status: number): Field[] {
  const mcp = mcpFields.get(ctx);
  const llm = llmCall.get(ctx);
  return [
    ['gateway', GATEWAY.label],
    ['listener', ctx.listener],
    ['route', ctx.route],
    ['endpoint', ctx.endpoint],
    ['src.addr', sourceAddress(ctx)],
    ['http.method', ctx.method],
    ['http.host', requestedHost(ctx)],
    ['http.path', redactedTarget(ctx)],
    ['http.version', `HTTP/${ctx.request.httpVersion}`],
    ['http.status', status],
    ['trace.id', ctx.span?.traceId],
    ['span.id', ctx.span?.spanId],
    ['jwt.sub', subjectOf(ctx)],
    ['protocol', ctx.protocol],
    ['mcp.method.name', mcp?.method],
    ['mcp.target', mcp?.target],
    ['mcp.resource.type', mcp?.resourceType],
    ['mcp.resource.uri', mcp?.resourceUri && redactTarget(mcp.resourceUri)],
    ['gen_ai.tool.name', mcp?.tool],
    ['gen_ai.prompt.name', mcp?.prompt],
    ['mcp.session.id', mcp?.sessionId],
    ['mcp.error.code', mcp?.errorCode],
    ['mcp.error.message', redact(mcp?.errorMessage), 'quoted'],
    // A tool error has no code. A provider error has the provider's own name for it.
    ['error.type', mcp?.isToolError ? TOOL_ERROR : llm?.providerError?.name],
    ...llmFieldsOf(llm, refusedModel.get(ctx)),
    ['error', redact(ctx.error), 'quoted'],
    ['error.detail', redact(ctx.errorDetail ?? mcp?.errorDetail), 'quoted'],
    ['reason', ctx.reason === 'Upstream' ? undefined : ctx.reason],
    ['duration', `${Math.round(performance.now() - ctx.timings.started)}ms`],
  ];
}

function llmFieldsOf(llm: LlmCall | undefined, refused: string | undefined): Field[] {
  if (llm === undefined) return refused === undefined ? [] : [['gen_ai.request.model', refused]];
  const { usage, firstTokenAfter, lastTokenAfter, cost, request } = llm;
  const isStream = llm.streaming && firstTokenAfter !== undefined;
  const perToken =
    isStream && lastTokenAfter !== undefined && usage !== undefined && usage.output > 0
      ? (lastTokenAfter - firstTokenAfter) / usage.output
      : undefined;
  return [
    ['gen_ai.operation.name', llm.operation],
    ['gen_ai.provider.name', llm.provider],
    ['gen_ai.request.model', llm.requestModel],
    ['gen_ai.response.model', llm.responseModel],
    ['gen_ai.usage.input_tokens', usage?.input],
    ['gen_ai.usage.cache_creation.input_tokens', usage?.cacheWrite],
    ['gen_ai.usage.cache_read.input_tokens', usage?.cachedInput],
    ['gen_ai.usage.output_tokens', usage?.output],
    ['gen_ai.usage.reasoning_tokens', usage?.reasoning],
    ['gw.ai.usage.estimated', llm.estimated, 'quoted'],
    ['gw.ai.time_to_first_token', isStream ? seconds(firstTokenAfter) : undefined],
    ['gw.ai.time_per_output_token', perToken === undefined ? undefined : seconds(perToken)],
    ['gw.ai.guardrail.unseen', llm.unseenMedia],
    ['gw.ai.stream.held', llm.heldFor === undefined ? undefined : `${llm.heldFor}ms`],
    ['gw.ai.usage.cost.total', cost?.total],
    // Only if a catalog is configured but has no price: without a catalog there is nothing to explain.
    [
      'gw.ai.usage.cost.problem',
      cost?.status === 'Missing' || cost?.status === 'Unpriced' ? cost.reason : undefined,
      'quoted',
    ],
    ['gen_ai.usage.input_audio_tokens', usage?.inputAudio],
    ['gen_ai.usage.output_audio_tokens', usage?.outputAudio],
    ['gen_ai.request.temperature', numberOf(request['temperature'])],
    ['gen_ai.embeddings.dimension.count', numberOf(request['dimensions'])],
    ['gen_ai.request.encoding_formats', textOf(request['encoding_format'])],
    ['gen_ai.request.top_p', numberOf(request['top_p'])],
    ['gen_ai.request.max_tokens', numberOf(request['max_tokens'])],
    ['gen_ai.request.frequency_penalty', numberOf(request['frequency_penalty'])],
    ['gen_ai.request.presence_penalty', numberOf(request['presence_penalty'])],
    ['gen_ai.request.seed', numberOf(request['seed'])],
  ];
}

function subjectOf(ctx: RequestContext): string | undefined {
  return textOf(jwtClaims.get(ctx)?.['sub']);
}

const seconds = (milliseconds: number): number => Math.round(milliseconds * 1000) / 1_000_000;
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

/** Redacts credentials: a server's error message may quote the URL it was called with. */
const redact = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : byForm.text(text);

/**
 * The validated host, or the requested one if the request was rejected before validation. The host of an absolute
 * target takes precedence over the Host header (RFC 9112 §3.2.2).
 */
function requestedHost({ host, request }: RequestContext): string {
  if (host !== '') return host;
  const { url = '', headers } = request;
  const absolute = url.startsWith('/') ? undefined : /^https?:\/\/(?:[^/?#]*@)?([^/?#]*)/i.exec(url)?.[1];
  return absolute ?? headers.host ?? '';
}

/**
 * The validated request target, or the raw one if the request was rejected before validation. Query parameters that the
 * configuration reads credentials from are removed; other credentials are redacted.
 */
function redactedTarget(ctx: RequestContext): string | undefined {
  const { request, path, query } = ctx;
  const secretParameters = credentialParameters.get(ctx);
  const url = path === '' ? request.url : path + query;
  const at = url?.indexOf('?') ?? -1;
  if (url === undefined) return undefined;
  if (secretParameters === undefined || at === -1) return redactTarget(url);
  return redactTarget(url.slice(0, at) + withoutParameters(url.slice(at), secretParameters));
}

function sourceAddress(ctx: RequestContext): string {
  const { address, port } = ctx.client;
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}
