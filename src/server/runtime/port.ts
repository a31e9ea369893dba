import type { Socket } from 'node:net';
import type { Diagnostic, Path } from '../../core/diagnostic.ts';
import { messageOf } from '../../core/errors.ts';
import { errorCode } from '../../core/foreign.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import type { GatewayPlan } from '../config/plan/plan.ts';
import { transportOf } from '../config/plan/protocols.ts';
import { GATEWAY } from '../kernel/gateway-name.ts';
import { clientOf } from '../kernel/request/client-connection.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import { Slot } from '../kernel/slot.ts';
import type { BindMetrics } from '../observe/metrics/metrics.ts';
import type { Tracing } from '../observe/otlp/tracing.ts';
import { FetchRequests } from '../transport/fetch/fetch-requests.ts';
import type { AcceptTunnel } from '../transport/http1/connect-tunnels.ts';
import type { RelayedConnection } from '../transport/listener/entrance.ts';
import type { Acceptor } from '../transport/listener/injected-connections.ts';
import { openListener } from '../transport/listener/listener.ts';
import type { Listener, ListenerOptions } from '../transport/listener/listener-options.ts';
import type { GatewayRuntime, Runtime } from './runtime.ts';
import { type Placement, placementOf, type WorkerRole } from './worker-role.ts';

/** The configuration that one port uses for new requests. A reload replaces it; in-flight requests keep theirs. */
export interface ActiveConfig {
  readonly runtime: Runtime;
  /** With tracing, the selection of its listener also decides for each request whether a span is recorded. */
  readonly gateway: GatewayRuntime;
  readonly tracing: Tracing | undefined;
  readonly bind: BindMetrics | undefined;
  /** In a worker, unless it can answer all requests. */
  readonly placement: Placement | undefined;
}

/** The configuration that handles a request from start to end. A reload does not change it. */
export const activeConfig = new Slot<ActiveConfig>();

/** The configuration of one gateway's port. Without `port`, connections and requests are not counted. */
export function activeConfigFor(
  runtime: Runtime,
  gatewayName: string,
  tracing: Tracing | undefined,
  worker: WorkerRole | undefined,
  port?: number,
): ActiveConfig {
  const gateway = runtime.gateways.find(({ plan }) => plan.name === gatewayName);
  if (gateway === undefined) throw new Error(`the configuration has no gateway ${gatewayName}`);
  return {
    runtime,
    gateway: tracing === undefined ? gateway : { ...gateway, listenerOf: tracing.around(gateway.listenerOf) },
    placement: worker && placementOf(gateway, worker),
    tracing,
    bind:
      port === undefined
        ? undefined
        : runtime.metrics.forBind({ bind: `bind/${port}`, gateway: GATEWAY.label, listener: gatewayName }),
  };
}

/** A port that could not be opened. `path` is its path in the configuration, `code` that of Node's error. */
export class PortError extends Error {
  readonly path: Path;
  readonly code: string;

  constructor(path: Path, port: number, cause: unknown, isOwnPort = false) {
    super(explainPort(port, cause, isOwnPort), { cause });
    this.name = 'PortError';
    this.path = path;
    this.code = errorCode(cause);
  }
}

/** The error as a diagnostic with its range in the file. */
export function portDiagnostic(
  error: Pick<PortError, 'message' | 'path' | 'code'>,
  source: YamlSource,
): Diagnostic {
  return {
    severity: 'error',
    code: 'AGW0401',
    message: error.message,
    file: source.file,
    path: error.path,
    range: source.valueRange(error.path),
    help:
      error.code === 'EADDRINUSE'
        ? 'stop the other process, or set another port here'
        : 'set another port or address here',
  };
}

/** An open port. `active` is the only reference that a reload changes. */
export interface Port {
  active: ActiveConfig;
  readonly listener: Listener;
  /** Requests of the program that the gateway runs in. */
  readonly fetched: FetchRequests;
}

/** Handlers for the requests of a port. */
export interface PortEvents {
  handle(ctx: RequestContext, active: ActiveConfig): Promise<Reply>;
  replied(ctx: RequestContext, reply: Reply): void;
  ended(ctx: RequestContext, status: number, bodyBytes: number): void;
  relayed(connection: RelayedConnection, active: ActiveConfig): void;
  /** What takes a tunnel to a port of this gateway; undefined if it leads to none. */
  tunnel(port: number): AcceptTunnel | undefined;
}

