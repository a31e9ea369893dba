import { AppError } from '../../core/errors.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { withoutPort } from '../kernel/router.ts';

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * DNS rebinding: a web page of an attacker can reach a server on the visitor's machine under the attacker's
 * host name. So a connection that came in on a loopback address must say a loopback host, or one that the
 * configuration names, in Host and Origin; with `always`, every connection must (MCP revision 2025-11-25, "Security Warning": invalid Origin is 403).
 * Throws `host_not_allowed`.
 */
export function checkHostAndOrigin(
  ctx: RequestContext,
  allowedHosts: ReadonlySet<string>,
  always: boolean,
): void {
  if (!always && !isLoopbackAddress(ctx.request.socket.localAddress ?? '')) return;
  const origin = ctx.headers.get('origin');
  if (!isAllowed(withoutPort(ctx.host), allowedHosts)) throw refusal('Host', ctx.host);
  // "null" is what a sandboxed page sends: it names nobody.
  if (origin !== undefined && !isAllowed(hostOf(origin), allowedHosts)) throw refusal('Origin', origin);
}

function refusal(header: string, value: string): AppError {
  return new AppError('host_not_allowed', {
    message:
      `DNS rebinding protection: the ${header} of a local connection must be localhost, 127.0.0.1, [::1] or a configured ` +
      'hostname (dnsRebindingProtection of the mcp backend)',
    detail: `${header}: ${value.slice(0, 100)}`,
  });
}

function isAllowed(host: string, allowedHosts: ReadonlySet<string>): boolean {
  return LOOPBACK.test(host) || allowedHosts.has(host);
}

function hostOf(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).hostname : '';
}

function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address);
}
