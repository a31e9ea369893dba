import { RE2JS } from 're2js';
import { messageOf } from '../../core/errors.ts';
import type { CompileContext } from './compile-context.ts';
import type { MatchConfig } from './match-schema.ts';
import { canonicalPattern } from './path.ts';
import { warnOfRemovedHeader } from './removed-header.ts';
import type { RequestMatcher, TextMatcher } from './routable.ts';

/** Compiles `matches[]` of a route. Without matches, the route accepts every request. */
export function compileMatches(
  matches: readonly MatchConfig[] | undefined,
  context: CompileContext,
): RequestMatcher[] {
  if (matches === undefined) return [{ path: { kind: 'prefix', value: '' }, headers: [], query: [] }];
  return matches.map((match, index): RequestMatcher => {
    const at = context.at('matches', index);
    for (const [position, { name }] of match.headers.entries())
      warnOfRemovedHeader(name, at.at('headers', position, 'name'));
    return {
      path: compilePath(match.path, at.at('path')),
      headers: compileTextMatches(match.headers, at.at('headers')),
      query: compileTextMatches(match.query, at.at('query')),
      ...(match.method === undefined ? {} : { method: match.method }),
    };
  });
}

/** Compiles conditions on headers or query parameters. */
export function compileTextMatches(
  list: MatchConfig['headers'],
  context: CompileContext,
): { name: string; value: TextMatcher }[] {
  return list.map(({ name, value: { exact, regex } }, index) => ({
    name,
    value:
      exact !== undefined
        ? { exact }
        : { regex: compileRegex(regex ?? '', context.at(index, 'value', 'regex')) },
  }));
}

function compilePath(
  { exact, pathPrefix, regex }: MatchConfig['path'],
  context: CompileContext,
): RequestMatcher['path'] {
  if (exact !== undefined) return { kind: 'exact', value: canonical(exact, context.at('exact')) };
  // A trailing slash is ignored. The root prefix becomes the empty string, with which every path starts.
  if (pathPrefix !== undefined)
    return {
      kind: 'prefix',
      value: canonical(pathPrefix, context.at('pathPrefix')).replace(/\/+$/, ''),
    };
  const source = regex ?? '';
  return { kind: 'regex', value: compileRegex(source, context.at('regex')), source };
}

/** The configured path in canonical form, in which it is compared with request paths. */
function canonical(path: string, context: CompileContext): string {
  const pattern = canonicalPattern(path, context.settings.requestValidation.pathNormalization);
  if (pattern === undefined)
    context.report({
      code: 'AGW0303',
      severity: 'warning',
      message: 'this path matches no request',
      label: 'request validation rejects such a path before routing',
      help: 'remove dot segments, encoded slashes and backslashes; see `config.http.pathNormalization`',
    });
  return pattern ?? path;
}

function compileRegex(source: string, context: CompileContext): RE2JS {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    context.report({
      code: 'AGW0104',
      message: 'invalid regular expression',
      label: messageOf(error).replace(/^error parsing regexp: /, ''),
      notes: ['regular expressions use RE2 syntax, which has no look-around and no backreferences'],
    });
    return RE2JS.compile('');
  }
}
