import { type Edit, edit, valueAt } from '../kernel/json-text.ts';
import type { CallSpan, RequestSpan } from '../kernel/observer.ts';
import { parseMessage, type RpcMessage } from './message.ts';
import type { McpFields } from './request-fields.ts';

/** Begins the span of a call to a target, when the client's request is recorded. */
export function callSpan(
  { span, log }: { readonly span: RequestSpan | undefined; readonly log: McpFields },
  target: string,
  { method }: Pick<RpcMessage, 'method'>,
): CallSpan | undefined {
  if (span === undefined) return undefined;
  const item = log.tool ?? log.prompt ?? log.resourceUri;
  return span.call(item === undefined ? `${method} ${target}` : `${method} ${target}_${item}`, {
    'agentgateway.outbound.kind': 'Primary',
    'agentgateway.outbound.subtype': 'Mcp',
    'mcp.target': target,
    'mcp.method.name': method,
    ...(log.tool === undefined ? {} : { 'gen_ai.tool.name': log.tool }),
  });
}

/** The message with our context in `params._meta`, where servers without headers find it. */
export function withTraceMeta(message: RpcMessage, { traceparent }: CallSpan): RpcMessage {
  const change = traceMetaEdit(message.text, JSON.stringify(traceparent));
  return change === undefined ? message : parseMessage(edit(message.text, [change]));
}

function traceMetaEdit(text: string, value: string): Edit | undefined {
  const known = valueAt(text, ['params', '_meta', 'traceparent']);
  if (known !== undefined) return { ...known, text: value };
  const meta = valueAt(text, ['params', '_meta']);
  if (meta !== undefined) return insertion(text, meta.start, `"traceparent":${value}`);
  const params = valueAt(text, ['params']);
  return params && insertion(text, params.start, `"_meta":{"traceparent":${value}}`);
}

/** A member at the beginning of the object that starts there. */
function insertion(text: string, start: number, member: string): Edit | undefined {
  if (text[start] !== '{') return undefined;
  const isEmpty = /^\{\s*\}/.test(text.slice(start, start + 64));
  return { start: start + 1, end: start + 1, text: isEmpty ? member : `${member},` };
}
