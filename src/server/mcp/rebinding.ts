import { rebindingHeader, rebindingMessage } from '../../core/dns-rebinding.ts';
import { AppError } from '../../core/errors.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { withoutPort } from '../kernel/router.ts';

/**
 * Protects an MCP backend from DNS rebinding; an invalid Origin is answered with status 403.
 *
 * @param allowedHosts Host names that the configuration allows.
 * @param always Checks connections on other addresses than loopback ones too.
 * @throws AppError `host_not_allowed`
 */
export function checkHostAndOrigin(
  ctx: RequestContext,
  allowedHosts: ReadonlySet<string>,
  always: boolean,
): void {
  const { localAddress } = ctx.request.socket;
  const origin = ctx.headers.get('origin');
  const header = rebindingHeader({ localAddress, host: withoutPort(ctx.host), origin }, allowedHosts, always);
  if (header === undefined) return;
  const value = header === 'Host' ? ctx.host : (origin ?? '');
  throw new AppError('host_not_allowed', {
    message: rebindingMessage(header, 'a configured hostname (dnsRebindingProtection of the mcp backend)'),
    detail: `${header}: ${value.slice(0, 100)}`,
  });
}
