import type { RequestContext } from '../request/request-context.ts';
import { HostMap } from './host-map.ts';
import type { Listener } from './route.ts';
import { withoutPort } from './router.ts';

/** Returns the listener for the Host of a validated request; undefined if no listener of the port serves that host. */
export type ListenerSelection = (ctx: RequestContext) => Listener | undefined;

/** A listener and its host name: in lower case, `*.example.com` for all names below it, or undefined for any host. */
export interface HostedListener {
  readonly listener: Listener;
  readonly hostname: string | undefined;
}

/** Several listeners share a port by host name. */
export function createListenerSelection(hosted: readonly HostedListener[]): ListenerSelection {
  const hosts = new HostMap(new Map(hosted.map(({ hostname, listener }) => [hostname, listener])));
  const [first] = hosted;
  if (hosted.length === 1 && first?.hostname === undefined) return () => first?.listener;
  return (ctx) => hosts.find(withoutPort(ctx.host), (listener) => listener);
}
