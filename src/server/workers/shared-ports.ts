import { createServer, type Server, type Socket } from 'node:net';
import { overlap } from '../../core/listen.ts';
import { tcpAddress } from '../../core/listening-server.ts';
import { addressOf, type GatewayPlan } from '../config/plan/plan.ts';
import { PortError, portKey } from '../runtime/port.ts';
import type { PortList } from './calls.ts';

interface OpenPort {
  readonly id: string;
  readonly port: number;
  readonly plan: GatewayPlan;
  readonly server: Server;
}

/** The ports of a gateway with several workers. Connections are accepted here, unread, and passed to a worker. */
export class SharedPorts {
  readonly #open = new Map<string, OpenPort>();
  readonly #accepted: (portId: string, socket: Socket) => void;
  #lastId = 0;

  /** `accepted` is called for each new connection; nothing of it has been read. */
  constructor(accepted: (portId: string, socket: Socket) => void) {
    this.#accepted = accepted;
  }

  /** All open ports, by `portKey`. */
  get list(): PortList {
    return Object.fromEntries([...this.#open].map(([key, { id, port }]) => [key, { id, port }]));
  }

  /** Number of the open port of a gateway. */
  portOf(plan: GatewayPlan): number {
    return this.#open.get(portKey(plan))?.port ?? plan.port;
  }

  /**
   * Opens those ports of a configuration that are not open yet. Returns what was opened; if one fails, closes the others
   * again.
   *
   * @throws PortError
   */
  async open(plans: readonly GatewayPlan[]): Promise<readonly GatewayPlan[]> {
    const opened: GatewayPlan[] = [];
    try {
      for (const plan of plans) {
        if (this.#open.has(portKey(plan))) continue;
        await this.#openOne(plan);
        opened.push(plan);
      }
    } catch (error) {
      this.close(opened);
      throw error;
    }
    return opened;
  }

  /** Stops accepting connections. Not awaited: Node's server closes once the workers have closed the open ones. */
  close(plans: readonly GatewayPlan[]): void {
    for (const plan of plans) {
      this.#open.get(portKey(plan))?.server.close();
      this.#open.delete(portKey(plan));
    }
  }

  /** Plans of the open ports that a configuration does not have. */
  without(plans: readonly GatewayPlan[]): readonly GatewayPlan[] {
    const kept = new Set(plans.map(portKey));
    return [...this.#open.values()].map(({ plan }) => plan).filter((plan) => !kept.has(portKey(plan)));
  }

  async #openOne(plan: GatewayPlan): Promise<void> {
    const { port, address, portPath } = plan;
    const isOwnPort = [...this.#open.values()].some((other) =>
      overlap(addressOf({ address: other.plan.address, port: other.port }), addressOf(plan)),
    );
    const id = String(++this.#lastId);
    const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => {
      // Errors of a connection that waits for a worker: the client has left.
      socket.on('error', () => undefined);
      this.#accepted(id, socket);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        reject(new PortError(portPath, port, error, isOwnPort)),
      );
      server.listen({ port, host: address }, () => resolve());
    });
    this.#open.set(portKey(plan), { id, port: tcpAddress(server).port, plan, server });
  }
}
