import { overlap } from '../../core/listen.ts';
import { addressOf } from '../config/plan/plan.ts';
import type { Tracing } from '../observe/otlp/tracing.ts';
import { type ActiveConfig, activeConfigFor, openPort, type Port, type PortEvents, portKey } from './port.ts';
import type { Runtime } from './runtime.ts';
import type { WorkerRole } from './worker-role.ts';

interface OpenPortsOptions {
  readonly tracing: Tracing | undefined;
  readonly events: PortEvents;
  readonly worker: WorkerRole | undefined;
  /** Without it, ports have no socket: their requests come from the program that the gateway runs in. */
  readonly hasSockets: boolean;
  /** A port that was not open before. */
  opened(port: Port): void;
}

/** The ports of a runtime by key. Opens those that are not in `open`; if one fails, closes them again and rejects. */
export async function openPorts(
  runtime: Runtime,
  open: ReadonlyMap<string, Port>,
  { tracing, events, worker, hasSockets, opened }: OpenPortsOptions,
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
      const listened = hasSockets ? plan : { ...plan, isInternal: true };
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
