import { LIMITS } from '../../core/limits.ts';
import { overlap } from '../../core/listen.ts';
import type { LineSink, Log } from '../../core/log.ts';
import { addressOf } from '../config/plan.ts';
import { GATEWAY } from '../kernel/gateway-name.ts';
import { handleRequest } from '../kernel/pipeline.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import { Slot } from '../kernel/slot.ts';
import { llmCall } from '../llm/call.ts';
import { settleCall } from '../llm/settle.ts';
import { AccessLog, type EndedListener } from '../observe/access-log.ts';
import { recordBody } from '../observe/body-record.ts';
import { LostLines } from '../observe/lost-lines.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import type { RequestSpan as RecordedSpan } from '../observe/otlp/span.ts';
import { Tracing } from '../observe/otlp/tracing.ts';
import { RequestLines } from '../observe/request-lines.ts';
import { traceBegin, traceEnd } from '../observe/trace/listener.ts';
import { TraceObserver } from '../observe/trace/trace-observer.ts';
import { createWatchers, type Watchers } from '../observe/watchers.ts';
import type { Serving } from './active-config.ts';
import { activeConfig } from './active-config.ts';
import type { OldParts } from './component-cache.ts';
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
  onEnded(listener: EndedListener): () => void;
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
      handle: (x, serving) => this.#handle(x, serving),
      ended: (x, status, bodyBytes) => this.#ended(x, status, bodyBytes),
    };
  }

  async start(): Promise<void> {
    const tracing = this.#tracingOf(this.#runtime);
    try {
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
    const tracing = next.tracing === previous.tracing ? this.#tracing : this.#tracingOf(next);
    let ports: Map<string, Port>;
    try {
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
      if (port !== undefined) port.serving = servingOf(next, plan.name, tracing, port.listener.port);
    }
    this.#ports = ports;
    this.#runtime = next;
    this.#traceWith(next, tracing);
    this.#leave(removed, old, tracingBefore === tracing ? undefined : tracingBefore);
    // A stop that came meanwhile has closed the ports of before: these would keep the process.
    if (this.isClosing) await this.close();
  }

  get listeners(): Gateway['listeners'] {
    return [...this.#ports.values()].map(({ serving, listener }) => ({
      gateway: serving.gateway,
      port: listener.port,
    }));
  }

  get openRequests(): OpenRequestList {
    return this.#requests;
  }

  onEnded(listener: EndedListener): () => void {
    return this.#lines.onEnded(listener);
  }

  connections(): ReturnType<Gateway['connections']> {
    return Promise.all(
      [...this.#ports.values()].map(async ({ serving, listener }) => ({
        name: serving.gateway.plan.name,
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

  async #handle(x: RequestContext, serving: Serving): Promise<Reply> {
    const { runtime } = serving;
    activeConfig.set(x, serving);
    x.logReads = runtime.logReads;
    this.#requests.began(x);
    if (this.watchers.active || this.#requestLines.isOn) this.#observe(x, runtime);
    const reply = await handleRequest(x, serving.gateway);
    if (runtime.logReads.reads('response.body', 'response.bodyPrefix'))
      recordBody(x, reply, runtime.config.frontendPolicies.http.maxBufferSize);
    x.timings.replied = performance.now();
    return reply;
  }

  #observe(x: RequestContext, runtime: Runtime): void {
    const tracer = this.#tracerOf(x);
    if (tracer === undefined) return;
    x.observer = tracer;
    tracers.set(x, tracer);
    traceBegin(tracer, runtime.config.frontendPolicies, runtime);
  }

  #tracerOf(x: RequestContext): TraceObserver | undefined {
    const lines = this.#requestLines.isOn ? this.#requestLines.of(x) : undefined;
    const claimed = this.watchers.active ? this.watchers.claim(x, lines) : undefined;
    return claimed ?? (lines === undefined ? undefined : new TraceObserver(x, lines));
  }

  #ended(x: RequestContext, status: number, bodyBytes: number): void {
    this.#requests.ended(x);
    const { runtime, tracing, bind } = activeConfig.get(x) as Serving;
    const llm = llmCall.get(x);
    if (llm !== undefined) settleCall(x, llm, runtime.catalog);
    const tracer = x.observer === undefined ? undefined : tracers.get(x);
    tracer?.finished(status);
    const fields = this.#lines.ended(x, status, runtime.accessLog, x.span !== undefined);
    if (x.span !== undefined && fields !== undefined) tracing?.ended(x, x.span as RecordedSpan, fields);
    bind?.ended(x, status === 0 ? 499 : status, bodyBytes);
    if (tracer !== undefined) traceEnd(tracer, x);
  }

  /** The ports of a runtime: those that are open already as they are, the others opened; or all as before. */
  async #openPorts(runtime: Runtime, tracing: Tracing | undefined): Promise<Map<string, Port>> {
    const ports = new Map<string, Port>();
    const opened: Port[] = [];
    const before = [...this.#ports.values()].map(({ listener, serving }) =>
      addressOf({ address: serving.gateway.plan.address, port: listener.port }),
    );
    try {
      for (const { plan } of runtime.gateways) {
        const known = this.#ports.get(portKey(plan));
        const serving = (port?: number): Serving => servingOf(runtime, plan.name, tracing, port);
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
  #leave(removed: readonly Port[], { unused, inherited }: OldParts, tracing: Tracing | undefined): void {
    if (removed.length + unused.length + inherited.length === 0 && tracing === undefined) return;
    for (const { value } of unused) value.drain?.();
    for (const { listener, serving } of removed) {
      const bind = `bind/${listener.port}`;
      this.#log.info('proxy::gateway', 'stopping bind', { bind, listener: serving.gateway.plan.name });
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

  #tracingOf({ tracing }: Runtime): Tracing | undefined {
    return tracing === undefined ? undefined : new Tracing(tracing, this.#log);
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
): Serving {
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
