import { AppError } from '../../core/errors.ts';
import { errorCode } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import { forwardToWorker } from '../transport/forward.ts';
import { createUpstream, type Upstream } from '../transport/upstream/upstream.ts';
import type { PeerList } from './calls.ts';

/** Connections to the other workers, over their Unix sockets. */
export class Peers {
  #peers: PeerList = {};
  /** By path of the socket. */
  readonly #upstreams = new Map<string, Upstream>();
  /** Called once when the list changes. */
  readonly #waiting = new Set<() => void>();

  /**
   * Called when a worker has started or ended. Connections to one that is gone are left to it: a worker may still finish
   * its requests, and those that have not reached it fail as not sent.
   */
  set(peers: PeerList): void {
    this.#peers = peers;
    const prefixes = Object.values(peers);
    for (const path of this.#upstreams.keys())
      if (!prefixes.some((prefix) => path.startsWith(prefix))) this.#upstreams.delete(path);
    for (const changed of [...this.#waiting]) changed();
  }

  /**
   * Lets worker `index` answer a request that came to the port with the id `portId`. While that worker is being replaced, the
   * request waits for up to `LIMITS.workerWait`, unless it may already have been sent.
   *
   * @throws AppError if the worker does not run or does not answer
   */
  async forward(ctx: RequestContext, index: number, portId: string): Promise<Reply> {
    const deadline = performance.now() + LIMITS.workerWait;
    for (;;) {
      const prefix = this.#peers[index];
      if (prefix !== undefined) {
        try {
          return await forwardToWorker(ctx, this.#upstream(`${prefix}${portId}`));
        } catch (error) {
          if (!wasNotSent(error)) throw error;
        }
      }
      if (!(await this.#changed(prefix, index, deadline)))
        throw new AppError('overloaded', {
          message: 'the worker with this session is not running; try again later',
          headers: ['retry-after', '1'],
        });
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#upstreams.values()].map((upstream) => upstream.close()));
  }

  #upstream(socketPath: string): Upstream {
    const known = this.#upstreams.get(socketPath);
    if (known !== undefined) return known;
    const made = createUpstream({ origin: 'http://worker', socketPath });
    this.#upstreams.set(socketPath, made);
    return made;
  }

  /** Resolves to whether the worker was started again before the deadline. */
  async #changed(prefix: string | undefined, index: number, deadline: number): Promise<boolean> {
    while (performance.now() < deadline) {
      const current = this.#peers[index];
      if (current !== undefined && current !== prefix) return true;
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          this.#waiting.delete(done);
          resolve();
        };
        const timer = setTimeout(done, deadline - performance.now());
        this.#waiting.add(done);
      });
    }
    return false;
  }
}

/** The socket has no listener: its worker has ended. */
function wasNotSent(error: unknown): boolean {
  const code = error instanceof AppError ? errorCode(error.cause) : '';
  return code === 'ECONNREFUSED' || code === 'ENOENT';
}
