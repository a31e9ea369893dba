import { redactTarget } from '../../core/credentials.ts';
import { TOOL_ERROR } from '../../core/outcome.ts';
import { byForm } from '../../core/redact.ts';
import type { CelResult } from '../kernel/expression.ts';
import { GATEWAY } from '../kernel/gateway-name.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { withoutParameters } from '../kernel/request-target.ts';
import {
  a2aCall,
  configuredParameters,
  credentialParameters,
  jwtClaims,
  retryAttempt,
} from '../kernel/shared-slots.ts';
import { type LlmCall, llmCall, refusedModel } from '../llm/llm-call.ts';
import { mcpFields } from '../mcp/request-fields.ts';
import type { RelayedConnection } from '../transport/entrance.ts';

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
  const fields = firstFields(ctx);
  add(fields, 'http.host', requestedHost(ctx));
  add(fields, 'http.path', redactedTarget(ctx));
  add(fields, 'http.version', `HTTP/${ctx.request.httpVersion}`);
  add(fields, 'http.status', status);
  add(fields, 'trace.id', ctx.span?.traceId);
  add(fields, 'span.id', ctx.span?.spanId);
  add(fields, 'jwt.sub', subjectOf(ctx));
  add(fields, 'protocol', ctx.protocol);
  add(fields, 'mcp.method.name', mcp?.method);
  add(fields, 'mcp.target', mcp?.target);
  add(fields, 'mcp.resource.type', mcp?.resourceType);
  add(fields, 'mcp.resource.uri', mcp?.resourceUri && redactTarget(mcp.resourceUri));
  add(fields, 'gen_ai.tool.name', mcp?.tool);
  add(fields, 'gen_ai.prompt.name', mcp?.prompt);
  add(fields, 'mcp.session.id', mcp?.sessionId);
  add(fields, 'mcp.error.code', mcp?.errorCode);
  add(fields, 'mcp.error.message', redact(mcp?.errorMessage), 'quoted');
  // A tool error has no code. A provider error has the provider's own name for it.
  add(fields, 'error.type', mcp?.isToolError ? TOOL_ERROR : llm?.providerError?.name);
  if (llm !== undefined) addLlmFields(fields, llm);
  else add(fields, 'gen_ai.request.model', refusedModel.get(ctx));
  const a2a = a2aCall.get(ctx);
  if (a2a !== undefined) {
    add(fields, 'a2a.method', a2a.method);
    add(fields, 'a2a.response.outcome', a2a.outcome);
    add(fields, 'a2a.response.error_code', a2a.errorCode);
    add(fields, 'a2a.task.state', a2a.taskState);
  }
  add(fields, 'error', redact(ctx.error), 'quoted');
  add(fields, 'error.detail', redact(ctx.errorDetail ?? mcp?.errorDetail), 'quoted');
  add(fields, 'reason', ctx.reason === 'Upstream' ? undefined : ctx.reason);
  add(fields, 'retry.attempt', retryAttempt.get(ctx));
  add(fields, 'duration', `${Math.round(ctx.timings.duration)}ms`);
  return fields;
}

/** Those that the gateway itself has set. */
function firstFields(ctx: RequestContext): Field[] {
  const fields: Field[] = [];
  add(fields, 'gateway', GATEWAY.label);
  add(fields, 'listener', ctx.listener);
  add(fields, 'route', ctx.route);
  add(fields, 'endpoint', ctx.endpoint);
  add(fields, 'src.addr', ctx.client.label);
  add(fields, 'http.method', ctx.requestedMethod);
  return fields;
}

/** What is left to say of a request whose fields could not be made: only what the gateway itself has set. */
export function remainingFields(ctx: RequestContext, status: number): Field[] {
  const fields = firstFields(ctx);
  add(fields, 'http.status', status);
  add(fields, 'protocol', ctx.protocol);
  add(fields, 'error', 'internal error: the other fields of this line could not be written', 'quoted');
  add(fields, 'duration', `${Math.round(ctx.timings.duration)}ms`);
  return fields;
}

/** The fields of a connection whose bytes were passed on (`tcpRoutes`), in printing order. */
export function connectionFields(connection: RelayedConnection): Field[] {
  const fields: Field[] = [];
  add(fields, 'gateway', GATEWAY.label);
  add(fields, 'listener', connection.listener);
  add(fields, 'route', connection.route);
  add(fields, 'endpoint', connection.endpoint);
  add(fields, 'src.addr', connection.client);
  add(fields, 'tls.server.name', connection.serverName);
  add(fields, 'protocol', 'tcp');
  add(fields, 'bytes.received', connection.received);
  add(fields, 'bytes.sent', connection.sent);
  add(fields, 'error', connection.error, 'quoted');
  add(fields, 'error.detail', connection.detail, 'quoted');
  add(fields, 'duration', `${Math.round(connection.duration)}ms`);
  return fields;
}

