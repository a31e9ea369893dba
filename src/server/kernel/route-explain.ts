import type { RequestContext } from './request-context.ts';
import type { RequestMatcher, Routable } from './routable.ts';
import { headerOf, matchesPath, matchesText, withoutPort } from './router.ts';

/** Why a route was not taken, in words. Values of headers and parameters are left out: they may be credentials. */
export function explainSkipped({ hostnames, matches }: Routable, x: RequestContext): string {
  const host = withoutPort(x.host);
  if (hostnames.length > 0 && !hostnames.some((hostname) => matchesHost(hostname, host)))
    return `host ${host} is not ${hostnames.join(' or ')}`;
  const reasons = matches.map((match) => mismatch(match, x));
  const fitting = reasons.indexOf(undefined);
  if (fitting !== -1 || reasons.length === 0)
    return 'it matches too, but the selected route is more specific';
  return [...new Set(reasons)].slice(0, 8).join('; ');
}

function matchesHost(hostname: string, host: string): boolean {
  return hostname.startsWith('*.')
    ? host.endsWith(hostname.slice(1)) && host.length > hostname.length - 1
    : hostname === host;
}

/** The first part of a match that does not hold. */
function mismatch({ path, method, headers, query }: RequestMatcher, x: RequestContext): string | undefined {
  if (!matchesPath(path, x.path))
    return path.kind === 'regex'
      ? `path ${x.path} does not match ${path.source}`
      : `path ${x.path} ${path.kind === 'exact' ? 'is not' : 'is not below'} ${path.value || '/'}`;
  if (method !== undefined && method !== x.method) return `method ${x.method} is not ${method}`;
  for (const { name, value } of headers) {
    const actual = headerOf(name, x);
    if (actual === undefined) return `header ${name} is missing`;
    if (!matchesText(value, actual)) return `header ${name} has another value`;
  }
  const parameters = new URLSearchParams(x.query);
  for (const { name, value } of query) {
    const actual = parameters.getAll(name);
    if (actual.length === 0) return `query parameter ${name} is missing`;
    if (!actual.some((each) => matchesText(value, each))) return `query parameter ${name} has another value`;
  }
  return undefined;
}
