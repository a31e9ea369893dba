import type { ConnectionSettings } from '../connection-settings.ts';
import type { AcceptTunnel } from '../http1/connect-tunnels.ts';
import type { RequestEvents } from '../http1/http1.ts';
import type { SourceOptions } from './connection-source.ts';
import type { Entrance, RelayEnded } from './entrance.ts';

export interface ListenerOptions extends RequestEvents, SourceOptions {
  settings?(): ConnectionSettings;
  /** Whether the port is not opened: its connections come through tunnels only. */
  readonly isInternal?: boolean;
  /** What clients begin with. HTTP by default. */
  readonly transport?: 'HTTP' | 'TLS' | 'TCP';
  /** The listeners of a port that is not for HTTP. Read for each connection. */
  entrances?(): readonly Entrance[];
  /** Called once per connection whose bytes were passed on, when it has ended. */
  relayed?: RelayEnded;
  /** A connection was closed because there is nobody to serve it. */
  unserved?(why: string): void;
}

/** One open port. */
export interface Listener {
  readonly port: number;
  /** Takes a connection that has come through a tunnel. Undefined in a worker. */
  readonly inject?: AcceptTunnel | undefined;
  /** Number of open connections. */
  connections(): Promise<number>;
  /**
   * Stops accepting connections, waits up to `deadline` ms for open requests, then closes all connections. If some are
   * open at the deadline, `beforeAbort` is called; if it returns true, because error responses are being sent, they get
   * `LIMITS.drainGrace` (0.5 s) more.
   */
  close(deadline: number, beforeAbort?: () => boolean): Promise<void>;
}
