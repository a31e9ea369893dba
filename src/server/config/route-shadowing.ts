import { LIMITS } from '../../core/limits.ts';
import type { Problem } from '../kernel/compile-context.ts';
import type { RequestMatcher, Routable, TextMatcher } from '../kernel/routing/route.ts';
import { byPrecedence, type Candidate, grouped } from '../kernel/routing/router.ts';

type NamedRoute = Routable & { readonly name: string };

/** A route that no request reaches, and a route that matches its requests first. */
interface Shadowed<R> {
  readonly route: R;
  readonly by: R;
}

interface Compared<R> extends Candidate<R> {
  /** Conditions other than the path, as comparable strings. */
  readonly conditions: readonly string[];
}

/**
 * Routes of one port that are never reached: for each of their hostnames, each of their matches is covered by a match with
 * higher precedence. Does not find matches that are covered only by several others together.
 */
export function shadowedRoutes<R extends NamedRoute>(routes: readonly R[]): Shadowed<R>[] {
  const byHost = new Map<string, Compared<R>[]>();
  for (const route of routes) {
    for (const host of route.hostnames.length === 0 ? [''] : route.hostnames)
      for (const match of route.matches)
        grouped(byHost, host).push({ route, match, conditions: conditionsOf(match) });
  }
  const reached = new Set<R>();
  const takenBy = new Map<R, R>();
  for (const candidates of byHost.values()) {
    const covering = coveringRoute(candidates.sort(byPrecedence));
    for (const candidate of candidates) {
      const { route } = candidate;
      const by = covering(candidate);
      if (by === undefined) reached.add(route);
      else if (by !== route && !takenBy.has(route)) takenBy.set(route, by);
    }
  }
  return routes.flatMap((route) => {
    const by = takenBy.get(route);
    // Two routes with the same name are reported as such.
    return reached.has(route) || by === undefined || by.name === route.name ? [] : [{ route, by }];
  });
}

/**
 * Returns a function that finds the route that covers a match; call it in order of precedence. Of matches with the same
 * path, those with more conditions come first, so only a match with the same conditions can cover another. Exact paths
 * come before prefixes, and longer prefixes before shorter ones. Regular expressions come after all prefixes.
 */
function coveringRoute<R>(candidates: readonly Compared<R>[]): (candidate: Compared<R>) => R | undefined {
  const first = new Map<string, R>();
  const prefixes = new Map<string, Compared<R>[]>();
  for (const candidate of candidates) {
    const { path } = candidate.match;
    if (path.kind === 'prefix') grouped(prefixes, path.value).push(candidate);
  }
  return ({ route, match: { path }, conditions }) => {
    const key = JSON.stringify([path.kind, path.kind === 'regex' ? path.source : path.value, ...conditions]);
    const same = first.get(key);
    if (same !== undefined) return same;
    first.set(key, route);
    if (path.kind !== 'regex') return undefined;
    for (const prefix of segments(literalBeginning(path.source)).reverse()) {
      // The last matches have the fewest conditions.
      const known = prefixes.get(prefix)?.slice(-LIMITS.shadowingChecks);
      const covering = known?.find((other) => other.conditions.every((each) => conditions.includes(each)));
      if (covering !== undefined) return covering.route;
    }
    return undefined;
  };
}

/** The warning about a shadowed route. */
export function shadowedProblem(route: NamedRoute, by: NamedRoute): Problem {
  const isRegex = route.matches.every(({ path }) => path.kind === 'regex');
  const isPrefix = by.matches.some(({ path }) => path.kind === 'prefix');
  return {
    code: 'AGW0306',
    message: `route \`${route.name}\` is never reached: route \`${by.name}\` matches all its requests first`,
    help:
      isRegex && isPrefix
        ? 'a prefix takes precedence over every regular expression: restrict that route, for example with `hostnames`, or use a prefix here'
        : 'add a longer path, or a method, header or query parameter that the other route does not require',
    notes: [
      'the order of routes in the file does not matter: exact path, prefix, then regular expression; the longer first',
    ],
  };
}

function conditionsOf({ method, headers, query }: RequestMatcher): string[] {
  const texts = [
    ...(method === undefined ? [] : [`method ${method}`]),
    ...headers.map(({ name, value }) => `header ${name.toLowerCase()}${shown(value)}`),
    ...query.map(({ name, value }) => `query ${name}${shown(value)}`),
  ];
  return [...new Set(texts)].sort();
}

const shown = (matcher: TextMatcher): string =>
  'exact' in matcher ? `=${matcher.exact}` : `~${matcher.regex.pattern()}`;

/** All prefixes of a path at segment boundaries: for `/a/b`, the empty root and `/a`. */
function segments(beginning: string): string[] {
  return ['', ...[...beginning.slice(1).matchAll(/\//g)].map(({ index }) => beginning.slice(0, index + 1))];
}

/** A literal prefix of all texts that a regular expression matches; may be shorter than possible. */
function literalBeginning(source: string): string {
  if (source.includes('|')) return '';
  const [prefix = ''] = /^\^?(?:[\w/~:@%-]|\\[./-])*/.exec(source) ?? [];
  const isOptional = /^[*?{]/.test(source.slice(prefix.length));
  const literal = prefix.replace(/^\^/, '').replaceAll('\\', '');
  return isOptional ? literal.slice(0, -1) : literal;
}