/** Most fields of most requests have no value: a list of all of them was a twelfth of what a request allocates. */
function add(fields: Field[], name: string, value: FieldValue, style?: 'quoted'): void {
  if (value !== undefined) fields.push(style === undefined ? [name, value] : [name, value, style]);
}

function addLlmFields(fields: Field[], llm: LlmCall): void {
  const { usage, firstTokenAfter, lastTokenAfter, cost, request } = llm;
  const isStream = llm.streaming && firstTokenAfter !== undefined;
  const perToken =
    isStream && lastTokenAfter !== undefined && usage !== undefined && usage.output > 0
      ? (lastTokenAfter - firstTokenAfter) / usage.output
      : undefined;
  add(fields, 'gen_ai.operation.name', llm.operation);
  add(fields, 'gen_ai.provider.name', llm.provider);
  add(fields, 'gen_ai.request.model', llm.requestModel);
  add(fields, 'gen_ai.response.model', llm.responseModel);
  add(fields, 'gen_ai.usage.input_tokens', usage?.input);
  add(fields, 'gen_ai.usage.cache_creation.input_tokens', usage?.cacheWrite);
  add(fields, 'gen_ai.usage.cache_read.input_tokens', usage?.cachedInput);
  add(fields, 'gen_ai.usage.output_tokens', usage?.output);
  add(fields, 'gen_ai.usage.reasoning_tokens', usage?.reasoning);
  add(fields, 'gw.ai.usage.estimated', llm.estimated, 'quoted');
  add(fields, 'gw.ai.time_to_first_token', isStream ? seconds(firstTokenAfter) : undefined);
  add(fields, 'gw.ai.time_per_output_token', perToken === undefined ? undefined : seconds(perToken));
  add(fields, 'gw.ai.guardrail.unseen', llm.unseenMedia);
  add(fields, 'gw.ai.stream.held', llm.heldFor === undefined ? undefined : `${llm.heldFor}ms`);
  add(fields, 'gw.ai.usage.cost.total', cost?.total);
  // Only if a catalog is configured but has no price: without a catalog there is nothing to explain.
  add(
    fields,
    'gw.ai.usage.cost.problem',
    cost?.status === 'Missing' || cost?.status === 'Unpriced' ? cost.reason : undefined,
    'quoted',
  );
  add(fields, 'gen_ai.usage.input_audio_tokens', usage?.inputAudio);
  add(fields, 'gen_ai.usage.output_audio_tokens', usage?.outputAudio);
  add(fields, 'gen_ai.request.temperature', numberOf(request['temperature']));
  add(fields, 'gen_ai.embeddings.dimension.count', numberOf(request['dimensions']));
  add(fields, 'gen_ai.request.encoding_formats', textOf(request['encoding_format']));
  add(fields, 'gen_ai.request.top_p', numberOf(request['top_p']));
  add(fields, 'gen_ai.request.max_tokens', numberOf(request['max_tokens']));
  add(fields, 'gen_ai.request.frequency_penalty', numberOf(request['frequency_penalty']));
  add(fields, 'gen_ai.request.presence_penalty', numberOf(request['presence_penalty']));
  add(fields, 'gen_ai.request.seed', numberOf(request['seed']));
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
function requestedHost({ host, requestedHost = host, request }: RequestContext): string {
  if (requestedHost !== '') return requestedHost;
  const { url = '', headers } = request;
  const absolute = url.startsWith('/') ? undefined : /^https?:\/\/(?:[^/?#]*@)?([^/?#]*)/i.exec(url)?.[1];
  return absolute ?? headers.host ?? '';
}

/**
 * The validated request target, or the raw one if the request was rejected before validation. Query parameters that the
 * configuration reads credentials from are removed; other credentials are redacted.
 */
function redactedTarget(ctx: RequestContext): string | undefined {
  const { request, path, query, requestedTarget } = ctx;
  const secretParameters = credentialParameters.get(ctx);
  const url = path === '' ? request.url : (requestedTarget ?? path + query);
  const at = url?.indexOf('?') ?? -1;
  if (url === undefined) return undefined;
  const configured = configuredParameters.get(ctx);
  if (secretParameters === undefined || at === -1) return redactTarget(url, configured);
  return redactTarget(url.slice(0, at) + withoutParameters(url.slice(at), secretParameters), configured);
}
