import type { RequestContext } from './request-context.ts';
import type { RequestMatcher, Routable } from './routable.ts';
import { headerOf, matchesPath, matchesText, withoutPort } from './router.ts';

/** Explains why a route was not selected. Omits values of headers and parameters, which may be credentials. */
export function explainSkipped({ hostnames, matches }: Routable, ctx: RequestContext): string {
  const host = withoutPort(ctx.host);
  if (hostnames.length > 0 && !hostnames.some((hostname) => matchesHost(hostname, host)))
    return `host ${host} is not ${hostnames.join(' or ')}`;
  const reasons = matches.map((match) => mismatch(match, ctx));
  const fitting = reasons.indexOf(undefined);
  if (fitting !== -1 || reasons.length === 0)
    return 'it also matches, but the selected route is more specific';
  return [...new Set(reasons)].slice(0, 8).join('; ');
}

function matchesHost(hostname: string, host: string): boolean {
  return hostname.startsWith('*.')
    ? host.endsWith(hostname.slice(1)) && host.length > hostname.length - 1
    : hostname === host;
}

/** Describes the first condition that is not met; undefined if all are. */
function mismatch({ path, method, headers, query }: RequestMatcher, ctx: RequestContext): string | undefined {
  if (!matchesPath(path, ctx.path))
    return path.kind === 'regex'
      ? `path ${ctx.path} does not match ${path.source}`
      : `path ${ctx.path} ${path.kind === 'exact' ? 'is not' : 'is not below'} ${path.value || '/'}`;
  if (method !== undefined && method !== ctx.method) return `method ${ctx.method} is not ${method}`;
  for (const { name, value } of headers) {
    const actual = headerOf(name, ctx);
    if (actual === undefined) return `header ${name} is missing`;
    if (!matchesText(value, actual)) return `header ${name} has another value`;
  }
  const parameters = new URLSearchParams(ctx.query);
  for (const { name, value } of query) {
    const actual = parameters.getAll(name);
    if (actual.length === 0) return `query parameter ${name} is missing`;
    if (!actual.some((each) => matchesText(value, each))) return `query parameter ${name} has another value`;
  }
  return undefined;
}
