import { randomBytes, randomUUID } from 'node:crypto';
import { messageOf } from '../../core/errors.ts';
import { LIMITS, type Limits } from '../../core/limits.ts';
import type { LineSink, Log } from '../../core/log.ts';
import type { RereadProblem } from '../kernel/files/reloaded-file.ts';
import { DroppedLinesReporter } from '../observe/access-log.ts';
import type { MetricValues } from '../observe/metrics/family.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import { PeriodicExport } from '../observe/otlp/metrics-export.ts';
import type { Gateway } from '../runtime/gateway.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Sharing } from '../runtime/runtime-settings.ts';
import type { LineFormats, PrimaryCalls } from './calls.ts';
import { Dispatcher } from './dispatcher.ts';
import { LinkClosed } from './link.ts';
import { MergedMetrics } from './merged-metrics.ts';
import type { Serving } from './serving.ts';
import { SharedPorts } from './shared-ports.ts';
import { HeldState } from './shared-state.ts';
import { SocketFolder } from './socket-folder.ts';
import { type WorkerEnd, WorkerProcess, type WorkerProcessOptions } from './worker-process.ts';
import { WorkerRequests } from './worker-requests.ts';
import { WorkerTraces } from './worker-traces.ts';

const SCOPE = 'agctl::workers';

export interface WorkerPoolOptions extends Pick<WorkerProcessOptions, 'program' | 'args' | 'env'> {
  /** Number of workers. */
  readonly count: number;
  /** Folder that paths of the configuration are relative to. */
  readonly folder: string;
  readonly log: Log;
  readonly sinks: { readonly log: LineSink; readonly accessLog: LineSink };
  readonly formats?: LineFormats;
  readonly limits?: Limits;
}

/** A worker could not be started, or refuses a configuration. */
export class WorkerError extends Error {
  /** What to do about it. */
  readonly help: string | undefined;

  constructor(message: string, help?: string) {
    super(message);
    this.name = 'WorkerError';
    this.help = help;
  }
}

/**
 * A gateway whose requests are handled by several processes. This process opens the ports and passes each connection to a
 * worker, holds what the workers share, and replaces workers that end.
 */
