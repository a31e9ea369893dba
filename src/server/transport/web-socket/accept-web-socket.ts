import { type WebSocket, WebSocketServer } from 'ws';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { Handshake } from '../../kernel/request/upgrade.ts';

export interface AcceptOptions {
  /** Further headers of the response. */
  readonly headers: HeaderList;
  /** Messages over this size end the connection with code 1009; bytes. */
  readonly maxMessage: number;
  /** Chooses one of the subprotocols that the client offers; false for none. */
  protocol(offered: ReadonlySet<string>): string | false;
  /** The handshake was invalid: it is answered with 400, and the socket is closed. */
  refused(): void;
}

/** Answers the WebSocket handshake of a client; calls `accepted` with the connection. */
export function acceptWebSocket(
  { request, socket, head }: Handshake,
  { headers, maxMessage, protocol, refused }: AcceptOptions,
  accepted: (client: WebSocket) => void,
): void {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: maxMessage,
    handleProtocols: protocol,
  });
  server.on('headers', (lines) => {
    for (let at = 0; at < headers.raw.length; at += 2)
      lines.push(`${headers.raw[at]}: ${headers.raw[at + 1]}`);
  });
  server.on('wsClientError', (_error, broken) => {
    broken.end();
    refused();
  });
  server.handleUpgrade(request, socket, head, accepted);
}
