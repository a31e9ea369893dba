import type { Listener, RequestContext } from '../request/request-context.ts';
import { withoutPort } from './router.ts';

/** Returns the listener for the Host of a validated request; undefined if no listener of the port serves that host. */
export type ListenerSelection = (ctx: RequestContext) => Listener | undefined;

/** A listener and its host name: in lower case, `*.example.com` for all names below it, or undefined for any host. */
export interface HostedListener {
  readonly listener: Listener;
  readonly hostname: string | undefined;
}

/** Several listeners share a port by host name: an exact one first, then the longest wildcard, then the one for any host. */
export function createListenerSelection(hosted: readonly HostedListener[]): ListenerSelection {
  const any = hosted.find(({ hostname }) => hostname === undefined)?.listener;
  if (hosted.length === 1 && any !== undefined) return () => any;
  const exact = new Map<string, Listener>();
  const wildcards: { readonly suffix: string; readonly listener: Listener }[] = [];
  for (const { hostname, listener } of hosted) {
    if (hostname === undefined) continue;
    if (hostname.startsWith('*.')) wildcards.push({ suffix: hostname.slice(1), listener });
    else exact.set(hostname, listener);
  }
  wildcards.sort((a, b) => b.suffix.length - a.suffix.length);
  return (ctx) => {
    const host = withoutPort(ctx.host);
    return (
      exact.get(host) ??
      wildcards.find(({ suffix }) => host.endsWith(suffix) && host.length > suffix.length)?.listener ??
      any
    );
  };
}
