import { LIMITS } from '../../core/limits.ts';
import { overlap } from '../../core/listen.ts';
import type { LineSink, Log } from '../../core/log.ts';
import { addressOf } from '../config/plan.ts';
import { GATEWAY } from '../kernel/gateway-name.ts';
import { handleRequest } from '../kernel/pipeline.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import { Slot } from '../kernel/slot.ts';
import { llmCall } from '../llm/call.ts';
import { finalizeUsage } from '../llm/finalize-usage.ts';
import { AccessLog, type RequestFinishedListener } from '../observe/access-log.ts';
import { recordBody } from '../observe/body-record.ts';
import { LostLines } from '../observe/lost-lines.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import type { Tracing } from '../observe/otlp/tracing.ts';
import { RequestLines } from '../observe/request-lines.ts';
import { traceBegin, traceEnd } from '../observe/trace/listener.ts';
import { TraceObserver } from '../observe/trace/trace-observer.ts';
import { createWatchers, type Watchers } from '../observe/watchers.ts';
import type { ActiveConfig } from './active-config.ts';
import { activeConfig } from './active-config.ts';
import type { RetiredComponents } from './component-cache.ts';
import { type OpenRequestList, OpenRequests } from './open-requests.ts';
import { openPort, type Port, type PortEvents, portKey } from './port.ts';
import type { GatewayRuntime, Runtime } from './runtime.ts';

export { PortError } from './port.ts';

export interface GatewayOptions {
  readonly runtime: Runtime;
  readonly log: Log;
  /** Where access-log lines go. */
  readonly accessLog: LineSink;
}

/** A serving gateway. */
export interface Gateway {
  /** The open ports, in the order of the configuration. */
  readonly listeners: readonly { readonly gateway: GatewayRuntime; readonly port: number }[];
  /** Tells a listener of every request that has ended, until the returned function is called. It must not throw. */
  onRequestFinished(listener: RequestFinishedListener): () => void;
  readonly metrics: Metrics;
  /** Who watches requests: `/debug/trace`. */
  readonly watchers: Watchers;
  /** Requests whose response has not ended. */
  readonly openRequests: OpenRequestList;
  /** Open connections of each gateway. */
  connections(): Promise<readonly { readonly name: string; readonly count: number }[]>;
  /**
   * Serves requests that come from now on with another runtime, which was compiled with the present one as its
   * `previous`. Ports that both have stay open; requests under way end as they began. All or nothing: rejects with
   * `PortError` when a new port cannot be opened, and nothing has changed; the new runtime is closed then.
   */
  reload(next: Runtime): Promise<void>;
  /** A stop was asked for. */
  readonly isClosing: boolean;
  /** Drains: no new connections, open requests finish within the configured time, then children end. */
  close(): Promise<void>;
}

/** Opens every port of the runtime, or none: rejects with `PortError` after closing those that were open. */
export async function startGateway({ runtime, log, accessLog }: GatewayOptions): Promise<Gateway> {
  const gateway = new RunningGateway(runtime, log, accessLog);
  await gateway.start();
  return gateway;
}

class RunningGateway implements Gateway {
  readonly metrics: Metrics;
  readonly watchers = createWatchers();
  readonly #log: Log;
  readonly #lines: AccessLog;
  readonly #requestLines: RequestLines;
  readonly #lostLines: LostLines;
  readonly #requests = new OpenRequests();
  readonly #events: PortEvents;
  #runtime: Runtime;
  #tracing: Tracing | undefined;
  /** Spans lost by exporters that are closed. */
  #spansLost = 0;
  #ports = new Map<string, Port>();
  /** What earlier runtimes leave behind, while it ends. */
  readonly #leaving = new Set<Promise<void>>();
  isClosing = false;

