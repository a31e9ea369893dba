import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { LineFormat, LineSink, Log } from '../../core/log.ts';
import type { RereadProblem } from '../kernel/files/reloaded-file.ts';
import { handleRequest } from '../kernel/pipeline.ts';
import { replyToError } from '../kernel/request/error-response.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import { configuredParameters, logReads } from '../kernel/request/shared-slots.ts';
import { callPrices } from '../llm/call/budget.ts';
import { DroppedLinesReporter, type RequestFinishedListener } from '../observe/access-log.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import type { Tracing } from '../observe/otlp/tracing.ts';
import type { TraceSubscribers } from '../observe/trace-subscribers.ts';
import { Recorder, unrecorded } from '../record/recorder.ts';
import type { FetchClient } from '../transport/fetch/fetch-requests.ts';
import type { RetiredComponents } from './component-cache.ts';
import { FinishedRequests } from './finished-requests.ts';
import { type GatewaySockets, openPorts } from './open-ports.ts';
import { type OpenRequestList, OpenRequests } from './open-requests.ts';
import {
  type ActiveConfig,
  activeConfig,
  activeConfigFor,
  type Port,
  type PortEvents,
  portKey,
  tunnelTo,
} from './port.ts';
import { type RequestEndedListener, RequestRecords } from './request-records.ts';
import type { GatewayRuntime, Runtime } from './runtime.ts';
import { openSharedStore } from './shared-store.ts';
import { Telemetry } from './telemetry.ts';
import { isForwarded, type WorkerRole } from './worker-role.ts';

export interface GatewayOptions {
  readonly runtime: Runtime;
  readonly log: Log;
  /** Destination of access-log lines. */
  readonly accessLog: LineSink;
  /** Format of access-log lines. Default: `config.logging.format`. */
  readonly accessLogFormat?: LineFormat | undefined;
  /** If the gateway is one of several workers. */
  readonly worker?: WorkerRole | undefined;
  /** Default: `configured`. */
  readonly sockets?: GatewaySockets;
  /** What sees requests before the gateway and replies after it, in place of what the ports would call. */
  readonly tap?: ((events: PortEvents) => PortEvents) | undefined;
}

/** A compiled configuration whose ports are open, and which is not active yet. */
export interface PreparedReload {
  /** Activates it, in one turn of the event loop. */
  commit(): void;
  /** Closes what was opened for it. */
  abort(): Promise<void>;
}

/** A running gateway. */
export interface Gateway {
  /** The open ports, in the order of the configuration. */
  readonly listeners: readonly { readonly gateway: GatewayRuntime; readonly port: number }[];
  /** Calls `listener` after every finished request until the returned function is called. */
  onRequestFinished(listener: RequestFinishedListener): () => void;
  /** Calls `listener` after every request, until the returned function is called. */
  onRequestEnded(listener: RequestEndedListener): () => void;
  readonly metrics: Metrics;
  /** Streams of `/debug/trace`. */
  readonly traceSubscribers: TraceSubscribers;
  /**
   * Answers a request of the program that the gateway runs in, as one that was received on the port of that gateway of the
   * configuration. Throws if there is none of this name; otherwise as `FetchRequests.handle`.
   */
  handle(request: Request, client: FetchClient, gateway: string): Promise<Response>;
  /** Requests whose response has not ended. */
  readonly openRequests: OpenRequestList;
  /** Open connections of each gateway. */
  connections(): Promise<readonly { readonly name: string; readonly count: number }[]>;
  /**
   * Activates a runtime that was compiled with the current one as `previous`. Ports of both stay open, and in-flight
   * requests keep their configuration. Rejects with `PortError` if a new port cannot be opened: then nothing has
   * changed, and the new runtime is closed.
   */
  reload(next: Runtime): Promise<void>;
  /** The first half of `reload`, for workers that activate a configuration together. Rejects as `reload` does. */
  prepare(next: Runtime): Promise<PreparedReload>;
  /**
   * Files that components of the active configuration reload themselves have changed. `files`: absolute paths. Resolves to why one of them
   * cannot be used, if so. Never rejects.
   */
  filesChanged(files: readonly string[]): Promise<RereadProblem>;
  /** Whether a shutdown has started. */
  readonly isClosing: boolean;
  /**
   * Shuts down: stops accepting connections, waits for open requests up to `config.connectionTerminationDeadline`
   * (10 s by default), then closes all components, including child processes.
   */
  close(): Promise<void>;
}

