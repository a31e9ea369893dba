import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import type { Limits } from '../../../core/limits.ts';
import { clientOf } from '../../kernel/request/client-connection.ts';

/** The TLS of a listener. */
export interface ServerTls {
  /** Options of `tls.createServer`. Another object after a file has changed; connections keep theirs. */
  readonly options: TlsOptions;
  /** A handshake failed; `error` is Node's, `address` that of the client if it is still known. */
  failed(error: Error, address: string | undefined): void;
}

/** Ends the TLS of connections. */
export class TlsEntrance {
  readonly #tls: ServerTls;
  readonly #limits: Limits;
  readonly #secured: (socket: TLSSocket) => void;
  #options: TlsOptions | undefined;
  #server: Server | undefined;

  /** `secured` gets each connection after its handshake. */
  constructor(tls: ServerTls, limits: Limits, secured: (socket: TLSSocket) => void) {
    this.#tls = tls;
    this.#limits = limits;
    this.#secured = secured;
  }

  accept(socket: Socket): void {
    const { options } = this.#tls;
    // A server that never listens: it only knows how to begin a handshake.
    if (this.#server === undefined || options !== this.#options) {
      this.#options = options;
      this.#server = this.#serverFor(options);
    }
    this.#server.emit('connection', socket);
  }

  #serverFor(options: TlsOptions): Server {
    const server = createServer({ handshakeTimeout: this.#limits.tlsHandshakeTimeout, ...options });
    server.on('secureConnection', this.#secured);
    server.on('tlsClientError', (error, socket) => {
      this.#tls.failed(error, addressOf(socket));
      // Node.js leaves it open after `handshakeTimeout`.
      socket.destroy();
    });
    return server;
  }
}

/** The address of the client, also after it has closed the connection: `_parent` is the socket below TLS, which knows it. */
function addressOf(socket: TLSSocket): string | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- not in the types of Node.js.
  const { _parent: below } = socket as { readonly _parent?: Socket };
  return below === undefined ? socket.remoteAddress : clientOf(below).label;
}
