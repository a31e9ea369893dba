import { valueAt } from '../kernel/json-text.ts';
import { canonicalId, type RpcMessage } from './message.ts';
import type { Session } from './session.ts';

/** Passes a notification of the client on to the targets that it concerns. */
export function notify(session: Session, message: RpcMessage, headers: readonly string[]): void {
  switch (message.method) {
    case 'notifications/cancelled':
      cancelCall(session, message);
      return;
    case 'notifications/progress':
      if (concernsOne(session)) break;
      session.requests.progress(message, headers);
      return;
    case 'notifications/tasks/status':
      // Which server asked for the task is not known. The protocol lets clients leave these out, so no server counts on them.
      if (concernsOne(session)) break;
      return;
    case 'notifications/initialized':
      session.initialized();
      break;
  }
  for (const connection of session.connections) connection.notify(message, headers);
}

const concernsOne = ({ connections }: Session): boolean => connections.length === 1;

/** The client's id means nothing to a target, which knows the call by ours. */
function cancelCall(session: Session, { text, params }: RpcMessage): void {
  const span = valueAt(text, ['params', 'requestId']);
  if (span === undefined) return;
  const { reason } = params;
  session.running
    .get(canonicalId(text.slice(span.start, span.end)))
    ?.cancel(typeof reason === 'string' ? reason : 'cancelled by the client');
}