/** Ports with the same key stay open across a reload. */
export function portKey({ name, port, address, listeners, isTunnel, isInternal }: GatewayPlan): string {
  const transport = isTunnel === true ? 'CONNECT' : transportOf({ listeners });
  if (isInternal === true) return `internal:${port} ${transport}`;
  // Port 0 is any free port: then the gateway's name identifies it.
  return `${address ?? '*'}:${port === 0 ? `0 ${name}` : port}${transport === 'HTTP' ? '' : ` ${transport}`}`;
}

/**
 * Opens a port. Once its number is known, `activeConfigFor` returns the configuration that it uses.
 *
 * @param isOwnPort Whether this process already has the port open under another address, for the error message.
 * @param acceptor In a worker: the process that has opened the port passes its connections on.
 * @throws PortError
 */
export async function openPort(
  { port, address, portPath, listeners, isTunnel, isInternal = false }: GatewayPlan,
  first: ActiveConfig,
  { handle, replied, ended, relayed, tunnel }: PortEvents,
  activeConfigFor: (port: number) => ActiveConfig,
  isOwnPort: boolean,
  acceptor?: Acceptor,
): Promise<Port> {
  const state = { active: first };
  const options: ListenerOptions = {
    get listener() {
      return state.active.gateway.plan.name;
    },
    acceptor,
    port,
    address,
    limits: first.runtime.settings.limits,
    transport: transportOf({ listeners }),
    isInternal,
    ...(isTunnel === true && { tunnel }),
    settings: () => state.active.runtime.connections,
    admits: (socket) => state.active.runtime.admits?.(clientOf(socket)) ?? true,
    authorizes: (socket) => {
      const { authorizes } = state.active.runtime;
      return authorizes && whileOpen(socket, (gone) => authorizes(clientOf(socket), gone));
    },
    entrances: () => state.active.gateway.entrances,
    handle: (ctx) => handle(ctx, state.active),
    replied,
    ended: (ctx, status, bodyBytes) => {
      // A pipelined request whose connection closed before it was handled has none yet.
      activeConfig.ensure(ctx, () => state.active);
      ended(ctx, status, bodyBytes);
    },
    relayed: (connection) => relayed(connection, state.active),
    connected: () => state.active.bind?.connected(),
    disconnected: (received, sent) => state.active.bind?.disconnected(received, sent),
  };
  const listener = await openListener(options).catch((error: unknown) => {
    if (acceptor !== undefined) throw new Error(`its Unix socket could not be opened: ${messageOf(error)}`);
    throw new PortError(portPath, port, error, isOwnPort);
  });
  state.active = activeConfigFor(listener.port);
  const fetched = new FetchRequests(options, listener.port, {
    admits: (client) => state.active.runtime.admits?.(client) ?? true,
    authorizes: (client, gone) => state.active.runtime.authorizes?.(client, gone),
  });
  return Object.assign(state, { listener, fetched });
}

/** Does work for a connection; `gone` is aborted if it closes before. */
async function whileOpen<T>(socket: Socket, work: (gone: AbortSignal) => Promise<T>): Promise<T> {
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  socket.once('close', leave);
  try {
    return await work(gone.signal);
  } finally {
    socket.off('close', leave);
  }
}

/** What takes a tunnel to a port. Ports on one address of the machine may be meant for some of its networks only. */
export function tunnelTo(port: number, ports: Iterable<Port>): AcceptTunnel | undefined {
  for (const { active, listener } of ports) {
    const { address, isTunnel = false } = active.gateway.plan;
    if (listener.port === port && address === undefined && !isTunnel) return listener.inject;
  }
  return undefined;
}

function explainPort(port: number, cause: unknown, isOwnPort: boolean): string {
  const code = errorCode(cause);
  if (isOwnPort && code === 'EADDRINUSE')
    return `port ${port} is already open under another address or protocol: changing the address or protocol of a port requires a restart`;
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is already in use`;
    case 'EACCES':
      return `port ${port} needs privileges that this process does not have`;
    case 'EADDRNOTAVAIL':
      return `the address for port ${port} does not exist on this machine`;
    default:
      return `port ${port} could not be opened: ${messageOf(cause)}`;
  }
}
