import { messageOf } from '../../../core/errors.ts';
import type { Limits } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { RpcMessage } from '../protocol/message.ts';
import { RpcError } from '../protocol/protocol.ts';
import type { ClientHeaders } from './client-headers.ts';
import type { JsonRpcConnection } from './json-rpc-connection.ts';
import { SubscribedResources } from './subscribed-resources.ts';
import type { Target } from './target.ts';

interface Replayed {
  readonly method: string;
  /** JSON text. */
  readonly params: string;
}

/**
 * Requests of a client whose effect lasts until the session ends: the log level and resource subscriptions. Servers keep
 * them in memory, so they are sent again to a server that was restarted or joined the session late. At most
 * `LIMITS.subscriptions` subscriptions are recorded; the oldest is removed first.
 */
export class ReplayedRequests {
  #level: string | undefined;
  readonly #subscriptions: SubscribedResources;

  constructor(limits: Limits) {
    this.#subscriptions = new SubscribedResources(limits);
  }

  /** Whether requests of that method are recorded. */
  static isReplayed(method: string): boolean {
    return (
      method === 'logging/setLevel' || method === 'resources/subscribe' || method === 'resources/unsubscribe'
    );
  }

  /** Records a request that a server accepted, with the names that the server uses. */
  record({ method, params }: RpcMessage): void {
    if (method === 'logging/setLevel') {
      if (typeof params['level'] === 'string') this.#level = params['level'];
      return;
    }
    const { uri } = params;
    if (typeof uri !== 'string') return;
    if (method === 'resources/subscribe') this.#subscriptions.addNewest(uri);
    else this.#subscriptions.delete(uri);
  }

  /** Sends all recorded requests to a server, one after another. Never rejects: failures are logged. */
  async replay(
    { target, capabilities = {} }: { readonly target: Target; readonly capabilities?: object | undefined },
    rpc: JsonRpcConnection,
    headers: ClientHeaders,
    log: Log,
  ): Promise<void> {
    for (const { method, params } of this.#requests()) {
      if (!((method.split('/')[0] ?? '') in capabilities)) continue;
      try {
        await rpc.call(method, params, headers, target.limits.listPageTimeout);
      } catch (error) {
        log.warn('mcp', 'target was restarted and rejected a request of the client that was sent again', {
          target: target.name,
          method,
          problem: messageOf(error),
        });
        // A server that refuses one request may accept the next. One that exited or does not answer will not.
        if (!(error instanceof RpcError)) return;
      }
    }
  }

  #requests(): Replayed[] {
    const subscriptions = [...this.#subscriptions].map((uri) => ({
      method: 'resources/subscribe',
      params: JSON.stringify({ uri }),
    }));
    if (this.#level === undefined) return subscriptions;
    const level = JSON.stringify({ level: this.#level });
    return [{ method: 'logging/setLevel', params: level }, ...subscriptions];
  }
}
