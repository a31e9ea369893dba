import type { Problem } from '../compile-context.ts';
import {
  byPrecedence,
  type Candidate,
  matchesPath,
  type RequestMatcher,
  type Routable,
  type TextMatcher,
} from './router.ts';

/** A route that no request reaches, and the first of those that take its requests. */
interface Shadowed<R> {
  readonly route: R;
  readonly by: R;
}

/**
 * Routes of one port that are never reached: under each of their hostnames, each of their matches is covered by one
 * that is tried earlier. What several matches cover together is not found.
 */
export function shadowedRoutes<R extends Routable & { readonly name: string }>(
  routes: readonly R[],
): Shadowed<R>[] {
  const byHost = new Map<string, Candidate<R>[]>();
  for (const route of routes) {
    for (const host of route.hostnames.length === 0 ? [''] : route.hostnames) {
      const candidates = route.matches.map((match) => ({ route, match }));
      byHost.set(host, [...(byHost.get(host) ?? []), ...candidates]);
    }
  }
  const reached = new Set<R>();
  const takenBy = new Map<R, R>();
  for (const candidates of byHost.values()) {
    candidates.sort(byPrecedence);
    for (const [index, { route, match }] of candidates.entries()) {
      const earlier = candidates.find((other, place) => place < index && covers(other.match, match));
      if (earlier === undefined) reached.add(route);
      else if (earlier.route !== route && !takenBy.has(route)) takenBy.set(route, earlier.route);
    }
  }
  return routes.flatMap((route) => {
    const by = takenBy.get(route);
    // Of two with one name, that is the mistake.
    return reached.has(route) || by === undefined || by.name === route.name ? [] : [{ route, by }];
  });
}

/** The warning about it. */
export function shadowedProblem(
  route: Routable & { readonly name: string },
  by: Routable & { readonly name: string },
): Problem {
  const isRegex = route.matches.every(({ path }) => path.kind === 'regex');
  const isPrefix = by.matches.some(({ path }) => path.kind === 'prefix');
  return {
    code: 'AGW0306',
    severity: 'warning',
    message: `route \`${route.name}\` is never reached: route \`${by.name}\` takes all its requests`,
    help:
      isRegex && isPrefix
        ? 'a prefix comes before every regular expression: narrow that route, for instance with `hostnames`, or give this one a prefix'
        : 'give this route a longer path, or a method, header or query parameter that the other does not ask for',
    notes: [
      'the order of routes in the file does not matter: exact path, prefix, then regular expression; the longer first',
    ],
  };
}

/** Whether every request that matches the second also matches the first. */
function covers(a: RequestMatcher, b: RequestMatcher): boolean {
  return (
    coversPath(a.path, b.path) &&
    (a.method === undefined || a.method === b.method) &&
    a.headers.every((wanted) => b.headers.some((other) => isSame(wanted, other))) &&
    a.query.every((wanted) => b.query.some((other) => isSame(wanted, other)))
  );
}

function coversPath(a: RequestMatcher['path'], b: RequestMatcher['path']): boolean {
  if (a.kind === 'regex') return b.kind === 'regex' && a.source === b.source;
  if (b.kind === 'exact') return matchesPath(a, b.value);
  if (a.kind === 'exact') return false;
  // The root prefix is the empty text.
  if (a.value === '') return true;
  const beginning = b.kind === 'regex' ? literalBeginning(b.source) : `${b.value}/`;
  return beginning.startsWith(`${a.value}/`);
}

type NamedText = RequestMatcher['headers'][number];

function isSame(a: NamedText, b: NamedText): boolean {
  return a.name.toLowerCase() === b.name.toLowerCase() && textKey(a.value) === textKey(b.value);
}

const textKey = (matcher: TextMatcher): string =>
  'exact' in matcher ? `=${matcher.exact}` : `~${matcher.regex.pattern()}`;

/** What every text that matches begins with, as far as it is easily seen. */
function literalBeginning(source: string): string {
  if (source.includes('|')) return '';
  const [written = ''] = /^\^?(?:[\w/~:@%-]|\\[./-])*/.exec(source) ?? [];
  const isOptional = /^[*?{]/.test(source.slice(written.length));
  const literal = written.replace(/^\^/, '').replaceAll('\\', '');
  return isOptional ? literal.slice(0, -1) : literal;
}
