import type { Socket } from 'node:net';

/** Where a worker gets the connections of a port, which another process accepts. */
export interface Acceptor {
  /** The open port. */
  readonly port: number;
  /** Path of the Unix socket on which other workers forward requests. */
  readonly socketPath: string;
  /** Passes each new connection to `accept`, until the returned function is called. */
  connections(accept: (socket: Socket) => void): () => void;
}

/** The connections of clients that a worker gets from the process that has accepted them. */
export class InjectedConnections {
  readonly #max: number;
  readonly #open = new Set<Socket>();
  #onEmpty: (() => void) | undefined;

  /** At most `max` at a time. */
  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#open.size;
  }

  /** Whether the connection is one of them, and not that of another worker. */
  has(socket: Socket): boolean {
    return this.#open.has(socket);
  }

  /** Resolves once none is open. */
  async closed(): Promise<void> {
    if (this.#open.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  /** Takes a connection. Returns false, and closes it, if there are too many. */
  add(socket: Socket): boolean {
    if (this.#open.size >= this.#max) {
      socket.destroy();
      return false;
    }
    this.#open.add(socket);
    socket.once('close', () => {
      this.#open.delete(socket);
      if (this.#open.size === 0) this.#onEmpty?.();
    });
    return true;
  }
}
