import type { Socket } from 'node:net';
import type { Acceptor } from '../transport/listener/injected-connections.ts';
import type { PortList } from './calls.ts';

/** The ports of a worker: the primary process opens them and passes their connections on. */
export class WorkerPorts {
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
