import { isHeaderName } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { canonicalAuthority, canonicalTarget, type PathMode } from '../../kernel/request/request-target.ts';

/**
 * Sets the method, host or path of a request by the name of its pseudo-header. An invalid value is ignored: the request keeps
 * the value that its rules have seen.
 */
export function setRequestPart(ctx: RequestContext, name: string, value: string, paths: PathMode): void {
  if (name === ':method') {
    // RFC 9110 §9.3.6: CONNECT would ask the backend for a tunnel.
    if (isHeaderName(value) && value !== 'CONNECT') ctx.method = value;
  } else if (name === ':authority') {
    const authority = canonicalAuthority(value);
    if (authority !== undefined) ctx.rewriteHost(authority);
  } else if (name === ':path') {
    const target = canonicalTarget(value, paths, ctx.api?.hasEncodedSlashes === true);
    if (target !== undefined) ctx.rewriteTarget(target.path, target.query);
  }
}
