import { LIMITS } from '../../core/limits.ts';
import type { TraceEvent } from '../../core/trace/event.ts';
import type { SubscribeOptions, TraceSubscription } from '../observe/trace-subscribers.ts';
import type { Serving } from './serving.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Traces of requests that workers handle. A trace counts the requests of all of them. */
export class WorkerTraces {
  readonly #workers: () => readonly WorkerProcess[];
  readonly #open = new Map<number, PooledTrace>();
  #lastId = 0;

  constructor(workers: () => readonly WorkerProcess[]) {
    this.#workers = workers;
  }

  get size(): number {
    return this.#open.size;
  }

  readonly subscribe: Serving['traceSubscribers']['subscribe'] = (options) => {
    if (this.size >= LIMITS.traceWatchers) return undefined;
    this.#lastId += 1;
    const id = this.#lastId;
    const trace = new PooledTrace(options, () => {
      this.#open.delete(id);
      for (const worker of this.#workers()) worker.link.tell('untrace', id);
    });
    this.#open.set(id, trace);
    const subscribed = this.#workers().map((worker) => this.#begin(worker, id, trace));
    return Object.assign(trace, { ready: Promise.all(subscribed).then(() => undefined) });
  };

  /** A worker has started: it takes part in all traces. */
  started(worker: WorkerProcess): void {
    for (const [id, trace] of this.#open) void this.#begin(worker, id, trace);
  }

  /** A worker has ended, and with it the traces of its requests. */
  ended(worker: WorkerProcess): void {
    for (const trace of [...this.#open.values()]) trace.workerEnded(worker);
  }

  traced(worker: WorkerProcess, id: number, event: TraceEvent): void {
    this.#open.get(id)?.event(worker, event);
  }

  requestEnded(worker: WorkerProcess, id: number, requestId: string): void {
    this.#open.get(id)?.requestEnded(worker, requestId);
  }

  async #begin(worker: WorkerProcess, id: number, trace: PooledTrace): Promise<void> {
    const { expression, follow = false, count } = trace.options;
    // A worker that ends meanwhile traces nothing.
    await worker.link.call('trace', id, { expression, follow, count }).catch(() => undefined);
  }
}

/** One trace. The first requests whose events arrive are its own; further ones that a worker has begun are ignored. */
class PooledTrace implements TraceSubscription {
  readonly options: SubscribeOptions;
  readonly #close: () => void;
  /** Ids of its requests for its reader, by worker and the worker's own id. */
  readonly #requests = new Map<string, { readonly worker: WorkerProcess; readonly id: string }>();
  readonly #isSingle: boolean;
  #remaining: number;
  #lastId = 0;

  constructor(options: SubscribeOptions, close: () => void) {
    this.options = options;
    this.#close = close;
    this.#remaining = options.count ?? (options.follow === true ? Number.POSITIVE_INFINITY : 1);
    this.#isSingle = this.#remaining === 1;
  }

  cancel(): void {
    this.#close();
  }

  event(worker: WorkerProcess, { requestId, ...event }: TraceEvent): void {
    const key = keyOf(worker, requestId);
    let request = this.#requests.get(key);
    if (request === undefined) {
      if (this.#remaining === 0) return;
      this.#remaining -= 1;
      this.#lastId += 1;
      request = { worker, id: String(this.#lastId) };
      this.#requests.set(key, request);
    }
    this.options.sink(this.#isSingle ? event : { ...event, requestId: request.id });
  }

  requestEnded(worker: WorkerProcess, requestId: string): void {
    const key = keyOf(worker, requestId);
    const request = this.#requests.get(key);
    if (request === undefined) return;
    this.#requests.delete(key);
    if (!this.#isSingle) this.options.requestEnded?.(request.id);
    if (this.#remaining > 0 || this.#requests.size > 0) return;
    this.#close();
    this.options.ended();
  }

  workerEnded(worker: WorkerProcess): void {
    for (const [key, request] of [...this.#requests])
      if (request.worker === worker) this.requestEnded(worker, key.slice(key.indexOf('/') + 1));
  }
}

const keyOf = ({ pid }: WorkerProcess, requestId = ''): string => `${pid}/${requestId}`;
