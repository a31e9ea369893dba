import { ERRORS, messageOf } from '../../core/errors.ts';
import type { EventStream } from '../../core/sse.ts';
import type { McpLogFields } from '../http/exchange.ts';
import type { Connection } from './connection.ts';
import type { RpcMessage } from './message.ts';
import type { ItemKind } from './names.ts';
import type { Peer } from './peer.ts';
import { errorMessage, RPC, RpcError } from './protocol.ts';
import type { Session } from './session.ts';
import type { Target } from './target.ts';
import { UpstreamSessionLost, UpstreamStatusError } from './targets/http-channel.ts';

/** May this caller use the item of this target? Decided by the `mcpAuthorization` policy. */
export type ItemAccess = (kind: ItemKind, target: string, name: string) => boolean;

/** One request of a client on its way through a session. */
export interface ClientCall {
  readonly session: Session;
  readonly message: RpcMessage;
  readonly headers: readonly string[];
  readonly stream: EventStream;
  readonly log: McpLogFields;
  readonly access: ItemAccess | undefined;
  /** Told which target the call goes to. */
  readonly chosen: (target: Target) => void;
  /** Set once the call runs at a target: tells the target that the client has left. */
  cancel: ((reason: string) => void) | undefined;
  /** Called when nothing has been sent and a target answered with a status of its own, such as 401. */
  readonly refused: (error: UpstreamStatusError) => void;
}

/** Changes a response of a target before the client gets it. */
export type Rewrite = (text: string, message: RpcMessage) => string;

/**
 * Passes a call on to one target and streams back whatever comes. `message` is the client's, with names as the
 * target knows them. A session that the target has forgotten is begun again once: it did not run the call.
 */
export async function forward(
  call: ClientCall,
  connection: Connection,
  message: RpcMessage,
  rewrite?: Rewrite,
  isRetry = false,
): Promise<void> {
  const { session, stream, headers, log } = call;
  log.target = connection.target.name;
  call.chosen(connection.target);
  let peer: Peer;
  try {
    peer = connection.peer ?? (await connection.ready(headers)).peer;
  } catch (error) {
    fail(call, connection, error);
    return;
  }
  if (!stream.isOpen) return;
  stream.onPressure = (paused) => peer.channel?.pause(paused);
  const id = peer.forward(message, headers, {
    related: (related) => session.deliver(connection, related, stream),
    response: (text, response) => {
      noteError(log, response.error);
      stream.end(rewrite === undefined ? text : rewrite(text, response));
    },
    cancelled: () => stream.end(),
    failure: (error) => {
      if (error instanceof UpstreamSessionLost && session.isResumed) {
        // Only the client can begin again: what it is able to do was said to the other process.
        call.refused(
          new UpstreamStatusError(
            404,
            { 'content-type': 'text/plain; charset=utf-8' },
            ERRORS.mcp_session_not_found.text,
          ),
        );
      } else if (error instanceof UpstreamSessionLost && !isRetry) {
        connection.lost(peer);
        void forward(call, connection, message, rewrite, true);
      } else fail(call, connection, error);
    },
  });
  call.cancel = (reason) => peer.cancel(id, reason);
}

function fail(call: ClientCall, connection: Connection, error: unknown): void {
  if (error instanceof UpstreamStatusError && call.session.connections.length === 1) {
    call.refused(error);
    return;
  }
  answerError(
    call,
    new RpcError(
      RPC.internalError,
      `target "${connection.target.name}" is not available: ${messageOf(error)}`,
    ),
  );
}

/** Ends a call with a JSON-RPC error. */
export function answerError(call: ClientCall, error: RpcError): void {
  noteError(call.log, error);
  call.stream.end(errorMessage(call.message.id ?? 'null', error.code, error.message, error.data));
}

function noteError(
  log: McpLogFields,
  error: { readonly code: number; readonly message: string } | undefined,
): void {
  if (error === undefined) return;
  log.errorCode = error.code;
  log.errorMessage = error.message;
}
