import { rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname } from 'node:path';
import { fileSink } from '../../core/file-sink.ts';
import { createLog, type LineSink, type Log } from '../../core/log.ts';
import { renderConcise } from '../../core/render/machine.ts';
import type { Environment } from '../../core/yaml/env.ts';
import { type LoadedConfig, loadConfigText } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { compileTraceFilter } from '../observe/trace-subscribers.ts';
import { type PreparedReload, type RunningGateway, startGateway } from '../runtime/gateway.ts';
import { buildRuntime, type Runtime } from '../runtime/runtime.ts';
import type { Acceptor } from '../transport/listener/injected-connections.ts';
import type { PortList, PrimaryCalls, TraceRequest, WorkerCalls, WorkerStart } from './calls.ts';
import { type IpcPort, Link } from './link.ts';
import { OwnProcess } from './own-process.ts';
import { Peers } from './peers.ts';
import { RemoteState } from './shared-state.ts';

const STDOUT = 1;
const STDERR = 2;

/** What a worker is made of, once the primary process has sent its configuration. */
interface Running {
  readonly start: WorkerStart;
  readonly log: Log;
  readonly sinks: { readonly log: LineSink; readonly accessLog: LineSink };
  readonly gateway: RunningGateway;
  readonly ports: WorkerPorts;
  readonly peers: Peers;
  readonly view: OwnProcess;
}

/**
 * A worker process: handles the requests of connections that the primary process passes to it, and answers that process's
 * calls (`WorkerCalls`). It drains and exits on request, or when the primary process has disconnected.
 */
export class Worker {
  readonly #link: Link<WorkerCalls, PrimaryCalls>;
  readonly #state: RemoteState;
  #running: Running | undefined;
  #runtime: Runtime | undefined;
  #prepared: { readonly reload: PreparedReload; readonly runtime: Runtime } | undefined;
  readonly #traces = new Map<number, () => void>();
  readonly #ended = Promise.withResolvers<void>();
  #draining: Promise<void> | undefined;

  constructor(port: IpcPort) {
    this.#link = new Link(port, this.#calls(), (id, socket) => this.#take(id, socket));
    this.#state = new RemoteState(this.#link);
  }

  /** Resolves when open requests have finished and everything is closed. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Log outputs, to be flushed before the process ends. */
  get sinks(): readonly LineSink[] {
    return Object.values(this.#running?.sinks ?? {});
  }

  /** A bug: the error is logged, the primary process starts another worker, and this one finishes its requests. */
  failed(error: unknown): void {
    const problem = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#running?.log.error('agctl', 'internal error, stopping', { problem });
    this.#link.tell('failing');
    void this.drain();
  }

  /** Finishes open requests, then closes everything. */
  drain(): Promise<void> {
    this.#draining ??= this.#drain();
    return this.#draining;
  }

  /** The primary process has ended without a word: nobody else removes the folder of the sockets. */
  async primaryEnded(): Promise<void> {
    if (this.#draining !== undefined) return;
    await this.drain();
    const sockets = this.#running?.start.sockets;
    if (sockets !== undefined) rmSync(dirname(sockets), { recursive: true, force: true });
  }

  async #drain(): Promise<void> {
    for (const cancel of this.#traces.values()) cancel();
    const running = this.#running;
    await running?.gateway.close();
    // The last export of metrics counts the requests that were open at its beginning.
    if (running !== undefined && this.#runtime?.metricsExport !== undefined)
      await this.#link.call('drained', await running.view.metrics()).catch(() => undefined);
    await running?.peers.close();
    this.#ended.resolve();
  }

  #calls(): WorkerCalls {
    const view = (): OwnProcess => this.#started.view;
    return {
      start: (start) => this.#start(start),
      ping: () => undefined,
      prepare: (text, env, ports) => this.#prepare(text, env, ports),
      commit: () => this.#commit(),
      abort: () => this.#abort(),
      filesChanged: (files) => this.#started.gateway.filesChanged(files),
      drain: () => this.drain(),
      peers: (peers) => this.#started.peers.set(peers),
      logDirectives: (directives) => this.#started.log.directives.replace(directives),
      event: (key, event) => this.#state.received(key, event),
      recordRequests: () => void view().recordRequests(),
      trace: (id, request) => this.#trace(id, request),
      untrace: (id) => {
        this.#traces.get(id)?.();
        this.#traces.delete(id);
      },
      activity: () => view().activity(),
      bounds: () => view().bounds(),
      memory: () => view().memory(),
      tasks: () => view().tasks(),
      metrics: () => view().metrics(),
      openRequests: () => view().openRequests(),
      recentRequests: (afterId) => view().recentRequests(afterId),
      services: (step, from, to) => view().services(step, from, to),
      cpuSamples: (seconds, frequency) => view().cpuSamples(seconds, frequency),
      heapSamples: (seconds) => view().heapSamples(seconds),
      stopSampling: () => view().stopSampling(),
    };
  }

  get #started(): Running {
    if (this.#running === undefined) throw new Error('the worker has not started');
    return this.#running;
  }

  async #start(start: WorkerStart): Promise<void> {
    const { index, count } = start;
    const loaded = this.#load(start.text, start.env, start);
    const { logging } = loaded.config.config;
    const sinks = { log: fileSink(STDERR), accessLog: fileSink(STDOUT) };
    const log = createLog(sinks.log, start.logDirectives, start.formats?.log ?? logging.format);
    const runtime = await this.#compile(loaded, start.env, start, log);
    const ports = new WorkerPorts(start.sockets, start.ports);
    const peers = new Peers();
    const gateway = await startGateway({
      runtime,
      log,
      accessLog: sinks.accessLog,
      accessLogFormat: start.formats?.accessLog,
      worker: {
        index,
        count,
        acceptor: (key) => ports.acceptor(key),
        forward: (ctx, to) => peers.forward(ctx, to, ports.idOf(ctx.client.local.localPort ?? 0)),
      },
    });
    this.#runtime = runtime;
    const view = new OwnProcess({
      name: `worker ${index}`,
      gateway,
      runtime: () => this.#runtime ?? runtime,
      sinks,
    });
    this.#running = { start, log, sinks, gateway, ports, peers, view };
  }

  /** @throws Error with the problems of the configuration, which the primary process has found valid */
  #load(text: string, env: Environment, { file }: WorkerStart): LoadedConfig & { readonly config: Config } {
    const loaded = loadConfigText(text, file, env);
    if (loaded.config === undefined) throw new Error(renderConcise(loaded.diagnostics));
    return { ...loaded, config: loaded.config };
  }

