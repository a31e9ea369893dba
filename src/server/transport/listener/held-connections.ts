import type { Socket } from 'node:net';
import type { SourceOptions } from './connection-source.ts';

/** Connections of a listener that wait until they are authorized. What their clients send meanwhile stays in the socket. */
export class HeldConnections {
  readonly #options: Pick<SourceOptions, 'authorizes'>;
  readonly #held = new Set<Socket>();
  #isClosed = false;

  constructor(options: Pick<SourceOptions, 'authorizes'>) {
    this.#options = options;
  }

  /** Calls `serve` once the connection is authorized, at once if nothing has to be asked; closes it otherwise. */
  admit(socket: Socket, serve: () => void): void {
    const answer = this.#options.authorizes?.(socket);
    if (answer === undefined) serve();
    else this.#hold(socket, answer, serve).catch(() => socket.destroy());
  }

  /** Closes the connections that wait, and further ones: they have no request that could be finished. */
  close(): void {
    this.#isClosed = true;
    for (const socket of this.#held) socket.destroy();
  }

  async #hold(socket: Socket, answer: Promise<boolean>, serve: () => void): Promise<void> {
    this.#held.add(socket);
    const fail = (): void => void socket.destroy();
    socket.on('error', fail);
    const isAllowed = await answer.catch(() => false);
    this.#held.delete(socket);
    if (!isAllowed || this.#isClosed) socket.destroy();
    // A connection that is closed has nobody to serve.
    if (socket.destroyed) return;
    serve();
    socket.off('error', fail);
  }
}
