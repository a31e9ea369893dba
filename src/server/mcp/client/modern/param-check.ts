import { membersOf, parseJson } from '../../../../core/foreign.ts';
import type { RequestContext } from '../../../kernel/request/request-context.ts';
import type { ClientHeaders } from '../../connection/client-headers.ts';
import type { Connection } from '../../connection/connection.ts';
import type { JsonRpcConnection } from '../../connection/json-rpc-connection.ts';
import type { ClientCall } from '../../federation/call.ts';
import { listTarget } from '../../federation/lists.ts';
import { TOOL_LIST } from '../../names/names.ts';
import type { RpcMessage } from '../../protocol/message.ts';
import {
  addParamHeaders,
  checkParamHeaders,
  type ParamHeader,
  type ParamHeaders,
  paramHeaders,
} from '../../protocol/param-headers.ts';
import type { RpcError } from '../../protocol/protocol.ts';

const LIST = 'tools/list';

interface Declared {
  readonly headers: ParamHeaders;
  readonly listedAt: number;
}

/** What the tools of each connection declare. Requests in flight are shared. */
const declared = new WeakMap<JsonRpcConnection, Promise<Declared>>();

/**
 * Headers for a call of a tool of revision 2026-07-28. For a target that does not see headers, the client's are compared with
 * the arguments, since intermediaries may have decided by them. For others they are rewritten if a guardrail has changed
 * the arguments. Rejects with `RpcError` for headers that differ from the arguments.
 */
export async function preparedHeaders(
  call: ClientCall,
  connection: Connection,
  message: RpcMessage,
  clientHeaders: RequestContext['headers'],
): Promise<ClientHeaders> {
  const { headers, guards } = call;
  const { list: sentHeaders } = headers;
  const { name, arguments: args } = message.params;
  const sent = call.message.params['arguments'];
  if (connection.isNative === true && connection.target.endpoint !== undefined) {
    // Only guardrails and tool search change arguments.
    const isSent = guards === undefined || JSON.stringify(args) === JSON.stringify(sent);
    if (isSent && call.isReplaced !== true) return headers;
    const others = sentHeaders.filter((_text, index) => !isParamHeader(sentHeaders, index));
    const own = paramHeaders(await declaredBy(call, connection, String(name)), args);
    return { ...headers, list: [...others, ...own] };
  }
  // A server with sessions hardly declares any, and is not listed for nothing.
  if (connection.isNative !== true && !sentHeaders.some((_text, index) => isParamHeader(sentHeaders, index)))
    return headers;
  const check = async (): Promise<RpcError | undefined> =>
    checkParamHeaders(await declaredBy(call, connection, String(name)), sent, clientHeaders);
  let problem = await check();
  // The tool may have changed since it was listed.
  if (problem !== undefined && (await forgetOld(connection))) problem = await check();
  if (problem !== undefined) throw problem;
  return headers;
}

/** Whether the name or value at that index belongs to a header that repeats a parameter. */
const isParamHeader = (headers: readonly string[], index: number): boolean =>
  headers[index - (index % 2)]?.toLowerCase().startsWith('mcp-param-') === true;

async function declaredBy(
  call: ClientCall,
  connection: Connection,
  tool: string,
): Promise<readonly ParamHeader[]> {
  const { rpc } = connection;
  if (rpc === undefined) return [];
  const known = declared.get(rpc) ?? list(call, connection);
  declared.set(rpc, known);
  known.catch(() => declared.delete(rpc));
  return (await known).headers.get(tool) ?? [];
}

async function list(call: ClientCall, connection: Connection): Promise<Declared> {
  const items = await listTarget(connection, call, LIST, TOOL_LIST);
  const headers: Parameters<typeof addParamHeaders>[0] = new Map();
  for (const { text, own } of items)
    if (text.includes('x-mcp-header'))
      addParamHeaders(headers, { tools: [{ ...membersOf(parseJson(text)), name: own }] });
  return { headers, listedAt: performance.now() };
}

/** Returns whether the list is older than `LIMITS.relistInterval`, and was forgotten. */
async function forgetOld({ rpc, target }: Connection): Promise<boolean> {
  if (rpc === undefined) return false;
  const known = await declared.get(rpc);
  if (known === undefined || performance.now() - known.listedAt < target.limits.relistInterval) return false;
  return declared.delete(rpc);
}
