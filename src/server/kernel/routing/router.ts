import type { RequestContext } from '../request/request-context.ts';
import { HostMap } from './host-map.ts';
import type { RequestMatcher, Routable, Route, TextMatcher } from './route.ts';

/** One match of a route, under one of its hostnames. */
export interface Candidate<R> {
  readonly route: R;
  readonly match: RequestMatcher;
}

export type Router<R> = (ctx: RequestContext) => R | undefined;

const SLASH = 47;

/**
 * Creates the router of one gateway. Precedence: exact hostname, then the longest wildcard, then routes without
 * hostnames; for equal hostnames exact path, then prefix, then regex; then the longer path, a method, more headers, more
 * query parameters, the route key.
 */
export function createRouter<R extends Routable>(routes: readonly R[]): Router<R> {
  const groups = new Map<string | undefined, Candidate<R>[]>();
  for (const route of routes) {
    for (const hostname of route.hostnames.length === 0 ? [undefined] : route.hostnames)
      for (const match of route.matches) grouped(groups, hostname).push({ route, match });
  }
  const routers = new Map([...groups].map(([hostname, group]) => [hostname, pathRouter(group)]));
  const anyHost = routers.get(undefined);
  if (routers.size === 1 && anyHost !== undefined) return anyHost;
  const hosts = new HostMap(routers);
  return (ctx) => hosts.find(withoutPort(ctx.host), (router) => router(ctx));
}

/**
 * The router of one hostname. It looks only at matches whose exact path or prefix the request has, then at regular
 * expressions, so that thousands of routes cost no more than one.
 */
function pathRouter<R extends Routable>(candidates: Candidate<R>[]): Router<R> {
  candidates.sort(byPrecedence);
  const exact = new Map<string, Candidate<R>[]>();
  const prefixes = new Map<string, Candidate<R>[]>();
  const regexes: Candidate<R>[] = [];
  for (const candidate of candidates) {
    const { path } = candidate.match;
    if (path.kind === 'regex') regexes.push(candidate);
    else grouped(path.kind === 'exact' ? exact : prefixes, path.value).push(candidate);
  }
  // Longest first, as the matches are.
  const lengths = [...new Set([...prefixes.keys()].map(({ length }) => length))];
  return (ctx) => {
    const { path } = ctx;
    const found = firstMatch(exact.get(path), ctx);
    if (found !== undefined) return found;
    for (const length of lengths) {
      // Prefixes end with a segment.
      if (length !== path.length && path.charCodeAt(length) !== SLASH) continue;
      const below = firstMatch(prefixes.get(path.slice(0, length)), ctx);
      if (below !== undefined) return below;
    }
    return firstMatch(regexes, ctx);
  };
}

/** The route that answers the requests of a route: itself, or the one that it delegates to. */
export function answeringRoute(route: Route | undefined, ctx: RequestContext): Route | undefined {
  let found = route;
  while (found?.delegates !== undefined) {
    const next: Route | undefined = pickByWeight(found.delegates)?.find(ctx);
    // A route with backends of its own is one of its delegates.
    if (next === undefined || next.fullKey === found.fullKey) return next;
    found = next;
  }
  return found;
}

/** One of the choices, at random in proportion to their weights; undefined if there are none. */
export function pickByWeight<T extends { readonly weight: number }>(choices: readonly T[]): T | undefined {
  if (choices.length <= 1) return choices[0];
  const total = choices.reduce((sum, { weight }) => sum + weight, 0);
  let point = Math.random() * total;
  for (const choice of choices) {
    point -= choice.weight;
    if (point < 0) return choice;
  }
  return undefined;
}

function firstMatch<R>(candidates: readonly Candidate<R>[] | undefined, ctx: RequestContext): R | undefined {
  if (candidates === undefined) return undefined;
  for (const { route, match } of candidates) {
    if (!matchesRequest(match, ctx)) continue;
    ctx.matchedPath = match.path;
    return route;
  }
  return undefined;
}

/** The values of a key, to which more can be added. */
export function grouped<K, V>(groups: Map<K, V[]>, key: K): V[] {
  const group = groups.get(key) ?? [];
  groups.set(key, group);
  return group;
}

const KIND_ORDER = { exact: 0, prefix: 1, regex: 2 } as const;

/** Sort order of matches with the same hostname. */
export function byPrecedence<R extends Routable>(a: Candidate<R>, b: Candidate<R>): number {
  return (
    KIND_ORDER[a.match.path.kind] - KIND_ORDER[b.match.path.kind] ||
    pathLength(b.match) - pathLength(a.match) ||
    Number(b.match.method !== undefined) - Number(a.match.method !== undefined) ||
    b.match.headers.length - a.match.headers.length ||
    b.match.query.length - a.match.query.length ||
    (a.route.key < b.route.key ? -1 : Number(a.route.key > b.route.key))
  );
}

const pathLength = ({ path }: RequestMatcher): number =>
  (path.kind === 'regex' ? path.source : path.value).length;

function matchesRequest(match: RequestMatcher, ctx: RequestContext): boolean {
  if (!matchesPath(match.path, ctx.path)) return false;
  if (match.method !== undefined && match.method !== ctx.method) return false;
  if (!matchesHeaders(match.headers, ctx)) return false;
  if (match.query.length > 0) {
    const query = new URLSearchParams(ctx.query);
    for (const parameter of match.query) {
      if (!query.getAll(parameter.name).some((actual) => matchesText(parameter.value, actual))) return false;
    }
  }
  return true;
}

/** Whether all conditions on headers are met. */
export function matchesHeaders(conditions: RequestMatcher['headers'], ctx: RequestContext): boolean {
  for (const { name, value } of conditions) {
    const actual = headerOf(name, ctx);
    if (actual === undefined || !matchesText(value, actual)) return false;
  }
  return true;
}

export function matchesPath(path: RequestMatcher['path'], actual: string): boolean {
  switch (path.kind) {
    case 'exact':
      return actual === path.value;
    case 'prefix':
      // Whole segments: /foo matches /foo and /foo/x, not /foobar. The value has no trailing slash.
      return (
        actual.startsWith(path.value) &&
        (actual.length === path.value.length || actual.charCodeAt(path.value.length) === SLASH)
      );
    case 'regex':
      return path.value.matches(actual);
  }
}

function matchesText(matcher: TextMatcher, actual: string): boolean {
  return 'exact' in matcher ? matcher.exact === actual : matcher.regex.matches(actual);
}

/** Value of a header or of a pseudo-header (`:method`, `:path`, `:authority`, `:scheme`). Repeated fields are joined with `, `. */
function headerOf(name: string, ctx: RequestContext): string | undefined {
  switch (name) {
    case ':method':
      return ctx.method;
    case ':path':
      return ctx.path;
    case ':authority':
      return ctx.host;
    case ':scheme':
      return 'http';
    default: {
      const values = ctx.headers.all(name);
      return values.length === 0 ? undefined : values.join(', ');
    }
  }
}

/** `host:port` and `[v6]:port` without the port. */
export function withoutPort(authority: string): string {
  return authority.replace(/:\d*$/, '');
}

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
