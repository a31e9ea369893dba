import { valueAt } from '../kernel/json-text.ts';
import { canonicalId, type RpcMessage } from './message.ts';
import type { Session } from './session.ts';

/** Forwards a notification of the client to the targets that it concerns. */
export function notify(session: Session, message: RpcMessage, headers: readonly string[]): void {
  switch (message.method) {
    case 'notifications/cancelled':
      cancelCall(session, message);
      return;
    case 'notifications/progress':
      if (hasSingleTarget(session)) break;
      session.requests.progress(message, headers);
      return;
    case 'notifications/tasks/status':
      // The server that the task belongs to is unknown. These notifications are optional for clients, so none relies on them.
      if (hasSingleTarget(session)) break;
      return;
    case 'notifications/initialized':
      session.initialized();
      break;
  }
  for (const connection of session.connections) connection.notify(message, headers);
}

const hasSingleTarget = ({ connections }: Session): boolean => connections.length === 1;

/** Cancels a call by the client's id. Targets know the call by another id. */
function cancelCall(session: Session, { text, params }: RpcMessage): void {
  const span = valueAt(text, ['params', 'requestId']);
  if (span === undefined) return;
  const { reason } = params;
  session.running
    .get(canonicalId(text.slice(span.start, span.end)))
    ?.cancel(typeof reason === 'string' ? reason : 'cancelled by the client');
}
