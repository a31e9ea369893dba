import type { Socket } from 'node:net';
import { explainUpstreamError } from './upstream/upstream-error.ts';

/** Called with the first reason for which a connection ends, unless one of its sides ends it. */
export type RelayFailed = (error: string, detail: string) => void;

/**
 * Passes bytes between the open connections of a client and a service until both have ended, with back-pressure in both directions.
 * Closes both if one fails, or if nothing was passed for `idle` ms (0: no limit).
 */
export function joinSockets(client: Socket, upstream: Socket, idle: number, failed: RelayFailed): void {
  const end = (): void => {
    client.destroy();
    upstream.destroy();
  };
  // Each byte counts on both sides: one of them is enough.
  upstream.setTimeout(idle, () => {
    failed('no bytes were passed for too long', `${idle} ms`);
    end();
  });
  upstream.on('error', (error) => {
    failed('the connection to the service failed', explainUpstreamError(error));
    end();
  });
  client.on('error', (error) => {
    failed('the connection of the client failed', explainUpstreamError(error));
    end();
  });
  // `close` without an `end` before it is a connection that was reset.
  client.once('close', () => upstream.destroySoon());
  upstream.once('close', () => client.destroySoon());
  // Ends are passed on as well: a client may stop sending and still wait for an answer.
  client.pipe(upstream).pipe(client);
}
