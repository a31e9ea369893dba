import { AppError, messageOf } from '../../../../core/errors.ts';
import { endWithCredential } from '../../../kernel/admission.ts';
import { emptyReply } from '../../../kernel/request/error-response.ts';
import { HeaderList } from '../../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../../kernel/request/request-context.ts';
import { principal } from '../../../kernel/request/shared-slots.ts';
import type { ClientHeaders } from '../../connection/client-headers.ts';
import { UpstreamStatusError } from '../../connection/target-failure.ts';
import { answerFailure } from '../../federation/call.ts';
import { dispatch } from '../../federation/federation.ts';
import { checkRevision, readEnvelope } from '../../protocol/envelope.ts';
import type { RpcMessage } from '../../protocol/message.ts';
import {
  badMessage,
  errorMessage,
  MODERN_REQUESTS,
  MODERN_REVISION,
  RPC,
  RpcError,
  SESSION_REQUESTS,
} from '../../protocol/protocol.ts';
import { mcpFields } from '../../request-fields.ts';
import type { CallerSession } from '../../session/caller-session.ts';
import { ownerOf } from '../../session/session-id.ts';
import type { SessionStore } from '../../session/session-store.ts';
import { refusedReply } from '../refused-reply.ts';
import { discover } from './discover.ts';
import { listen } from './listen.ts';
import { ModernCall } from './modern-call.ts';

/**
 * Answers one POST of revision 2026-07-28. There are no sessions: each request says itself what is needed to answer it.
 * `headers` are those that targets receive.
 */
export async function handleModern(
  ctx: RequestContext,
  sessions: SessionStore,
  message: RpcMessage,
  headers: ClientHeaders,
): Promise<Reply> {
  if (message.kind === 'notification') {
    orBadRequest(message, () => checkRevision(ctx, message));
    // This revision has no notifications of clients over HTTP: closing the connection cancels a request ("Sending Messages").
    // Some clients send `notifications/cancelled` all the same.
    return emptyReply(202);
  }
  if (message.kind === 'response') {
    const text = `revision ${MODERN_REVISION} has no responses of clients: input is sent as inputResponses of the next request`;
    throw badMessage(new RpcError(RPC.invalidRequest, text), 'null');
  }
  const envelope = orBadRequest(message, () => readEnvelope(ctx, message));
  const { method } = message;
  if (SESSION_REQUESTS.has(method) && !MODERN_REQUESTS.has(method)) return unknownMethod(ctx, message);
  const caller = { owner: ownerOf(principal.get(ctx)), envelope, headers, observer: ctx.observer };
  let session: CallerSession;
  try {
    session = await sessions.callers.acquire(caller, message);
  } catch (error) {
    if (error instanceof UpstreamStatusError) return refusedReply(ctx, error, message.id ?? 'null');
    throw withRpcBody(error, message);
  }
  sessions.whileAdmitted(ctx, session);
  const call = new ModernCall(
    ctx,
    session,
    message,
    envelope,
    headers,
    mcpFields.ensure(ctx, () => ({})),
  );
  if (ctx.signal.aborted) call.abandoned();
  else if (method === 'server/discover') discover(call).catch((error: unknown) => answerFailure(call, error));
  else if (method === 'subscriptions/listen') {
    endWithCredential(ctx, () => void call.expired());
    listen(call);
  } else dispatch(call);
  return call.reply();
}

function orBadRequest<T>(message: RpcMessage, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof RpcError) throw badMessage(error, message.id ?? 'null');
    throw error;
  }
}

/** Status 404 with an error body tells clients that the endpoint exists, but not the method ("Protocol Version Header"). */
function unknownMethod(ctx: RequestContext, { id = 'null', method }: RpcMessage): Reply {
  const text = `method not found: ${method}`;
  mcpFields.set(ctx, { ...mcpFields.get(ctx), errorCode: RPC.methodNotFound, errorMessage: text });
  return {
    status: 404,
    headers: new HeaderList(['content-type', 'application/json']),
    body: errorMessage(id, RPC.methodNotFound, text),
  };
}

/** Adds a JSON-RPC error with the reason, because clients show it. The status is unchanged. */
function withRpcBody(error: unknown, { id = 'null' }: RpcMessage): unknown {
  if (!(error instanceof AppError)) return error;
  const reason = messageOf(error).replace(/^mcp: (?:failed to create session: )?/, '');
  return new AppError(error.code, {
    message: error.message,
    ...(error.detail !== undefined && { detail: error.detail }),
    headers: error.headers,
    body: { type: 'application/json', text: errorMessage(id, RPC.internalError, reason) },
  });
}
