import type { AttributeValue } from '../../kernel/observer.ts';
import type { RequestContext } from '../../kernel/request-context.ts';
import type { LlmCall } from '../../llm/call.ts';
import type { McpFields } from '../../mcp/request-fields.ts';

export type MutableAttributes = Record<string, AttributeValue>;

/** Attributes of an MCP message that the access log omits or names differently. */
export function mcpAttributes(mcp: McpFields, request: RequestContext['request']): MutableAttributes {
  const attributes: MutableAttributes = {};
  if (mcp.tool !== undefined && mcp.method === 'tools/call')
    attributes['gen_ai.operation.name'] = 'execute_tool';
  if (mcp.errorCode !== undefined) attributes['rpc.status_code'] = String(mcp.errorCode);
  const version = request.headers['mcp-protocol-version'];
  if (typeof version === 'string' && /^\d{4}-\d\d-\d\d$/.test(version))
    attributes['mcp.protocol.version'] = version;
  return attributes;
}

/** Attributes of an LLM call that the access log omits or names differently. */
export function llmAttributes(call: LlmCall): MutableAttributes {
  const { usage, request, streaming } = call;
  const attributes: MutableAttributes = { 'gen_ai.operation.name': operationOf(call) };
  if (streaming) attributes['gen_ai.request.stream'] = true;
  const format = request['encoding_format'];
  if (typeof format === 'string') attributes['gen_ai.request.encoding_formats'] = [format];
  set(attributes, 'gen_ai.usage.reasoning.output_tokens', usage?.reasoning);
  set(attributes, 'gen_ai.usage.audio.input_tokens', usage?.inputAudio);
  set(attributes, 'gen_ai.usage.audio.output_tokens', usage?.outputAudio);
  return attributes;
}

/** The Responses API counts as `chat` (OpenTelemetry's conventions for OpenAI). */
const operationOf = ({ operation }: LlmCall): string => (operation === 'responses' ? 'chat' : operation);

/** Name and attributes of an LLM span that are known before the call. */
export function modelCall(call: LlmCall): { name: string; attributes: MutableAttributes } {
  const model = call.providerModel ?? call.requestModel;
  const attributes: MutableAttributes = {
    'gen_ai.operation.name': operationOf(call),
    'gen_ai.provider.name': call.provider,
    'gen_ai.request.model': model,
  };
  if (call.streaming) attributes['gen_ai.request.stream'] = true;
  return { name: `${operationOf(call)} ${model}`, attributes };
}

/** Attributes of an LLM span that are known after the call. `firstToken`: seconds from the call to the first token. */
export function modelAnswer(call: LlmCall, firstToken: number | undefined): MutableAttributes {
  const { usage } = call;
  const attributes = llmAttributes(call);
  set(attributes, 'gen_ai.response.model', call.responseModel);
  set(attributes, 'gen_ai.usage.input_tokens', usage?.input);
  set(attributes, 'gen_ai.usage.output_tokens', usage?.output);
  set(attributes, 'gen_ai.usage.cache_creation.input_tokens', usage?.cacheWrite);
  set(attributes, 'gen_ai.usage.cache_read.input_tokens', usage?.cachedInput);
  set(attributes, 'gen_ai.response.time_to_first_chunk', firstToken);
  set(attributes, 'error.type', call.providerError?.name);
  return attributes;
}

/** Adds an attribute unless its value is undefined or empty. */
export function set(attributes: MutableAttributes, name: string, value: AttributeValue | undefined): void {
  if (value !== undefined && value !== '') attributes[name] = value;
}

export const seconds = (milliseconds: number | undefined): number | undefined =>
  milliseconds === undefined ? undefined : Math.round(milliseconds * 1000) / 1_000_000;