  async #compile(
    { config, source }: LoadedConfig & { readonly config: Config },
    env: Environment,
    { folder, instance, sessionKey, index, count }: WorkerStart,
    log: Log,
  ): Promise<Runtime> {
    const { runtime, diagnostics } = await buildRuntime({
      config,
      source,
      log,
      folder,
      env,
      previous: this.#runtime,
      sharing: { state: this.#state, instance, sessionKey: Buffer.from(sessionKey, 'hex'), index, count },
    });
    const errors = diagnostics.filter(({ severity }) => severity === 'error');
    if (errors.length === 0) return runtime;
    void runtime.components.close(this.#runtime?.components);
    throw new Error(renderConcise(errors));
  }

  async #prepare(text: string, env: Environment, ports: PortList): Promise<string | undefined> {
    const { start, log, gateway, ports: own } = this.#started;
    await this.#abort();
    try {
      own.set(ports);
      const runtime = await this.#compile(this.#load(text, env, start), env, start, log);
      this.#prepared = { reload: await gateway.prepare(runtime), runtime };
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  #commit(): void {
    if (this.#prepared === undefined) return;
    this.#runtime = this.#prepared.runtime;
    this.#prepared.reload.commit();
    this.#prepared = undefined;
  }

  async #abort(): Promise<void> {
    const prepared = this.#prepared;
    this.#prepared = undefined;
    await prepared?.reload.abort();
  }

  #take(id: string, socket: Socket | undefined): void {
    if (this.#running === undefined || this.#draining !== undefined) {
      // Closes only the copy of this process.
      socket?.destroy();
      this.#link.tellNow('refused');
      return;
    }
    // Before anything is read: without this message, another worker gets the connection if this one ends.
    this.#link.tellNow('taken');
    // The client may have left on the way.
    if (socket !== undefined) this.#running.ports.take(id, socket);
  }

  #trace(id: number, { expression, follow, count }: TraceRequest): void {
    const compiled = expression === undefined ? undefined : compileTraceFilter(expression);
    const subscription = this.#started.gateway.traceSubscribers.subscribe({
      // The primary process has compiled it before.
      filter: compiled !== undefined && 'filter' in compiled ? compiled.filter : undefined,
      follow,
      count,
      sink: (event) => this.#link.tell('traced', id, event),
      requestEnded: (requestId) => this.#link.tell('traceEnded', id, requestId),
      // The requests of one that traces several have ended with `requestEnded`.
      ended: () => {
        if ((count ?? 1) === 1) this.#link.tell('traceEnded', id, '');
      },
    });
    if (subscription !== undefined) this.#traces.set(id, () => subscription.cancel());
  }
}

/** The ports of a worker: the primary process opens them and passes their connections on. */
class WorkerPorts {
  /** Prefix of the Unix sockets on which other workers forward requests. */
  readonly #sockets: string;
  readonly #accept = new Map<string, (socket: Socket) => void>();
  #ports: PortList;

  constructor(sockets: string, ports: PortList) {
    this.#sockets = sockets;
    this.#ports = ports;
  }

  /** Replaces the list of open ports. */
  set(ports: PortList): void {
    this.#ports = ports;
  }

  /** Throws an `Error` for a port that the primary process has not opened, which is a bug. */
  acceptor(key: string): Acceptor {
    const info = this.#ports[key];
    if (info === undefined) throw new Error(`the port ${key} is not open`);
    return {
      port: info.port,
      socketPath: this.#sockets + info.id,
      connections: (accept) => {
        this.#accept.set(info.id, accept);
        return () => void this.#accept.delete(info.id);
      },
    };
  }

  /** Takes a connection of a port. One that a reload has just closed gets no answer. */
  take(id: string, socket: Socket): void {
    const accept = this.#accept.get(id);
    if (accept === undefined) socket.destroy();
    else accept(socket);
  }

  /** Id of an open port by its number. */
  idOf(port: number): string {
    return Object.values(this.#ports).find((info) => info.port === port)?.id ?? '';
  }
}
