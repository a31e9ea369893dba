import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { LIMITS, type Limits } from '../../core/limits.ts';
import type { TlsOptions } from './tls/backend-tls.ts';
import { hostLookup } from './upstream/host-lookup.ts';
import { explainUpstreamError } from './upstream/upstream-error.ts';
import type { Reachability } from './upstream/upstream-request.ts';

/** A service that gets the bytes of clients. */
export interface TcpTarget {
  readonly host: string;
  readonly port: number;
  /** Set if the gateway connects with TLS. */
  readonly tls: TlsOptions | undefined;
  readonly reachability?: Reachability;
  /** Whether the client has chosen it. */
  readonly isNamedByClient?: boolean;
}

/** Called with the first reason for which a connection ends, unless one of its sides ends it. */
export type RelayFailed = (error: string, detail: string) => void;

/**
 * Passes bytes between a client and a service until both have ended, with back-pressure in both directions. Closes both if
 * one fails, or if nothing was passed for `limits.tcpIdle`.
 */
export function relayTcp(
  client: Socket,
  target: TcpTarget,
  limits: Pick<Limits, 'tcpIdle'>,
  failed: RelayFailed,
): void {
  const upstream = connectTo(target);
  const end = (): void => {
    clearTimeout(timer);
    client.destroy();
    upstream.destroy();
  };
  const timer = setTimeout(() => upstream.destroy(new Error('connect timeout')), LIMITS.connectTimeout);
  let isConnected = false;
  upstream.once(target.tls === undefined ? 'connect' : 'secureConnect', () => {
    isConnected = true;
    clearTimeout(timer);
    if (target.isNamedByClient === true && comesBack(upstream, client)) {
      failed('the connection has come back to this gateway', `port ${target.port}`);
      end();
      return;
    }
    target.reachability?.answered();
    upstream.setNoDelay(true);
    // Each byte counts on both sides: one of them is enough.
    upstream.setTimeout(limits.tcpIdle, () => {
      failed('no bytes were passed for too long', `${limits.tcpIdle} ms`);
      end();
    });
    // Ends are passed on as well: a client may stop sending and still wait for an answer.
    client.pipe(upstream).pipe(client);
  });
  upstream.on('error', (error) => {
    if (!isConnected) target.reachability?.failed(error);
    const what = isConnected ? 'the connection to the service failed' : 'the service cannot be reached';
    failed(what, explainUpstreamError(error));
    end();
  });
  client.on('error', (error) => {
    failed('the connection of the client failed', explainUpstreamError(error));
    end();
  });
  // `close` without an `end` before it is a connection that was reset.
  client.once('close', () => upstream.destroySoon());
  upstream.once('close', () => {
    clearTimeout(timer);
    client.destroySoon();
  });
}

/** Whether a connection leads to the port of this machine that its client has connected to: it would never end. */
const comesBack = ({ localAddress, remoteAddress, remotePort }: Socket, { localPort }: Socket): boolean =>
  remotePort === localPort &&
  (remoteAddress === localAddress || [remoteAddress, localAddress].every(isLoopback));

const isLoopback = (address: string | undefined): boolean => /^(?:::ffff:)?127\./.test(address ?? '');

function connectTo({ host, port, tls }: TcpTarget): Socket {
  const options = { host, port, lookup: hostLookup.forConnect, allowHalfOpen: true };
  if (tls === undefined) return connect(options);
  return connectTls({ ...options, ...tls, servername: tls.servername ?? host });
}
