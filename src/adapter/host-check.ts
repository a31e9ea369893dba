import { isLoopback } from '../core/listen.ts';

/**
 * DNS rebinding: a page of an attacker can reach a server on the visitor's own machine under the attacker's host name.
 * So a request over a loopback address must name a loopback host, or an allowed one, in Host and Origin (MCP revision
 * 2025-11-25, "Security Warning"). Returns what is wrong, without quoting the request.
 */
export function hostProblem(
  localAddress: string | undefined,
  headers: { readonly host?: string | undefined; readonly origin?: string | undefined },
  allowed: ReadonlySet<string>,
): string | undefined {
  if (!isLoopback(localAddress ?? '')) return undefined;
  if (!isAllowed(hostOf(`http://${headers.host ?? ''}`), allowed)) return describe('Host');
  if (headers.origin !== undefined && !isAllowed(hostOf(headers.origin), allowed)) return describe('Origin');
  return undefined;
}

const LOOPBACK_HOST = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

function isAllowed(host: string, allowed: ReadonlySet<string>): boolean {
  return LOOPBACK_HOST.test(host) || allowed.has(host);
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

function describe(header: string): string {
  return (
    `DNS rebinding protection: the ${header} of a local connection must be localhost, 127.0.0.1, [::1] or a host named in ` +
    'MEMORY_ALLOWED_HOSTS'
  );
}
