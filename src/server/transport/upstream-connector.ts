import { buildConnector } from 'undici';
import type { CallMeter, CallSpan } from '../kernel/observer.ts';
import { hostLookup } from './host-lookup.ts';
import type { UpstreamRequest } from './upstream-request.ts';
import { coalesceSmallWrites } from './write-coalescing.ts';

/** undici's connector, which also records the connection time and coalesces small writes. */
export function upstreamConnector(
  options: buildConnector.BuildOptions,
  meter: CallMeter | undefined,
): buildConnector.connector {
  const connect = buildConnector(options);
  return (target, callback) => {
    const started = performance.now();
    connect(target, ((...[error, socket]: Parameters<buildConnector.Callback>) => {
      if (error !== null) return callback(error, null);
      meter?.connected(target.protocol === 'https:' ? 'tls' : 'plaintext', performance.now() - started);
      coalesceSmallWrites(socket);
      callback(null, socket);
    }) as buildConnector.Callback);
  };
}

/** Starts the span of a call, if the request that it is made for is recorded. */
export function startCallSpan(
  { client, span = client?.span, method, path }: UpstreamRequest,
  meter: CallMeter | undefined,
  address: string,
  origin: string,
): CallSpan | undefined {
  if (span === undefined || meter === undefined) return undefined;
  return span.http({ kind: meter.kind, subtype: meter.subtype, method, address, origin, path });
}

/**
 * Connects to an HTTP server like an `Upstream`, with TLS for `https:`, and disconnects. Resolves to the error, for
 * `explainUpstreamError`, or undefined. `timeout` is in ms and includes the host lookup.
 */
export function tryConnection(
  { protocol, host, hostname, port }: URL,
  timeout: number,
): Promise<Error | undefined> {
  const connect = buildConnector({ timeout, lookup: hostLookup.forConnect });
  const target = {
    protocol,
    host,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: port || (protocol === 'https:' ? '443' : '80'),
  };
  return new Promise((resolve) => {
    connect(target, (error, socket) => {
      socket?.destroy();
      resolve(error ?? undefined);
    });
  });
}