  constructor(runtime: Runtime, log: Log, sink: LineSink) {
    this.#runtime = runtime;
    this.#log = log;
    this.#requestLines = new RequestLines(log);
    this.metrics = runtime.metrics;
    const { format } = runtime.config.config.logging;
    this.#lines = new AccessLog({ sink, format, directives: log.directives });
    this.#lostLines = new LostLines(sink, log);
    this.metrics.accessLogLinesLost = () => this.#lostLines.count;
    this.#events = {
      handle: (ctx, serving) => this.#handle(ctx, serving),
      ended: (ctx, status, bodyBytes) => this.#ended(ctx, status, bodyBytes),
    };
  }

  async start(): Promise<void> {
    let tracing: Tracing | undefined;
    try {
      tracing = await this.#tracingOf(this.#runtime);
      this.#ports = await this.#openPorts(this.#runtime, tracing);
    } catch (error) {
      await tracing?.close();
      await this.#runtime.close();
      throw error;
    }
    this.#traceWith(this.#runtime, tracing);
  }

  async reload(next: Runtime): Promise<void> {
    const previous = this.#runtime;
    let tracing = this.#tracing;
    let ports: Map<string, Port>;
    try {
      if (next.tracing !== previous.tracing) tracing = await this.#tracingOf(next);
      ports = await this.#openPorts(next, tracing);
    } catch (error) {
      if (tracing !== this.#tracing) await tracing?.close();
      await next.parts.close(previous.parts);
      throw error;
    }
    // From here on nothing waits: every port changes in the same turn.
    const removed = [...this.#ports].filter(([key]) => !ports.has(key)).map(([, port]) => port);
    const old = next.parts.succeed(previous.parts, next.source);
    const tracingBefore = this.#tracing;
    for (const { plan } of next.gateways) {
      const port = this.#ports.get(portKey(plan));
      if (port !== undefined) port.active = servingOf(next, plan.name, tracing, port.listener.port);
    }
    this.#ports = ports;
    this.#runtime = next;
    this.#traceWith(next, tracing);
    this.#leave(removed, old, tracingBefore === tracing ? undefined : tracingBefore);
    // A stop that came meanwhile has closed the ports of before: these would keep the process.
    if (this.isClosing) await this.close();
  }

  get listeners(): Gateway['listeners'] {
    return [...this.#ports.values()].map(({ active, listener }) => ({
      gateway: active.gateway,
      port: listener.port,
    }));
  }

  get openRequests(): OpenRequestList {
    return this.#requests;
  }

  onRequestFinished(listener: RequestFinishedListener): () => void {
    return this.#lines.onRequestFinished(listener);
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
    await Promise.all([...closed, ...this.#leaving]);
    await this.#tracing?.close();
    await this.#runtime.close();
    this.#lostLines.close();
  }

  /** Drains ports. What is still open at the deadline is told so and cut, for all of them at once. */
  #closePorts(ports: readonly Port[]): Promise<void>[] {
    const numbers = new Set(ports.map(({ listener }) => listener.port));
    let isAnswering: boolean | undefined;
    const beforeCut = (): boolean => {
      isAnswering ??= this.#requests.cut(numbers, this.#log);
      return isAnswering;
    };
    return ports.map(({ listener }) => listener.close(this.#drainTime, beforeCut));
  }

  get #drainTime(): number {
    return this.#runtime.config.config.connectionTerminationDeadline;
  }

  async #handle(ctx: RequestContext, serving: ActiveConfig): Promise<Reply> {
    const { runtime } = serving;
    activeConfig.set(ctx, serving);
    ctx.logReads = runtime.logReads;
    this.#requests.began(ctx);
    if (this.watchers.active || this.#requestLines.isOn) this.#observe(ctx, runtime);
    const reply = await handleRequest(ctx, serving.gateway);
    if (runtime.logReads.reads('response.body', 'response.bodyPrefix'))
      recordBody(ctx, reply, runtime.config.frontendPolicies.http.maxBufferSize);
    ctx.timings.replied = performance.now();
    return reply;
  }

  #observe(ctx: RequestContext, runtime: Runtime): void {
    const tracer = this.#tracerOf(ctx);
    if (tracer === undefined) return;
    ctx.observer = tracer;
    tracers.set(ctx, tracer);
    traceBegin(tracer, runtime.config.frontendPolicies, runtime);
  }

  #tracerOf(ctx: RequestContext): TraceObserver | undefined {
    const lines = this.#requestLines.isOn ? this.#requestLines.of(ctx) : undefined;
    const claimed = this.watchers.active ? this.watchers.claim(ctx, lines) : undefined;
    return claimed ?? (lines === undefined ? undefined : new TraceObserver(ctx, lines));
  }

  #ended(ctx: RequestContext, status: number, bodyBytes: number): void {
    this.#requests.ended(ctx);
    const { runtime, tracing, bind } = activeConfig.get(ctx) as ActiveConfig;
    const llm = llmCall.get(ctx);
    if (llm !== undefined) finalizeUsage(ctx, llm, runtime.catalog);
    const tracer = ctx.observer === undefined ? undefined : tracers.get(ctx);
    tracer?.finished(status);
    const fields = this.#lines.ended(ctx, status, runtime.accessLog, ctx.span !== undefined);
    if (ctx.span !== undefined && fields !== undefined) tracing?.ended(ctx, ctx.span, fields);
    bind?.ended(ctx, status === 0 ? 499 : status, bodyBytes);
    if (tracer !== undefined) traceEnd(tracer, ctx);
  }

  /** The ports of a runtime: those that are open already as they are, the others opened; or all as before. */
  async #openPorts(runtime: Runtime, tracing: Tracing | undefined): Promise<Map<string, Port>> {
    const ports = new Map<string, Port>();
    const opened: Port[] = [];
    const before = [...this.#ports.values()].map(({ listener, active }) =>
      addressOf({ address: active.gateway.plan.address, port: listener.port }),
    );
    try {
      for (const { plan } of runtime.gateways) {
        const known = this.#ports.get(portKey(plan));
        const serving = (port?: number): ActiveConfig => servingOf(runtime, plan.name, tracing, port);
        const isOurs = before.some((address) => overlap(address, addressOf(plan)));
        const port = known ?? (await openPort(plan, serving(), this.#events, serving, isOurs));
        ports.set(portKey(plan), port);
        if (known !== undefined) continue;
        opened.push(port);
        const bind = `bind/${port.listener.port}`;
        this.#log.info('proxy::gateway', 'started bind', { bind, listener: plan.name });
      }
    } catch (error) {
      await Promise.all(opened.map(({ listener }) => listener.close(0)));
      throw error;
    }
    return ports;
  }

  /** Ends what only earlier requests use, after the last of them, or when the time for that is over. */
  #leave(
    removed: readonly Port[],
    { unused, inherited }: RetiredComponents,
    tracing: Tracing | undefined,
  ): void {
    if (removed.length + unused.length + inherited.length === 0 && tracing === undefined) return;
    for (const { value } of unused) value.drain?.();
    for (const { listener, active } of removed) {
      const bind = `bind/${listener.port}`;
      this.#log.info('proxy::gateway', 'stopping bind', { bind, listener: active.gateway.plan.name });
    }
    const closed = this.#closePorts(removed);
    const left = Promise.all([...closed, this.#requests.afterAll(this.#drainTime)])
      .then(async () => {
        for (const { value } of inherited) value.retired?.();
        await Promise.all(unused.map(({ value }) => value.close?.()));
        await tracing?.close();
        this.#spansLost += tracing?.dropped ?? 0;
        this.#log.debug('proxy::gateway', 'what only earlier requests used is closed', {
          ports: removed.length,
          parts: unused.length,
        });
      })
      .finally(() => this.#leaving.delete(left));
    this.#leaving.add(left);
  }

  async #tracingOf({ tracing }: Runtime): Promise<Tracing | undefined> {
    if (tracing === undefined) return undefined;
    // Loaded on use, with the SDK: most gateways export no traces.
    const { openTracing } = await import('../observe/otlp/tracing.ts');
    return openTracing(tracing, this.#log);
  }

  #traceWith({ inspection }: Runtime, tracing: Tracing | undefined): void {
    this.#tracing = tracing;
    if (tracing === undefined) return;
    this.metrics.spansLost = () => this.#spansLost + (this.#tracing?.dropped ?? 0);
    inspection.bounds.push({ name: 'tracing.spans', max: LIMITS.spanQueue, used: () => tracing.queued });
  }
}

/** The trace of an observed request. */
const tracers = new Slot<TraceObserver>();

/** What a gateway of the runtime serves with. Without the number of its port, it counts nothing. */
function servingOf(
  runtime: Runtime,
  gatewayName: string,
  tracing: Tracing | undefined,
  port?: number,
): ActiveConfig {
  const gateway = runtime.gateways.find(({ plan }) => plan.name === gatewayName) as GatewayRuntime;
  return {
    runtime,
    gateway: tracing === undefined ? gateway : { ...gateway, router: tracing.around(gateway.router) },
    tracing,
    bind:
      port === undefined
        ? undefined
        : runtime.metrics.forBind({ bind: `bind/${port}`, gateway: GATEWAY.label, listener: gatewayName }),
  };
}
