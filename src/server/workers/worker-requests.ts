import { LIMITS } from '../../core/limits.ts';
import { type RecentRequest, RecentRequests } from '../observe/recent-requests.ts';
import type { Field } from '../observe/request-fields.ts';
import type { RequestHistory } from './serving.ts';
import type { WorkerProcess } from './worker-process.ts';

/** The last requests of all workers, read from them when somebody looks. */
export class WorkerRequests extends RecentRequests implements RequestHistory {
  readonly #workers: () => readonly WorkerProcess[];
  /** The last request that was read from each worker. */
  readonly #read = new WeakMap<WorkerProcess, number>();
  #updating: Promise<void> | undefined;
  #watchers = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(workers: () => readonly WorkerProcess[]) {
    super();
    this.#workers = workers;
  }

  update(): Promise<void> {
    this.#updating ??= this.#update().finally(() => {
      this.#updating = undefined;
    });
    return this.#updating;
  }

  override watch(watcher: (request: RecentRequest) => void): () => void {
    const leave = super.watch(watcher);
    this.#watchers += 1;
    this.#timer ??= setInterval(() => void this.update(), LIMITS.workerRequestInterval).unref();
    return () => {
      leave();
      this.#watchers -= 1;
      if (this.#watchers > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  async #update(): Promise<void> {
    const each = await Promise.all(
      this.#workers().map(async (worker) => {
        const found = await worker.recentRequests(this.#read.get(worker) ?? 0).catch(() => []);
        const last = found.at(-1)?.id;
        if (last !== undefined) this.#read.set(worker, last);
        return found;
      }),
    );
    const inOrder = each.flat().sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
    for (const { time, fields } of inOrder) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a worker has taken them from its own access log
      const all = Object.entries(fields) as Field[];
      this.addFinished(all, Date.parse(time));
    }
  }
}
