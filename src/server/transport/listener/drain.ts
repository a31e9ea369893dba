import { LIMITS } from '../../../core/limits.ts';
import type { Http1 } from '../http1/http1.ts';

/** The connections of a port that is being closed. */
export interface Draining {
  /** Resolves once all connections are closed. */
  readonly closed: Promise<unknown>;
  /** Closes connections without a request. Called again and again: others become idle. */
  readonly closeIdle?: (() => void) | undefined;
  closeAll(): void;
}

/**
 * Waits up to `deadline` ms for open requests, then closes all connections. If some are open at the deadline, `beforeAbort`
 * is called; if it returns true, because error responses are being sent, they get `LIMITS.drainGrace` (0.5 s) more.
 */
export async function drain(
  { closed, closeIdle, closeAll }: Draining,
  deadline: number,
  beforeAbort?: () => boolean,
): Promise<void> {
  let timer = setTimeout(() => {
    if (beforeAbort?.() === true) timer = setTimeout(closeAll, LIMITS.drainGrace);
    else closeAll();
  }, deadline);
  // Connections that become idle while closing would otherwise be kept alive.
  const idle = closeIdle && setInterval(closeIdle, 50);
  closeIdle?.();
  await closed;
  clearTimeout(timer);
  clearInterval(idle);
}

/** `others` resolves when connections that the server has not accepted itself are closed. */
export function draining(http1: Http1, others?: Promise<void>): Draining {
  const { server } = http1;
  const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
  return {
    closed: Promise.all([closed, others]),
    closeIdle: () => server.closeIdleConnections(),
    closeAll: () => http1.destroy(),
  };
}
