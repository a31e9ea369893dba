import type { RpcMessage } from './message.ts';
import type { Session } from './session.ts';

/** Passes a notification of the client on to the targets that it concerns. */
export function notify(session: Session, message: RpcMessage, headers: readonly string[]): void {
  if (message.method === 'notifications/cancelled') cancelCall(session, message);
  else for (const connection of session.connections) connection.notify(message, headers);
}

/** The client's id means nothing to a target, which knows the call by ours. */
function cancelCall(session: Session, message: RpcMessage): void {
  const requestId = JSON.stringify(message.params['requestId'] ?? null);
  const reason =
    typeof message.params['reason'] === 'string' ? message.params['reason'] : 'cancelled by the client';
  for (const { peer } of session.connections) {
    const id = peer?.idOf(requestId);
    if (id !== undefined) peer?.cancel(id, reason);
  }
}
