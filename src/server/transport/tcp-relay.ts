import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { LIMITS, type Limits } from '../../core/limits.ts';
import { joinSockets, type RelayFailed } from './joined-sockets.ts';
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

/**
 * Connects to a service and passes bytes between it and a client, as `joinSockets` does. Closes both if nothing was passed for
 * `limits.tcpIdle`.
 */
export function relayTcp(
  client: Socket,
  target: TcpTarget,
  limits: Pick<Limits, 'tcpIdle'>,
  failed: RelayFailed,
): void {
  const upstream = connectTo(target);
  const timer = setTimeout(() => upstream.destroy(new Error('connect timeout')), LIMITS.connectTimeout);
  const unreachable = (error: Error): void => {
    target.reachability?.failed(error);
    failed('the service cannot be reached', explainUpstreamError(error));
  };
  const clientFailed = (error: Error): void => {
    failed('the connection of the client failed', explainUpstreamError(error));
    upstream.destroy();
  };
  const clientLeft = (): void => void upstream.destroy();
  client.once('error', clientFailed).once('close', clientLeft);
  upstream.once('error', unreachable).once('close', () => {
    clearTimeout(timer);
    client.destroySoon();
  });
  upstream.once(target.tls === undefined ? 'connect' : 'secureConnect', () => {
    clearTimeout(timer);
    upstream.off('error', unreachable);
    client.off('error', clientFailed).off('close', clientLeft);
    joinSockets(client, upstream, limits.tcpIdle, failed);
    if (target.isNamedByClient === true && comesBack(upstream, client)) {
      failed('the connection has come back to this gateway', `port ${target.port}`);
      client.destroy();
      upstream.destroy();
      return;
    }
    target.reachability?.answered();
    upstream.setNoDelay(true);
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
