import type { RpcMessage } from '../protocol/message.ts';
import { RPC, RpcError, resultMessage } from '../protocol/protocol.ts';
import { completeMembers } from '../protocol/results.ts';

/** Key in the `_meta` of a merged list that names the targets which are missing from it, and why. */
const UNAVAILABLE_META_KEY = 'agctl/unavailableTargets';

/** A target that is missing from a list. */
export interface Unavailable {
  readonly name: string;
  readonly error: string;
}

/** Creates the response to a list request; `_meta` names the unavailable targets. `meta`: set since revision 2026-07-28. */
export function listResult(
  {
    message: { id = 'null', method },
    meta: envelope,
  }: { readonly message: RpcMessage; readonly meta?: object },
  member: string,
  items: readonly string[],
  unavailable: readonly Unavailable[],
): string {
  const meta =
    unavailable.length === 0 ? '' : `,"_meta":${JSON.stringify({ [UNAVAILABLE_META_KEY]: unavailable })}`;
  const complete = envelope === undefined ? '' : `${completeMembers(method)},`;
  return resultMessage(id, `{${complete}${JSON.stringify(member)}:[${items.join(',')}]${meta}}`);
}

/**
 * Throws an `RpcError` for a request with a cursor: lists that the gateway makes itself have one page, so it has not given any
 * (MCP, "Pagination": invalid cursors should be -32602; IBM/mcp-context-forge#6634). Some clients send an empty one with the first request.
 */
export function refuseCursor({ message }: { readonly message: RpcMessage }): void {
  const cursor = message.params['cursor'] ?? '';
  if (cursor !== '')
    throw new RpcError(
      RPC.invalidParams,
      'invalid cursor: this list has one page, request it without a cursor',
    );
}
