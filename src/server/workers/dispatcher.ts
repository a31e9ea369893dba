import type { Socket } from 'node:net';
import { LIMITS } from '../../core/limits.ts';
import type { WorkerProcess } from './worker-process.ts';

/**
 * Divides new connections among the workers: in turn, among those that have taken most of what was passed to them. So a
 * worker whose event loop is blocked gets one connection, and the others get the rest. Without a worker that takes them,
 * connections wait.
 */
export class Dispatcher {
  readonly #workers: () => readonly WorkerProcess[];
  #waiting: { readonly portId: string; readonly socket: Socket }[] = [];
  #next = 0;

  constructor(workers: () => readonly WorkerProcess[]) {
    this.#workers = workers;
  }

  /** Number of connections that no worker has got yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  accepted(portId: string, socket: Socket): void {
    if (this.#waiting.length >= LIMITS.waitingConnections) {
      socket.destroy();
      return;
    }
    this.#waiting.push({ portId, socket });
    this.dispatch();
  }

  /** Called when a worker can take connections. */
  dispatch(): void {
    while (this.#waiting.length > 0) {
      const worker = this.#choose();
      if (worker === undefined) return;
      const first = this.#waiting.shift();
      // A client that has left while it waited needs no worker.
      if (first !== undefined && !first.socket.destroyed) worker.pass(first.portId, first.socket);
    }
  }

  close(): void {
    for (const { socket } of this.#waiting) socket.destroy();
    this.#waiting = [];
  }

  #choose(): WorkerProcess | undefined {
    const ready = this.#workers().filter(({ passing }) => passing < LIMITS.workerPassing);
    const fewest = Math.min(...ready.map(({ passing }) => passing));
    const quickest = ready.filter(({ passing }) => passing === fewest);
    this.#next += 1;
    return quickest[this.#next % Math.max(1, quickest.length)];
  }
}
