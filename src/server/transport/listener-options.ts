import type { SourceOptions } from './connection-source.ts';
import type { RequestEvents } from './http1.ts';
import type { ServerTls } from './tls-entrance.ts';

export interface ListenerOptions extends RequestEvents, SourceOptions {
  /** If set, clients connect with TLS, and may select HTTP/2. Read for each connection. */
  tls?(): ServerTls;
}

/** One open port. */
export interface Listener {
  readonly port: number;
  /** Number of open connections. */
  connections(): Promise<number>;
  /**
   * Stops accepting connections, waits up to `deadline` ms for open requests, then closes all connections. If some are
   * open at the deadline, `beforeAbort` is called; if it returns true, because error responses are being sent, they get
   * `LIMITS.drainGrace` (0.5 s) more.
   */
  close(deadline: number, beforeAbort?: () => boolean): Promise<void>;
}
