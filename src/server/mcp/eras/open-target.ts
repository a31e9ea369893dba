import { membersOf, parseJson } from '../../../core/foreign.ts';
import type { Log } from '../../../core/log.ts';
import type { ClientHeaders } from '../connection/client-headers.ts';
import type { Opened, OpenTarget } from '../connection/connection.ts';
import type { JsonRpcConnection } from '../connection/json-rpc-connection.ts';
import type { Target } from '../connection/target.ts';
import { timeoutFailure } from '../connection/target-failure.ts';
import type { Envelope } from '../protocol/envelope.ts';
import { initializeResultOf } from '../protocol/initialize-result.ts';
import { ChannelLink } from './channel-link.ts';
import { discoverAfterRefusal, mayBeModern } from './negotiation.ts';
import { SessionView } from './session-view.ts';

/**
 * Opens targets for a session of a revision with `initialize`, with the client's parameters as JSON text. A target that only
 * has revision 2026-07-28 is opened through a `SessionView`.
 */
export function initializing(initializeParams: string, log: Log): OpenTarget {
  return async (target, rpc, headers, check) => {
    const link = new ChannelLink(rpc.events, (error) =>
      log.internalError('mcp', error, { target: target.name }),
    );
    const channel = await target.open(link.events);
    rpc.bind(channel);
    check();
    try {
      const opened = await initialize(target, rpc, initializeParams, headers);
      channel.agreed(opened.result.protocolVersion);
      return opened;
    } catch (error) {
      if (!mayBeModern(error)) throw error;
      const client = clientOf(initializeParams);
      const discovered = await discoverAfterRefusal(target, channel, link, client, headers, log);
      // The server has not that revision either: it rejected `initialize` for another reason.
      if (discovered === undefined) throw error;
      check();
      const { name, limits } = target;
      const view = new SessionView(channel, rpc.events, { targetName: name, discovered, client, limits });
      link.receiver = view.events;
      rpc.bind(view);
      return initialize(target, rpc, initializeParams, headers);
    }
  };
}

/** The client, as it described itself in `initialize`. */
function clientOf(initializeParams: string): Envelope {
  const { capabilities, clientInfo } = membersOf(parseJson(initializeParams));
  return { capabilities: membersOf(capabilities), clientInfo, logLevel: undefined };
}

async function initialize(
  target: Target,
  rpc: JsonRpcConnection,
  params: string,
  headers: ClientHeaders,
): Promise<Opened> {
  const { initializeTimeout } = target.limits;
  const timedOut = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const text = `no answer to initialize within ${initializeTimeout / 1000} s`;
    timedOut.reject(timeoutFailure(target, text, rpc.channel?.diagnosis?.()));
  }, initializeTimeout);
  try {
    const message = await Promise.race([rpc.call('initialize', params, headers), timedOut.promise]);
    return { result: initializeResultOf(message), message };
  } finally {
    clearTimeout(timer);
  }
}
