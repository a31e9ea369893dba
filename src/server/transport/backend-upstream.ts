import type { RequestContext } from '../kernel/request/request-context.ts';
import { Slot } from '../kernel/slot.ts';
import { securedAddress } from './services/service-policies.ts';
import type { TlsOptions } from './tls/backend-tls.ts';
import {
  createUpstream,
  type Upstream,
  type UpstreamAddress,
  type UpstreamOptions,
} from './upstream/upstream.ts';

/** TLS of the connections to the backend, also if its address names no scheme. Set by `backendTLS`. */
export const backendTls = new Slot<TlsOptions>();

/** Connections to the backend. Set by `tcp`. */
export const backendConnections = new Slot<Pick<UpstreamOptions, 'connectTimeout' | 'keepAlive'>>();

/** Version of HTTP. Set by `http`. */
export const backendProtocol = new Slot<Pick<UpstreamOptions, 'isHttp2'>>();

/** A server that requests are sent to, with connections as their policies want them. */
export interface BackendUpstream {
  /** Without the settings of policies. */
  readonly own: Upstream;
  /** With the settings of the policies of a request. */
  for(ctx: RequestContext): Upstream;
  close(): Promise<void>;
}

/** Stands for settings that no policy has. */
const NONE = {};

/** Creates the pools of a backend, on first use. `options.tls` takes precedence over that of policies. */
export function backendUpstream(address: UpstreamAddress, options: UpstreamOptions): BackendUpstream {
  const connect = (tls: TlsOptions | undefined, more: UpstreamOptions = {}): Upstream =>
    createUpstream(tls === undefined ? address : securedAddress(address, { tls }), {
      ...options,
      ...more,
      ...(tls !== undefined && { tls }),
    });
  const own = connect(options.tls);
  // By the settings of policies, which are the same objects for all requests. Idle connections of a policy that is gone are
  // closed after 4 s.
  const byPolicies = new WeakMap<object, WeakMap<object, WeakMap<object, Upstream>>>();
  return {
    own,
    for(ctx) {
      const [tcp, http] = [backendConnections.get(ctx), backendProtocol.get(ctx)];
      const tls = options.tls === undefined ? backendTls.get(ctx) : undefined;
      if (tls === undefined && tcp === undefined && http === undefined) return own;
      const ofTls = entryOf(byPolicies, tls, () => new WeakMap<object, WeakMap<object, Upstream>>());
      const ofTcp = entryOf(ofTls, tcp, () => new WeakMap<object, Upstream>());
      return entryOf(ofTcp, http, () => connect(tls ?? options.tls, { ...tcp, ...http }));
    },
    close: () => own.close(),
  };
}

function entryOf<T>(map: WeakMap<object, T>, key: object = NONE, create: () => T): T {
  const known = map.get(key) ?? create();
  map.set(key, known);
  return known;
}
