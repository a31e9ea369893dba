import { messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { JsonRpcConnection } from './json-rpc-connection.ts';
import type { RpcMessage } from './message.ts';
import { RpcError } from './protocol.ts';
import type { Target } from './target.ts';

interface Repeated {
  readonly method: string;
  /** JSON text. */
  readonly params: string;
}

/**
 * Requests of a client whose effect lasts as long as the session: the log level and resource subscriptions. A server
 * keeps them in memory, so one that was started again, or that joined late, is asked again.
 */
export class LastingRequests {
  #level: string | undefined;
  readonly #subscriptions = new Set<string>();

  /** Whether requests of that method are kept. */
  static isKept(method: string): boolean {
    return (
      method === 'logging/setLevel' || method === 'resources/subscribe' || method === 'resources/unsubscribe'
    );
  }

  /** A server accepted this request; names in it are the server's own. */
  keep({ method, params }: RpcMessage): void {
    if (method === 'logging/setLevel') {
      if (typeof params['level'] === 'string') this.#level = params['level'];
      return;
    }
    const { uri } = params;
    if (typeof uri !== 'string') return;
    this.#subscriptions.delete(uri);
    if (method !== 'resources/subscribe') return;
    this.#subscriptions.add(uri);
    if (this.#subscriptions.size > LIMITS.subscriptions)
      this.#subscriptions.delete(this.#subscriptions.values().next().value as string);
  }

  /** Asks a server for everything again, one request after the other. Never rejects: what fails is logged. */
  async repeat(
    { target, capabilities = {} }: { readonly target: Target; readonly capabilities?: object | undefined },
    peer: JsonRpcConnection,
    headers: readonly string[],
    log: Log,
  ): Promise<void> {
    for (const { method, params } of this.#requests()) {
      if (!((method.split('/')[0] as string) in capabilities)) continue;
      try {
        await peer.call(method, params, headers, LIMITS.listAnswer);
      } catch (error) {
        log.warn('mcp', 'target was started again and did not take over what the client had asked for', {
          target: target.name,
          method,
          problem: messageOf(error),
        });
        // A server that refuses one may take the next; one that is gone, or does not answer, will not.
        if (!(error instanceof RpcError)) return;
      }
    }
  }

  #requests(): Repeated[] {
    const subscriptions = [...this.#subscriptions].map((uri) => ({
      method: 'resources/subscribe',
      params: JSON.stringify({ uri }),
    }));
    if (this.#level === undefined) return subscriptions;
    const level = JSON.stringify({ level: this.#level });
    return [{ method: 'logging/setLevel', params: level }, ...subscriptions];
  }
}