export class WorkerPool
  implements
    Serving,
    Pick<Gateway, 'listeners' | 'reload' | 'filesChanged' | 'isClosing' | 'close' | 'metrics'>
{
  isClosing = false;
  readonly traceSubscribers: WorkerTraces;
  readonly requests: WorkerRequests;
  readonly sharing: Sharing;
  readonly #options: WorkerPoolOptions;
  readonly #limits: Limits;
  readonly #state: HeldState;
  readonly #ports: SharedPorts;
  readonly #dispatcher: Dispatcher;
  readonly #merged = new MergedMetrics();
  readonly #droppedLines: DroppedLinesReporter;
  readonly #sockets: SocketFolder;
  /** All processes that have not ended. */
  readonly #workers = new Set<WorkerProcess>();
  #metricsExport: PeriodicExport | undefined;
  #runtime: Runtime | undefined;
  #generation = 0;
  #restarts = 0;
  /** Waits before the next restart, in ms, by number of the worker; 0 at first. */
  readonly #waits = new Map<number, number>();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** Starts of workers and reloads run one after the other: a worker starts with the active configuration. */
  #last: Promise<unknown> = Promise.resolve();
  #records = false;
  /** The process ends at once, after a second signal: so do the workers. */
  readonly #killAll = (): void => {
    for (const worker of this.#workers) worker.kill();
    this.#sockets.remove();
  };

  /** @throws WorkerError if there can be no folder for the workers' Unix sockets */
  constructor(options: WorkerPoolOptions) {
    try {
      this.#sockets = new SocketFolder();
    } catch (error) {
      throw new WorkerError(messageOf(error), 'set TMPDIR to a writable folder with a short path');
    }
    this.#options = options;
    this.#limits = options.limits ?? LIMITS;
    this.#state = new HeldState((key, event) => {
      for (const worker of this.#workers) worker.link.tell('event', key, event);
    });
    const own = { instance: randomUUID(), sessionKey: randomBytes(32) };
    this.sharing = { state: this.#state, ...own, index: 0, count: options.count };
    this.#dispatcher = new Dispatcher(() => this.processes);
    this.#ports = new SharedPorts((portId, socket) => this.#dispatcher.add({ portId, socket }));
    this.traceSubscribers = new WorkerTraces(() => this.processes);
    this.requests = new WorkerRequests(() => this.processes);
    this.#droppedLines = new DroppedLinesReporter(options.sinks.accessLog, options.log);
  }

  /** The workers that take connections, in order. */
  get processes(): readonly WorkerProcess[] {
    return [...this.#workers].filter(({ isReady }) => isReady).sort((a, b) => a.index - b.index);
  }

  get listeners(): Gateway['listeners'] {
    return this.#active.gateways.map((gateway) => ({ gateway, port: this.#ports.portOf(gateway.plan) }));
  }

  get metrics(): Metrics {
    return this.#active.metrics;
  }

  /**
   * Opens the ports and starts the workers.
   *
   * @throws DatabaseError if the database cannot be opened
   * @throws PortError if a port cannot be opened
   * @throws WorkerError if a worker cannot be started
   */
  async start(runtime: Runtime): Promise<void> {
    this.#runtime = runtime;
    process.once('exit', this.#killAll);
    const { metrics, gateways } = runtime;
    metrics.workers = () => ({ ready: this.processes.length, restarts: this.#restarts });
    metrics.accessLogLinesLost = () => this.#droppedLines.count;
    metrics.internalErrors = () => this.#options.log.internalErrors;
    const plans = gateways.map(({ plan }) => plan);
    try {
      // Before the workers do: then they find its tables.
      await runtime.database?.open();
      await this.#ports.open(plans);
      const numbers = Array.from({ length: this.#options.count }, (_, index) => index + 1);
      await Promise.all(numbers.map((index) => this.#start(index)));
    } catch (error) {
      await this.close();
      throw error;
    }
    for (const { plan } of gateways) this.#logPort('started bind', this.#ports.portOf(plan), plan.name);
    if (runtime.metricsExport !== undefined)
      this.#metricsExport = new PeriodicExport(
        runtime.metricsExport.interval,
        () => this.#runtime?.metricsExport,
        async () => this.#merged.read(await this.#readMetrics()),
      );
    this.#options.log.directives.onChange = (directives) => {
      for (const worker of this.processes) worker.link.tell('logDirectives', directives);
    };
  }

  /** Activates a configuration in all workers, or in none. */
  reload(next: Runtime): Promise<void> {
    return this.#inTurn(() => this.#reload(next));
  }

  async #reload(next: Runtime): Promise<void> {
    const previous = this.#active;
    const plans = next.gateways.map(({ plan }) => plan);
    const opened = await this.#ports.open(plans).catch(async (error: unknown) => {
      await next.components.close(previous.components);
      throw error;
    });
    const workers = this.processes;
    const problems = await Promise.all(
      workers.map((worker) =>
        worker.link.call('prepare', next.source.text, next.env, this.#ports.list).catch(ignoreEnd),
      ),
    );
    const problem = problems.find((each) => each !== undefined);
    if (problem !== undefined) {
      await Promise.all(workers.map((worker) => worker.link.call('abort').catch(ignoreEnd)));
      this.#ports.close(opened);
      await next.components.close(previous.components);
      throw new WorkerError(problem);
    }
    await Promise.all(workers.map((worker) => worker.link.call('commit').catch(ignoreEnd)));
    this.#runtime = next;
    const removed = this.#ports.without(plans);
    for (const plan of removed) this.#logPort('stopping bind', this.#ports.portOf(plan), plan.name);
    for (const plan of opened) this.#logPort('started bind', this.#ports.portOf(plan), plan.name);
    this.#ports.close(removed);
    const { unused, inherited } = next.components.replace(previous.components, next.source);
    for (const { value } of inherited) value.retired?.();
    await Promise.all(unused.map(({ value }) => value.close?.()));
  }

  async filesChanged(files: readonly string[]): Promise<RereadProblem> {
    // One that ends will not read them.
    const asked = this.processes.map(({ link }) => link.call('filesChanged', files).catch(() => undefined));
    // This process ends no TLS: its playground trusts the certificates that the workers show.
    for (const { tls } of this.#active.gateways.flatMap(({ entrances }) => entrances))
      for (const { file, changed } of tls?.reloads ?? []) if (files.includes(file)) void changed();
    return (await Promise.all(asked)).find((problem) => typeof problem === 'string');
  }

  recordRequests(): () => void {
    this.#records = true;
    for (const worker of this.processes) worker.link.tell('recordRequests');
    return () => undefined;
  }

  async renderMetrics(): Promise<string> {
    return this.#merged.render(await this.#readMetrics());
  }

  /** All metrics in the Prometheus protobuf format; undefined unless histograms are native. */
  async encodeMetrics(): Promise<Buffer | undefined> {
    return this.metrics.hasProtobuf ? this.#merged.encode(await this.#readMetrics()) : undefined;
  }

  #readMetrics(): Promise<(readonly MetricValues[])[]> {
    const workers = this.processes.map((worker) => worker.metrics().catch(() => worker.lastMetrics));
    return Promise.all([this.metrics.read(), ...workers]);
  }

  async close(): Promise<void> {
    if (this.isClosing) return;
    this.isClosing = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#ports.close(this.#ports.without([]));
    this.#dispatcher.close();
    await Promise.all([...this.#workers].map((worker) => this.#stop(worker)));
    await this.#metricsExport?.close();
    await this.#runtime?.close();
    await this.#runtime?.database?.close();
    this.#droppedLines.close();
    process.off('exit', this.#killAll);
    this.#sockets.remove();
  }

  get #active(): Runtime {
    if (this.#runtime === undefined) throw new Error('the pool has not started');
    return this.#runtime;
  }

  /** Lets a worker finish its requests. Kills it if it takes much longer than it may. */
  async #stop(worker: WorkerProcess): Promise<void> {
    const deadline = this.#runtime?.config.config.connectionTerminationDeadline ?? 0;
    const timer = setTimeout(
      () => worker.kill(),
      deadline + LIMITS.drainGrace + this.#limits.workerStopGrace,
    );
    worker.link.tell('drain');
    await worker.ended;
    clearTimeout(timer);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** Starts a worker. Rejects with `WorkerError`. */
  async #start(index: number): Promise<void> {
    this.#generation += 1;
    const sockets = this.#sockets.prefix(index, this.#generation);
    const { program, args, env, log, sinks, folder, count, formats } = this.#options;
    const worker = new WorkerProcess(index, sockets, {
      program,
      args,
      env,
      log,
      sinks,
      limits: this.#limits,
      calls: (caller) => this.#callsOf(caller),
      lostConnections: () => this.#dispatcher.dispatch(),
    });
    this.#workers.add(worker);
    void worker.ended.then((end) => this.#ended(worker, end));
    const { source, env: variables } = this.#active;
    try {
      await worker.start({
        index,
        count,
        text: source.text,
        file: source.file,
        folder,
        env: variables,
        ports: this.#ports.list,
        sockets,
        instance: this.sharing.instance,
        sessionKey: this.sharing.sessionKey.toString('hex'),
        logDirectives: log.directives.current,
        formats,
      });
    } catch (error) {
      worker.kill();
      const { code, signal } = await worker.ended;
      const reason = error instanceof LinkClosed ? `it ended with ${signal ?? code}` : messageOf(error);
      throw new WorkerError(`worker ${index} did not start: ${reason}`);
    }
    if (this.#records) worker.link.tell('recordRequests');
    // They may have changed while it started.
    worker.link.tell('logDirectives', log.directives.current);
    worker.link.tell('filesChanged', [...this.#active.reloadedFiles.keys()]);
    this.traceSubscribers.started(worker);
    this.#announcePeers();
    this.#dispatcher.dispatch();
  }

  #callsOf(worker: WorkerProcess): PrimaryCalls {
    return {
      drained: (metrics) => {
        worker.lastMetrics = metrics;
      },
      taken: () => {
        // The worker has a copy.
        worker.answered()?.socket.destroy();
        this.#dispatcher.dispatch();
      },
      refused: () => {
        const connection = worker.answered();
        if (connection !== undefined) this.#dispatcher.add(connection);
      },
      shared: (key, name, args) => this.#state.perform(key, name, args),
      traced: (id, event) => this.traceSubscribers.traced(worker, id, event),
      traceEnded: (id, requestId) => this.traceSubscribers.requestEnded(worker, id, requestId),
      failing: () => {
        worker.isReady = false;
        this.#replace(worker);
      },
    };
  }

  #ended(worker: WorkerProcess, { code, signal }: WorkerEnd): void {
    this.#workers.delete(worker);
    this.#sockets.removeSockets(worker.sockets);
    this.traceSubscribers.ended(worker);
    this.#merged.workerEnded(worker.lastMetrics);
    if (this.isClosing) {
      for (const { socket } of worker.takeBack()) socket.destroy();
      return;
    }
    this.#dispatcher.add(...worker.takeBack());
    this.#options.log.error(SCOPE, 'a worker has ended; its connections are lost', {
      worker: worker.index,
      pid: worker.pid,
      ...(signal === null ? { code } : { signal }),
      'uptime.ms': Math.round(performance.now() - worker.startedAt),
    });
    this.#replace(worker);
  }

  /** Starts another worker with the same number, once. */
  #replace(worker: WorkerProcess): void {
    this.#announcePeers();
    if (this.isClosing || worker.isReplaced || !worker.hasStarted) return;
    worker.isReplaced = true;
    this.#restarts += 1;
    const isShort = performance.now() - worker.startedAt < this.#limits.workerShortLife;
    this.#restart(worker.index, isShort ? (this.#waits.get(worker.index) ?? 0) : 0);
  }

  #restart(index: number, wait: number): void {
    const { workerRestartMin, workerRestartMax } = this.#limits;
    this.#waits.set(index, Math.min(workerRestartMax, Math.max(workerRestartMin, wait * 2)));
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#inTurn(async () => {
        if (!this.isClosing) await this.#start(index);
      }).then(
        () => this.#options.log.info(SCOPE, 'a worker was replaced', { worker: index }),
        (error: Error) => {
          if (this.isClosing) return;
          this.#options.log.error(SCOPE, 'a worker could not be replaced', { problem: error.message });
          this.#restart(index, this.#waits.get(index) ?? workerRestartMin);
        },
      );
    }, wait);
    this.#timers.add(timer);
  }

  #announcePeers(): void {
    const peers = Object.fromEntries(this.processes.map(({ index, sockets }) => [index, sockets]));
    for (const worker of this.processes) worker.link.tell('peers', peers);
  }

  #logPort(event: string, port: number, listener: string): void {
    this.#options.log.info('proxy::gateway', event, { bind: `bind/${port}`, listener });
  }
}

/** A worker that ends during a reload is replaced by one that starts with the active configuration. */
function ignoreEnd(error: unknown): undefined {
  if (!(error instanceof LinkClosed)) throw error;
  return undefined;
}
