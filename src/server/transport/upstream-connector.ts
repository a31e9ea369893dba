import { buildConnector } from 'undici';
import type { CallMeter } from '../kernel/call-meter.ts';
import type { CallSpan } from '../kernel/observer.ts';
import type { UpstreamRequest } from './upstream-request.ts';
import { coalesceSmallWrites } from './write-coalescing.ts';

/** Opens connections as undici does, and tells how long that took. */
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

/** The span of a call, when the request that it is made for is recorded. */
export function spanned(
  { client, span = client?.span, method, path }: UpstreamRequest,
  meter: CallMeter | undefined,
  address: string,
  origin: string,
): CallSpan | undefined {
  if (span === undefined || meter === undefined) return undefined;
  return span.http({ kind: meter.kind, subtype: meter.subtype, method, address, origin, path });
}
