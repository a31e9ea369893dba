import type { Path } from '../core/diagnostic.ts';
import { LIMITS } from '../core/limits.ts';
import type { LineSink, Log } from '../core/log.ts';
import type { Config } from './config/schema.ts';
import type { Exchange } from './http/exchange.ts';
import { type Listener, openListener } from './http/listener.ts';
import { handleRequest } from './http/pipeline.ts';
import { settleCall } from './llm/settle.ts';
import { AccessLog, type EndedListener } from './observe/access-log.ts';
import { recordBody } from './observe/body-record.ts';
import type { BindMetrics, Metrics } from './observe/metrics/metrics.ts';
import { Tracing } from './observe/otlp/tracing.ts';
import { traceBegin, traceEnd } from './observe/trace/listener.ts';
import { createWatchers, type Watchers } from './observe/watchers.ts';
import type { GatewayRuntime, Runtime } from './runtime.ts';

export interface GatewayOptions {
  readonly config: Config;
  readonly runtime: Runtime;
  readonly log: Log;
  /** Where access-log lines go. */
  readonly accessLog: LineSink;
}

/** A port that could not be opened, with the place of the port in the configuration. */
export class PortError extends Error {
  readonly path: Path;
  readonly code: string;

  constructor(path: Path, port: number, cause: NodeJS.ErrnoException) {
    super(explainPort(port, cause), { cause });
    this.name = 'PortError';
    this.path = path;
    this.code = cause.code ?? '';
  }
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
  readonly openRequests: ReadonlySet<Exchange>;
  /** Open connections of each gateway. */
  connections(): Promise<readonly { readonly name: string; readonly count: number }[]>;
  /** Drains: no new connections, open requests finish within the configured time, then children end. */
  close(): Promise<void>;
}

/** Opens every port of the runtime, or none: rejects with `PortError` after closing those that were open. */
export async function startGateway({ config, runtime, log, accessLog }: GatewayOptions): Promise<Gateway> {
  const lines = new AccessLog({
    sink: accessLog,
    format: config.config.logging.format,
    policy: runtime.accessLog,
    directives: log.directives,
  });
  const tracing = runtime.tracing === undefined ? undefined : new Tracing(runtime.tracing, log);
  const watchers = createWatchers();
  const { metrics } = runtime;
  if (tracing !== undefined) {
    metrics.spansLost = () => tracing.dropped;
    runtime.inspection.bounds.push({
      name: 'tracing.spans',
      max: LIMITS.spanQueue,
      used: () => tracing.queued,
    });
  }
  const openRequests = new Set<Exchange>();
  const ended = (x: Exchange, status: number, bodyBytes: number, bind: BindMetrics | undefined): void => {
    openRequests.delete(x);
    if (x.llm !== undefined) settleCall(x, x.llm, runtime.catalog);
    x.trace?.finished(status);
    const fields = lines.ended(x, status, x.span !== undefined);
    if (x.span !== undefined && fields !== undefined) tracing?.ended(x, x.span, fields);
    bind?.ended(x, status === 0 ? 499 : status, bodyBytes);
    if (x.trace !== undefined) traceEnd(x.trace, x);
  };
  const opened: { gateway: GatewayRuntime; listener: Listener }[] = [];
  const drain = config.config.connectionTerminationDeadline;
  try {
    for (const gateway of runtime.gateways) {
      const { name, port, address, portPath } = gateway.plan;
      const routed = tracing === undefined ? gateway : { ...gateway, router: tracing.around(gateway.router) };
      let bind: BindMetrics | undefined;
      const listener = await openListener({
        gateway: `default/${name}`,
        listener: name,
        port,
        address,
        handle: async (x) => {
          openRequests.add(x);
          if (watchers.active) x.trace = watchers.claim(x);
          if (x.trace !== undefined) traceBegin(x.trace, config, runtime);
          const reply = await handleRequest(x, routed);
          if (runtime.accessLog.readsResponseBody)
            recordBody(x, reply, config.frontendPolicies.http.maxBufferSize);
          x.repliedAt = performance.now();
          return reply;
        },
        ended: (x, status, bodyBytes) => ended(x, status, bodyBytes, bind),
        connected: () => bind?.connected(),
        disconnected: (received, sent) => bind?.disconnected(received, sent),
      }).catch((error: unknown) => {
        throw new PortError(portPath, port, error as NodeJS.ErrnoException);
      });
      bind = metrics.forBind({ bind: `bind/${listener.port}`, gateway: `default/${name}`, listener: name });
      opened.push({ gateway, listener });
      log.info('proxy::gateway', 'started bind', { bind: `bind/${listener.port}`, gateway: name });
    }
  } catch (error) {
    await Promise.all([tracing?.close(), ...opened.map(({ listener }) => listener.close(0))]);
    await runtime.close();
    throw error;
  }
  return {
    listeners: opened.map(({ gateway, listener }) => ({ gateway, port: listener.port })),
    onEnded: (listener) => lines.onEnded(listener),
    metrics,
    watchers,
    openRequests,
    connections: () =>
      Promise.all(
        opened.map(async ({ gateway, listener }) => ({
          name: gateway.plan.name,
          count: await listener.connections(),
        })),
      ),
    async close() {
      const closed = opened.map(({ listener }) => listener.close(drain));
      runtime.drain();
      await Promise.all(closed);
      await tracing?.close();
      await runtime.close();
    },
  };
}

function explainPort(port: number, { code, message }: NodeJS.ErrnoException): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is already in use`;
    case 'EACCES':
      return `port ${port} needs privileges that this process does not have`;
    case 'EADDRNOTAVAIL':
      return `the address for port ${port} does not exist on this machine`;
    default:
      return `port ${port} could not be opened: ${message}`;
  }
}
