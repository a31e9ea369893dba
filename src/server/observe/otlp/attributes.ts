import { redactTarget } from '../../../core/credentials.ts';
import { stringIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { mcpProblem, TOOL_ERROR } from '../../../core/outcome.ts';
import type { CelResult } from '../../kernel/expression.ts';
import type { Fact } from '../../kernel/fact.ts';
import type { AttributeValue } from '../../kernel/observer.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { Route } from '../../kernel/routing/route.ts';
import { matchesPath } from '../../kernel/routing/router.ts';
import { llmFacts, operationName, tokenFacts } from '../../llm/facts.ts';
import { type LlmCall, llmCall } from '../../llm/llm-call.ts';
import { mcpFacts } from '../../mcp/facts.ts';
import { VERSION_HEADER } from '../../mcp/protocol/protocol.ts';
import { mcpFields } from '../../mcp/request-fields.ts';
import { a2aFacts, firstFacts, lastFacts } from '../request-facts.ts';
import type { Field } from '../request-fields.ts';

const FACTS: readonly Fact<never>[] = [...firstFacts, ...mcpFacts, ...llmFacts, ...a2aFacts, ...lastFacts];

/**
 * Access-log fields and the span attributes that replace them, by OpenTelemetry's semantic conventions (HTTP 1.45;
 * GenAI from its own repository). All other fields keep their names.
 */
const CONVENTIONS: ReadonlyMap<string, readonly string[]> = new Map(
  FACTS.flatMap(({ name, attributes }) =>
    name === undefined || attributes === undefined ? [] : [[name, attributes] as const],
  ),
);

/**
 * The attributes that `name` refers to in a configuration: those replacing the access-log field, or the name itself.
 */
export const attributesNamed = (name: string): readonly string[] => CONVENTIONS.get(name) ?? [name];

/** Counts of tokens, which the span of the call to the model has. */
export const TOKEN_ATTRIBUTES: readonly string[] = tokenFacts.flatMap(
  ({ name, attributes }) => attributes ?? name ?? [],
);

/** Span attributes of a finished request: its access-log fields and those required by the semantic conventions. */
export function requestAttributes(
  ctx: RequestContext,
  fields: readonly Field[],
  route: Route | undefined,
): MutableAttributes {
  const attributes: MutableAttributes = {};
  for (const [name, value] of fields) {
    if (value !== undefined && value !== null && !CONVENTIONS.has(name))
      attributes[name] = attributeOf(value);
  }
  Object.assign(attributes, httpAttributes(ctx, fields, route));
  const mcp = mcpFields.get(ctx);
  if (mcp !== undefined) {
    addAttributes(attributes, MCP_ATTRIBUTES, mcp);
    set(attributes, 'mcp.protocol.version', revisionOf(ctx));
  }
  const llm = llmCall.get(ctx);
  if (llm !== undefined) addAttributes(attributes, LLM_ATTRIBUTES, llm);
  addAttributes(attributes, LAST_ATTRIBUTES, { ctx, status: 0 });
  for (const [part, cost] of Object.entries(llm?.cost?.parts ?? {}))
    attributes[`gw.ai.usage.cost.${snakeCase(part)}`] = cost;
  const failure = failureOf(ctx);
  if (failure !== undefined) attributes['error.type'] ??= failure.type;
  // A 4xx is not a span error, so the span status cannot carry the message.
  else if (ctx.error !== undefined) set(attributes, 'error.message', fieldText(fields, 'error'));
  return attributes;
}

function httpAttributes(
  ctx: RequestContext,
  fields: readonly Field[],
  route: Route | undefined,
): MutableAttributes {
  const { client } = ctx;
  // A trusted proxy in front of the gateway, or the client itself.
  const { peer = client } = client;
  const attributes: MutableAttributes = {
    ...methodAttributes(ctx.method),
    'url.scheme': client.scheme,
    'network.protocol.version': ctx.request.httpVersion,
    'client.address': client.address,
    'network.peer.address': peer.address,
    'network.peer.port': peer.port,
    ...serverAttributes(ctx.host),
  };
  // Redacted, as in the access log.
  const target = fieldText(fields, 'http.path') ?? '';
  const at = target.indexOf('?');
  attributes['url.path'] = at === -1 ? target : target.slice(0, at);
  if (at !== -1) attributes['url.query'] = target.slice(at + 1);
  set(attributes, 'http.route', routeOf(ctx, route));
  const agent = ctx.request.headers['user-agent'];
  set(attributes, 'user_agent.original', agent && redactTarget(agent.slice(0, LIMITS.logFieldLength)));
  // The log writes 499 for a client that disconnected, but no status was sent.
  if (ctx.response.headersSent) set(attributes, 'http.response.status_code', ctx.reply?.status);
  return attributes;
}

/** RFC 9110 §9 and RFC 5789. */
const METHODS = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE']);

/** The method; `_OTHER` for an unknown one, because clients could invent any number of methods. */
export function methodAttributes(method: string): MutableAttributes {
  if (METHODS.has(method)) return { 'http.request.method': method };
  return { 'http.request.method': '_OTHER', 'http.request.method_original': method };
}

/** The configured path of the matched route; `/v1/*` for a prefix. */
function routeOf({ path }: RequestContext, route: Route | undefined): string | undefined {
  const match = route?.matches.find(({ path: pattern }) => matchesPath(pattern, path))?.path;
  if (match === undefined) return undefined;
  if (match.kind === 'regex') return match.source;
  return match.kind === 'exact' ? match.value : `${match.value}/*`;
}

/** The result of a configured expression as attribute value. Credentials in a URL are redacted. */
export function addedAttribute(value: CelResult): AttributeValue {
  const attribute = attributeOf(value);
  return typeof attribute === 'string' ? redactTarget(attribute) : attribute;
}

/** `server.address` and `server.port` for `host:port` or `unix:path`. */
export function serverAttributes(address: string): MutableAttributes {
  if (address.startsWith('unix:')) return { 'server.address': address.slice('unix:'.length) };
  const [, host = address, port] = /^(.*?)(?::(\d+))?$/.exec(address) ?? [];
  if (host === '') return {};
  const name = host.replace(/^\[|\]$/g, '');
  return { 'server.address': name, ...(port === undefined ? {} : { 'server.port': Number(port) }) };
}

/** Why a span is an error: the value of `error.type`, and details for the status description. */
export interface Failure {
  readonly type: string;
  readonly message?: string | undefined;
}

/**
 * The failure of a request; undefined if it succeeded. By the semantic conventions, a server span is not an error if
 * the client caused it (4xx, or a disconnect), and the description does not repeat the status.
 */
export function failureOf(ctx: RequestContext): Failure | undefined {
  const { reply, error, reason } = ctx;
  const mcp = mcpFields.get(ctx);
  const problem = mcpProblem(mcp);
  if (mcp !== undefined && problem !== undefined)
    return mcp.errorCode === undefined
      ? { type: TOOL_ERROR, message: problem }
      : { type: String(mcp.errorCode), message: mcp.errorMessage ?? problem };
  const status = reply?.status ?? 0;
  if (status < 500 && (error === undefined || status >= 400)) return undefined;
  const own = error === undefined ? undefined : reason;
  return { type: llmCall.get(ctx)?.providerError?.name ?? own ?? String(status), message: error };
}

/** Span name: MCP method with tool or prompt, or HTTP method with route. Raw paths would be unbounded. */
export function requestName(ctx: RequestContext, attributes: Readonly<MutableAttributes>): string {
  const { method } = ctx;
  const mcp = mcpFields.get(ctx);
  if (mcp?.method !== undefined) return join(mcp.method, mcp.tool ?? mcp.prompt);
  return join(METHODS.has(method) ? method : 'HTTP', stringIn(attributes['http.route']));
}

const join = (operation: string, target: string | undefined): string =>
  target === undefined ? operation : `${operation} ${target}`;

function fieldText(fields: readonly Field[], field: string): string | undefined {
  const value = fields.find(([name]) => name === field)?.[1];
  return typeof value === 'string' ? value : undefined;
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function attributeOf(value: unknown): AttributeValue {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  return JSON.stringify(value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value) ?? '';
}

type MutableAttributes = Record<string, AttributeValue>;

/** Facts that are told in another way than by a field of the same name and value. */
const ownAttributes = <Source>(facts: readonly Fact<Source>[]): readonly Fact<Source>[] =>
  facts.filter(({ attributes = [], attribute }) => attributes.length === 1 || attribute !== undefined);

const MCP_ATTRIBUTES = ownAttributes(mcpFacts);
const LLM_ATTRIBUTES = ownAttributes(llmFacts);
const CALL_ATTRIBUTES = llmFacts.filter(({ isOfCall }) => isOfCall);
const LAST_ATTRIBUTES = ownAttributes(lastFacts);

function addAttributes<Source>(
  attributes: MutableAttributes,
  facts: readonly Fact<Source>[],
  source: Source,
): void {
  for (const fact of facts) {
    const name = fact.attributes?.[0] ?? fact.name;
    const value = fact.attribute === undefined ? fact.read(source) : undefined;
    const attribute = value === undefined || value === null ? fact.attribute?.(source) : attributeOf(value);
    if (name !== undefined) set(attributes, name, attribute);
  }
}

/** The revision of MCP that the client names. */
function revisionOf({ request }: RequestContext): string | undefined {
  const version = request.headers[VERSION_HEADER];
  return typeof version === 'string' && /^\d{4}-\d\d-\d\d$/.test(version) ? version : undefined;
}

/** Name and attributes of an LLM span that are known before the call. */
export function modelCall(call: LlmCall): { name: string; attributes: MutableAttributes } {
  const model = call.providerModel ?? call.requestModel;
  const attributes: MutableAttributes = {
    'gen_ai.operation.name': operationName(call),
    'gen_ai.provider.name': call.provider,
    'gen_ai.request.model': model,
  };
  if (call.streaming) attributes['gen_ai.request.stream'] = true;
  return { name: `${operationName(call)} ${model}`, attributes };
}

/** Attributes of an LLM span that are known after the call. `firstToken`: seconds from the call to the first token. */
export function modelAnswer(call: LlmCall, firstToken: number | undefined): MutableAttributes {
  const attributes: MutableAttributes = {};
  addAttributes(attributes, CALL_ATTRIBUTES, call);
  set(attributes, 'gen_ai.response.time_to_first_chunk', firstToken);
  return attributes;
}

/** Adds an attribute unless its value is undefined or empty. */
function set(attributes: MutableAttributes, name: string, value: AttributeValue | undefined): void {
  if (value !== undefined && value !== '') attributes[name] = value;
}

export const seconds = (milliseconds: number | undefined): number | undefined =>
  milliseconds === undefined ? undefined : Math.round(milliseconds * 1000) / 1_000_000;
