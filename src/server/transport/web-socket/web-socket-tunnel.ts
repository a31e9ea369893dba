import type { Socket } from 'node:net';
import { endWithCredential } from '../../kernel/admission.ts';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { RequestContext, RunningWork } from '../../kernel/request/request-context.ts';
import type { Handshake, Takeover } from '../../kernel/request/upgrade.ts';
import { joinSockets, type RelayFailed } from '../joined-sockets.ts';

/**
 * Joins the client of a request with a service that has accepted its handshake. The tunnel ends with either side, when its caller is
 * no longer let in, or after `idle` ms without a byte (0: no limit). The log of the request says why.
 */
export function openTunnel(ctx: RequestContext, upstream: Socket, idle: number): Takeover {
  const tunnel = new WebSocketTunnel(upstream, idle, (error, detail) => {
    ctx.error ??= error;
    ctx.errorDetail ??= `${ctx.endpoint}: ${detail}`;
  });
  ctx.running = tunnel;
  endWithCredential(ctx, () => tunnel.abandoned());
  return tunnel;
}

/**
 * A WebSocket whose bytes are passed on as they are: of messages, their size, compression and closing, the client and the service agree
 * between themselves.
 */
class WebSocketTunnel implements Takeover, RunningWork {
  readonly #upstream: Socket;
  readonly #idle: number;
  readonly #failed: RelayFailed;
  #client: Socket | undefined;

  constructor(upstream: Socket, idle: number, failed: RelayFailed) {
    this.#upstream = upstream;
    this.#idle = idle;
    this.#failed = failed;
    // Until the sides are joined, which waits for policies of the response.
    upstream.on('error', () => upstream.destroy());
  }

  takeOver({ socket: client, head }: Handshake, headers: HeaderList): void {
    this.#client = client;
    client.write(switchingProtocols(headers), 'latin1');
    if (head.length > 0) this.#upstream.write(head);
    joinSockets(client, this.#upstream, this.#idle, this.#failed);
  }

  discard(): void {
    this.#upstream.destroy();
  }

  abandoned(): void {
    this.#client?.destroy();
    this.#upstream.destroy();
  }

  /** What was received is still sent. */
  expired(): boolean {
    this.#client?.destroySoon();
    this.#upstream.destroySoon();
    return true;
  }
}

/** RFC 6455 §4.2.2. The service has answered the key of the client. */
function switchingProtocols({ raw }: HeaderList): string {
  let head = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
  for (let at = 0; at < raw.length; at += 2) head += `${raw[at]}: ${raw[at + 1]}\r\n`;
  return `${head}\r\n`;
}
