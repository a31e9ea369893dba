import { LIMITS } from '../../core/limits.ts';
import type { Connection, WorkerProcess } from './worker-process.ts';

/**
 * Divides new connections among the workers: in turn, among those that have taken most of what was passed to them. So a
 * worker whose event loop is blocked gets one connection, and the others get the rest. Without a worker that takes them,
 * connections wait.
 */
export class Dispatcher {
  readonly #workers: () => readonly WorkerProcess[];
  #waiting: Connection[] = [];
  #next = 0;

  constructor(workers: () => readonly WorkerProcess[]) {
    this.#workers = workers;
  }

  /** Number of connections that no worker has got yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Adds connections that need a worker. */
  add(...connections: readonly Connection[]): void {
    for (const connection of connections) {
      if (this.#waiting.length < LIMITS.waitingConnections) this.#waiting.push(connection);
      else connection.socket.destroy();
    }
    this.dispatch();
  }

  /** Called when a worker can take connections. */
  dispatch(): void {
    while (this.#waiting.length > 0) {
      const worker = this.#choose();
      if (worker === undefined) return;
      const first = this.#waiting.shift();
      if (first !== undefined) worker.pass(first);
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
