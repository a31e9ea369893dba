import { redactTarget } from '../../../core/credentials.ts';
import { LIMITS } from '../../../core/limits.ts';
import { TOOL_ERROR } from '../../../core/outcome.ts';
import { type Edit, edit, insertion, valueAt } from '../../kernel/json/json-text.ts';
import type { CallSpan, RequestObserver, RequestSpan } from '../../kernel/observer.ts';
import { parseMessage, type RpcMessage } from '../protocol/message.ts';
import type { McpFields } from '../request-fields.ts';
import type { Target } from './target.ts';

/** Starts the span of a call to a target; undefined if the client's request is not sampled. */
export function callSpan(
  { span, log }: { readonly span: RequestSpan | undefined; readonly log: McpFields },
  { name, endpoint }: Target,
  { method }: Pick<RpcMessage, 'method'>,
): CallSpan | undefined {
  if (span === undefined) return undefined;
  const { tool, prompt, resourceUri } = log;
  const attributes = {
    'agentgateway.outbound.kind': 'Primary',
    'agentgateway.outbound.subtype': 'Mcp',
    'mcp.target': name,
    'mcp.method.name': method,
    'network.transport': endpoint === undefined ? 'pipe' : 'tcp',
    ...(tool === undefined ? {} : { 'gen_ai.tool.name': tool }),
    ...(method === 'tools/call' ? { 'gen_ai.operation.name': 'execute_tool' } : {}),
    ...(prompt === undefined ? {} : { 'gen_ai.prompt.name': prompt }),
    ...(resourceUri === undefined ? {} : { 'mcp.resource.uri': redactTarget(resourceUri) }),
  };
  // The URI of a resource is not part of the name, to limit the number of span names.
  return span.call(`${method} ${tool ?? prompt ?? name}`, attributes, endpoint);
}

/** Ends the span of a call with its failure: a JSON-RPC error, or a tool result with `isError`. */
export function failSpan(span: CallSpan | undefined, problem: string, error: RpcMessage['error']): void {
  if (error === undefined) span?.fail(problem, TOOL_ERROR);
  else {
    span?.setAttribute('rpc.status_code', String(error.code));
    span?.fail(error.message.slice(0, LIMITS.loggedErrorMessage), String(error.code));
  }
}

/** Sets `traceparent` in `params._meta`, where servers without HTTP headers find it. */
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

/** How a trace names a target: `host:port`, or `stdio:<name>` for a child process. */
export const traceName = ({ name, endpoint }: Target): string => endpoint ?? `stdio:${name}`;

/** Status of a successful call for traces: 200 over HTTP, null for a child process. */
export const statusOf = ({ endpoint }: Target): number | null => (endpoint === undefined ? null : 200);

/** Reports start, end and failure of a call to a target to the observer. Settles like `work`. */
export async function traced<T>(observer: RequestObserver, target: Target, work: Promise<T>): Promise<T> {
  const since = observer.callStarted(traceName(target), 'mcp');
  try {
    const result = await work;
    observer.callEnded(traceName(target), since, statusOf(target), 'mcp');
    return result;
  } catch (error) {
    observer.callFailed(traceName(target), since, error, 'mcp');
    throw error;
  }
}
