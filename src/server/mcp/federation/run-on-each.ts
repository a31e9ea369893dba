import { valueAt } from '../../kernel/json/json-text.ts';
import type { Connection } from '../connection/connection.ts';
import { withTimeout } from '../connection/target-failure.ts';
import type { RpcMessage } from '../protocol/message.ts';
import { RPC, RpcError, resultMessage } from '../protocol/protocol.ts';
import { UpstreamSessionLost } from '../targets/http/session-loss.ts';
import type { ClientCall } from './call.ts';

/** Sends a request to all targets with that capability. Fails if none of them accepts it. */
export async function runOnEach(call: ClientCall, capability: string): Promise<void> {
  const { session, message, headers, headTimeout, stream } = call;
  // Capabilities are unknown in a resumed session: the server gets the request and may reject it.
  const able = session.connections.filter(
    ({ capabilities }) => capabilities === undefined || capability in capabilities,
  );
  const paramsSpan = valueAt(message.text, ['params']);
  const params = paramsSpan && message.text.slice(paramsSpan.start, paramsSpan.end);
  const send = async (connection: Connection, isRetry = false): Promise<RpcMessage> => {
    const { rpc } = await connection.readySoon(headers, true);
    try {
      return await rpc.call(message.method, params, headers, undefined, headTimeout);
    } catch (error) {
      if (isRetry || session.isClientUnknown || !(error instanceof UpstreamSessionLost)) throw error;
      connection.dropSession(rpc);
      return send(connection, true);
    }
  };
  const outcomes = await Promise.allSettled(
    able.map((connection) => withTimeout(send(connection), connection.target.limits)),
  );
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed !== undefined && outcomes.every((outcome) => outcome.status === 'rejected')) {
    throw failed.reason instanceof RpcError
      ? failed.reason
      : new RpcError(RPC.internalError, 'no target answered');
  }
  // Also for targets that are not connected: the request is sent to them when they join.
  for (const connection of session.connections) connection.replayed.record(message);
  stream.end(resultMessage(message.id ?? 'null', '{}'));
}
