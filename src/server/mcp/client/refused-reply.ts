import { isRecord, jsonIn } from '../../../core/foreign.ts';
import { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { UpstreamStatusError } from '../connection/target-failure.ts';
import { errorMessage, rpcErrorIn } from '../protocol/protocol.ts';

/** Characters of an error page in the log. */
const BODY_IN_LOG = 200;

/**
 * Status, body and challenge of a single target that rejected a request, so that the client can sign in there. `id` is the
 * client's, as JSON text. The log gets the reason.
 */
export function refusedReply(ctx: RequestContext, error: UpstreamStatusError, id: string): Reply {
  ctx.error ??= error.message;
  ctx.errorDetail ??= error.body.slice(0, BODY_IN_LOG);
  const kept = ['www-authenticate', 'retry-after'].flatMap((name) => {
    const value = error.headers[name];
    return typeof value === 'string' ? [name, value] : [];
  });
  const [type, body] = contentFor(error, id);
  const headers = new HeaderList(type === undefined ? kept : ['content-type', type, ...kept]);
  return { status: error.status, headers, body };
}

/**
 * The body as the client can use it. A JSON-RPC error has the gateway's id, which is another one than the client's; an event
 * stream has such messages, and JSON may be cut off (`BODY_IN_ERROR`), so text takes the place of those.
 */
function contentFor(
  { headers, body, message }: UpstreamStatusError,
  id: string,
): [string | undefined, string] {
  const type = headers['content-type'];
  const plain: [string, string] = ['text/plain; charset=utf-8', message];
  if (/^text\/event-stream/i.test(type ?? '')) return plain;
  if (!/\bjson\b/i.test(type ?? '')) return [type, body];
  const value = objectIn(body);
  if (value === undefined) return plain;
  if (!('jsonrpc' in value)) return [type, body];
  const error = rpcErrorIn(body);
  return error === undefined ? plain : [type, errorMessage(id, error.code, error.message, error.data)];
}

function objectIn(body: string): Readonly<Record<string, unknown>> | undefined {
  const value = jsonIn(body);
  return isRecord(value) ? value : undefined;
}
