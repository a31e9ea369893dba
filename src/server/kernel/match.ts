import { RE2JS } from 're2js';
import { messageOf } from '../../core/errors.ts';
import type { CompileContext } from './compile-context.ts';
import type { MatchConfig } from './match-schema.ts';
import { canonicalPattern } from './path.ts';
import { warnOfRemovedHeader } from './removed-header.ts';
import type { RequestMatcher, TextMatcher } from './routable.ts';

/** Compiles `matches[]` of a route; without any, the route takes every request. */
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
  if (exact !== undefined) return { kind: 'exact', value: spelled(exact, context.at('exact')) };
  // A trailing slash of the pattern is ignored; the root prefix becomes the empty text, which every path begins with.
  if (pathPrefix !== undefined)
    return {
      kind: 'prefix',
      value: spelled(pathPrefix, context.at('pathPrefix')).replace(/\/+$/, ''),
    };
  const source = regex ?? '';
  return { kind: 'regex', value: compileRegex(source, context.at('regex')), source };
}

/** The configured path in the spelling in which requests are compared with it. */
function spelled(path: string, context: CompileContext): string {
  const canonical = canonicalPattern(path, context.settings.requestValidation.pathNormalization);
  if (canonical === undefined)
    context.report({
      code: 'AGW0303',
      severity: 'warning',
      message: 'this path matches no request',
      label: 'requests with such a path are refused before routes are tried',
      help: 'a path has no dot segments, encoded slashes or backslashes; see `config.http.pathNormalization`',
    });
  return canonical ?? path;
}

function compileRegex(source: string, context: CompileContext): RE2JS {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    context.report({
      code: 'AGW0104',
      message: 'invalid regular expression',
      label: messageOf(error).replace(/^error parsing regexp: /, ''),
      notes: ['expressions are RE2: no look-around and no back-references'],
    });
    return RE2JS.compile('');
  }
}