/** Opens all ports of the runtime. If one cannot be opened, closes the others and rejects with `PortError`. */
export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  const gateway = new RunningGateway(options);
  await gateway.start();
  return gateway;
}

export class RunningGateway implements Gateway {
  readonly metrics: Metrics;
  readonly #log: Log;
  readonly #records: RequestRecords;
  readonly #droppedLines: DroppedLinesReporter;
  readonly #requests = new OpenRequests();
  readonly #finished = new FinishedRequests((ctx, status, bodyBytes) => {
    this.#requests.ended(ctx);
    this.#records.ended(ctx, status, bodyBytes);
  });
  readonly #events: PortEvents;
  readonly #isTapped: boolean;
  readonly #worker: WorkerRole | undefined;
  readonly #sockets: GatewaySockets;
  readonly #recorder: Recorder | undefined;
  readonly #telemetry: Telemetry;
  #runtime: Runtime;
  #ports = new Map<string, Port>();
  /** Resources of previous runtimes that are still being closed. */
  readonly #retiring = new Set<Promise<void>>();
  isClosing = false;

  constructor(options: GatewayOptions) {
    const { runtime, log, accessLog: sink, accessLogFormat, worker, sockets = 'configured' } = options;
    this.#runtime = runtime;
    this.#sockets = sockets;
    this.#worker = worker;
    this.#log = log;
    this.metrics = runtime.metrics;
    const format = accessLogFormat ?? runtime.config.config.logging.format;
    this.#droppedLines = new DroppedLinesReporter(sink, log);
    this.metrics.accessLogLinesLost = () => this.#droppedLines.count;
    this.metrics.internalErrors = () => log.internalErrors;
    this.metrics.certificates = () => this.#runtime.inspection.certificates.map((read) => read());
    this.#telemetry = new Telemetry(this.metrics, log);
    this.#recorder = this.#openRecorder(runtime);
    this.#records = new RequestRecords({ sink, format, log, recorder: this.#recorder });
    const events: PortEvents = {
      handle: (ctx, active) => this.#handle(ctx, active),
      replied: (ctx, reply) => this.#records.replied(ctx, reply),
      ended: (ctx, status, bodyBytes) => this.#finished.add(ctx, status, bodyBytes),
      relayed: (connection, { runtime: active }) => this.#records.relayed(connection, active),
      tunnel: (port) => tunnelTo(port, this.#ports.values()),
    };
    this.#events = options.tap?.(events) ?? events;
    this.#isTapped = options.tap !== undefined;
  }

  async start(): Promise<void> {
    let tracing: Tracing | undefined;
    try {
      await this.#runtime.database?.open();
      tracing = await this.#telemetry.open(this.#runtime);
      await openSharedStore(this.#runtime.settings, this.metrics);
      this.#ports = await this.#openPorts(this.#runtime, tracing);
    } catch (error) {
      await tracing?.close();
      await this.#recorder?.close();
      await this.#runtime.close();
      await this.#runtime.database?.close();
      throw error;
    }
    this.#telemetry.use(this.#runtime, tracing);
    this.#runtime.components.served();
    // With workers, the process that has opened the ports exports those of all.
    if (this.#worker === undefined) this.#telemetry.exportMetrics(() => this.#runtime);
  }

  async reload(next: Runtime): Promise<void> {
    const prepared = await this.prepare(next);
    prepared.commit();
    // A shutdown that started meanwhile has closed only the previous ports: the new ones would keep the process alive.
    if (this.isClosing) await this.close();
  }

  async prepare(next: Runtime): Promise<PreparedReload> {
    const previous = this.#runtime;
    let tracing = this.#telemetry.tracing;
    const abort = async (): Promise<void> => {
      if (tracing !== this.#telemetry.tracing) await tracing?.close();
      await next.components.close(previous.components);
    };
    try {
      if (next.tracing !== previous.tracing) tracing = await this.#telemetry.open(next);
      const ports = await this.#openPorts(next, tracing);
      const opened = [...ports].filter(([key]) => !this.#ports.has(key)).map(([, { listener }]) => listener);
      return {
        commit: () => this.#activate(next, ports, tracing),
        abort: async () => {
          await Promise.all(opened.map((listener) => listener.close(0)));
          await abort();
        },
      };
    } catch (error) {
      await abort();
      throw error;
    }
  }

  /** Without an `await`: all ports switch in the same event-loop turn. */
  #activate(next: Runtime, ports: Map<string, Port>, tracing: Tracing | undefined): void {
    const previous = this.#runtime;
    const removed = [...this.#ports].filter(([key]) => !ports.has(key)).map(([, port]) => port);
    const retired = next.components.replace(previous.components, next.source);
    const tracingBefore = this.#telemetry.tracing;
    for (const { plan } of next.gateways) {
      const port = this.#ports.get(portKey(plan));
      if (port !== undefined)
        port.active = activeConfigFor(next, plan.name, tracing, this.#worker, port.listener.port);
    }
    this.#ports = ports;
    this.#runtime = next;
    this.#telemetry.use(next, tracing);
    next.components.served();
    this.#retirePrevious(removed, retired, tracingBefore === tracing ? undefined : tracingBefore);
  }

  async filesChanged(files: readonly string[]): Promise<RereadProblem> {
    // A certificate and its key are read once if both have changed.
    const all = new Set(files.flatMap((file) => this.#runtime.reloadedFiles.get(file) ?? []));
    const problems = await Promise.all([...all].map((changed) => changed()));
    return problems.find((problem) => problem !== undefined);
  }

  get listeners(): Gateway['listeners'] {
    return [...this.#ports.values()].map(({ active, listener }) => ({
      gateway: active.gateway,
      port: listener.port,
    }));
  }

  get traceSubscribers(): TraceSubscribers {
    return this.#records.traceSubscribers;
  }

  get openRequests(): OpenRequestList {
    return this.#requests;
  }

  async handle(request: Request, client: FetchClient, gateway: string): Promise<Response> {
    const port = [...this.#ports.values()].find(({ active }) => active.gateway.plan.name === gateway);
    if (port === undefined) throw new Error(`the configuration has no gateway ${gateway}`);
    return port.fetched.handle(request, client);
  }

  onRequestFinished(listener: RequestFinishedListener): () => void {
    return this.#records.accessLog.onRequestFinished(listener);
  }

  onRequestEnded(listener: RequestEndedListener): () => void {
    return this.#records.onEnded(listener);
  }

  connections(): ReturnType<Gateway['connections']> {
    return Promise.all(
      [...this.#ports.values()].map(async ({ active, listener }) => ({
        name: active.gateway.plan.name,
        count: await listener.connections(),
      })),
    );
  }

  async close(): Promise<void> {
    this.isClosing = true;
    const closed = this.#closePorts([...this.#ports.values()]);
    this.#runtime.drain();
    await Promise.all([...closed, ...this.#retiring]);
    // Responses that their clients have left end a little later than their connections, and a tap wants to see that.
    if (this.#isTapped) await this.#requests.afterAll(LIMITS.drainGrace);
    await this.#finished.recorded();
    // At the same time: a collector may hang.
    await Promise.all([this.#telemetry.close(), this.#runtime.accessLogExport?.close()]);
    await this.#recorder?.close();
    await this.#runtime.close();
    await this.#runtime.database?.close();
    this.#droppedLines.close();
  }

  /** Drains ports. Requests that are still open at the deadline, on any of them, get an error response and are aborted. */
  #closePorts(ports: readonly Port[]): Promise<void>[] {
    const numbers = new Set(ports.map(({ listener }) => listener.port));
    let isAnswering: boolean | undefined;
    const beforeAbort = (): boolean => {
      isAnswering ??= this.#requests.abort(numbers, this.#log);
      return isAnswering;
    };
    return ports.flatMap((port) =>
      [port.listener, port.fetched].map((closed) => closed.close(this.#drainTime, beforeAbort)),
    );
  }

  get #drainTime(): number {
    return this.#runtime.config.config.connectionTerminationDeadline;
  }

  #handle(ctx: RequestContext, active: ActiveConfig): Promise<Reply> {
    const { runtime } = active;
    activeConfig.set(ctx, active);
    const { parameters } = runtime.secretNames;
    if (parameters.size > 0) configuredParameters.set(ctx, parameters);
    logReads.set(ctx, runtime.logReads);
    callPrices.set(ctx, runtime.catalog);
    runtime.trustedProxies?.apply(ctx);
    this.#requests.began(ctx);
    if (runtime.record?.refusesOnFailure !== true) return this.#dispatch(ctx, active);
    const isStoring = this.#recorder?.isStoring() ?? false;
    if (isStoring === true) return this.#dispatch(ctx, active);
    return Promise.resolve(isStoring).then((isRecorded) =>
      isRecorded ? this.#dispatch(ctx, active) : replyToError(unrecorded(), ctx),
    );
  }

  /** In this process, or in the worker that has the state of the request. */
  #dispatch(ctx: RequestContext, active: ActiveConfig): Promise<Reply> {
    const { runtime } = active;
    const worker = active.placement?.(ctx);
    if (worker !== undefined) return this.#forward(ctx, worker);
    this.#records.observe(ctx, runtime);
    if (active.gateway.plan.isTunnel === true)
      return Promise.resolve(replyToError(new AppError('method_not_allowed'), ctx));
    return handleRequest(ctx, active.gateway);
  }

  async #forward(ctx: RequestContext, worker: number): Promise<Reply> {
    isForwarded.set(ctx, true);
    try {
      if (this.#worker === undefined) throw new Error('only a worker has others to forward to');
      return await this.#worker.forward(ctx, worker);
    } catch (error) {
      // Nobody else logs it.
      isForwarded.set(ctx, false);
      return replyToError(ctx.abortedWith ?? error, ctx);
    }
  }

  #openPorts(runtime: Runtime, tracing: Tracing | undefined): Promise<Map<string, Port>> {
    return openPorts(runtime, this.#ports, {
      tracing,
      events: this.#events,
      worker: this.#worker,
      sockets: this.#sockets,
      opened: (port) => this.#logBind('started bind', port),
    });
  }

  /** Closes what only in-flight requests still use, once they have ended or the drain time is over. */
  #retirePrevious(
    removed: readonly Port[],
    { unused, inherited }: RetiredComponents,
    tracing: Tracing | undefined,
  ): void {
    if (removed.length + unused.length + inherited.length === 0 && tracing === undefined) return;
    for (const { value } of unused) value.drain?.();
    for (const port of removed) this.#logBind('stopping bind', port);
    const closed = this.#closePorts(removed);
    const retired = Promise.all([...closed, this.#requests.afterAll(this.#drainTime)])
      .then(async () => {
        for (const { value } of inherited) value.retired?.();
        await Promise.all(unused.map(({ value }) => value.close?.()));
        await this.#telemetry.retire(tracing);
        this.#log.debug('proxy::gateway', 'closed resources of the previous configuration', {
          ports: removed.length,
          components: unused.length,
        });
      })
      .finally(() => this.#retiring.delete(retired));
    this.#retiring.add(retired);
  }

  /** In a worker, the process that has opened the port logs it. Without sockets, none was opened. */
  #logBind(event: string, { listener, active }: Port): void {
    if (this.#worker !== undefined || this.#sockets === 'none') return;
    const bind = `bind/${listener.port}`;
    this.#log.info('proxy::gateway', event, { bind, listener: active.gateway.plan.name });
  }

  #openRecorder({ database, settings, inspection }: Runtime): Recorder | undefined {
    if (database === undefined) return undefined;
    const recorder = new Recorder({
      database,
      log: this.#log,
      limits: settings.limits,
      // One process of a gateway deletes old records.
      deletesOld: (this.#worker?.index ?? 1) === 1,
      retention: () => this.#runtime.record?.retention ?? Number.POSITIVE_INFINITY,
    });
    inspection.bounds.push(...recorder.bounds());
    this.metrics.records = () => recorder;
    return recorder;
  }
}
