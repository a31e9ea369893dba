import { isHeaderName } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { canonicalAuthority, canonicalTarget, type PathMode } from '../../kernel/request/request-target.ts';

/**
 * Sets the method, host or path of a request by the name of its pseudo-header, and returns whether the value is valid for it.
 * With an invalid value, the request keeps the one that its rules have seen.
 */
export function setRequestPart(ctx: RequestContext, name: string, value: string, paths: PathMode): boolean {
  if (name === ':method') {
    // RFC 9110 §9.3.6: CONNECT would ask the backend for a tunnel.
    if (!isHeaderName(value) || value === 'CONNECT') return false;
    ctx.method = value;
    return true;
  }
  if (name === ':authority') {
    const authority = canonicalAuthority(value);
    if (authority !== undefined) ctx.rewriteHost(authority);
    return authority !== undefined;
  }
  if (name !== ':path') return false;
  const target = canonicalTarget(value, paths, ctx.api?.hasEncodedSlashes === true);
  if (target !== undefined) ctx.rewriteTarget(target.path, target.query);
  return target !== undefined;
}
