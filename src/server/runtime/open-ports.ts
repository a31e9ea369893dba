import { overlap } from '../../core/listen.ts';
import { addressOf, type GatewayPlan } from '../config/plan/plan.ts';
import type { Tracing } from '../observe/otlp/tracing.ts';
import { type ActiveConfig, activeConfigFor, openPort, type Port, type PortEvents, portKey } from './port.ts';
import type { Runtime } from './runtime.ts';
import type { WorkerRole } from './worker-role.ts';

/**
 * Which ports are opened: those of the configuration, a free one of the loopback instead of each, or none, as requests come from the
 * program that the gateway runs in.
 */
export type GatewaySockets = 'configured' | 'free' | 'none';

interface OpenPortsOptions {
  readonly tracing: Tracing | undefined;
  readonly events: PortEvents;
  readonly worker: WorkerRole | undefined;
  readonly sockets: GatewaySockets;
  /** A port that was not open before. */
  opened(port: Port): void;
}

const SOCKETS: Readonly<Record<GatewaySockets, Partial<GatewayPlan>>> = {
  configured: {},
  free: { port: 0, address: '127.0.0.1' },
  none: { isInternal: true },
};

/** The ports of a runtime by key. Opens those that are not in `open`; if one fails, closes them again and rejects. */
export async function openPorts(
  runtime: Runtime,
  open: ReadonlyMap<string, Port>,
  { tracing, events, worker, sockets, opened }: OpenPortsOptions,
): Promise<Map<string, Port>> {
  const ports = new Map<string, Port>();
  const added: Port[] = [];
  const ownAddresses = [...open.values()].map(({ listener, active }) =>
    addressOf({ address: active.gateway.plan.address, port: listener.port }),
  );
  try {
    for (const { plan } of runtime.gateways) {
      const known = open.get(portKey(plan));
      const configFor = (port?: number): ActiveConfig =>
        activeConfigFor(runtime, plan.name, tracing, worker, port);
      const isOwnPort = ownAddresses.some((address) => overlap(address, addressOf(plan)));
      const acceptor = worker?.acceptor(portKey(plan));
      const listened = { ...plan, ...SOCKETS[sockets] };
      const port = known ?? (await openPort(listened, configFor(), events, configFor, isOwnPort, acceptor));
      ports.set(portKey(plan), port);
      if (known !== undefined) continue;
      added.push(port);
      opened(port);
    }
  } catch (error) {
    await Promise.all(added.map(({ listener }) => listener.close(0)));
    throw error;
  }
  return ports;
}
