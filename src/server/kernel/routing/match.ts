import type { RE2JS } from 're2js';
import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import { membersOf } from '../../../core/foreign.ts';
import { list, mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import type { CompileContext } from '../compile-context.ts';
import { re2 } from '../re2.ts';
import { warnOfRemovedHeader } from '../request/removed-header.ts';
import { canonicalPattern } from '../request/request-target.ts';
import type { RequestMatcher, TextMatcher } from './route.ts';

const path = z.string().startsWith('/', { error: 'expected a path that starts with `/`' });

const textMatch = z
  .strictObject({
    exact: z.string().optional().describe('The whole value.'),
    regex: z.string().optional().describe('Regular expression (RE2) that the whole value must match.'),
  })
  .superRefine((value, context) => exactlyOne(value, ['exact', 'regex'], context));

/** Conditions on headers, all of which must hold. */
export const headerMatchesSchema = z
  .array(
    z.strictObject({
      name: nonEmpty.describe('Header, or `:method`, `:path`, `:authority`, `:scheme`.'),
      value: textMatch.describe('Condition on the value.'),
    }),
  )
  .describe('Conditions on headers.');

/** One entry of `matches[]`; all its conditions must be met. */
export const matchSchema = mapping('A condition on requests.', {
  path: z
    .strictObject({
      exact: path.optional().describe('The whole path.'),
      pathPrefix: path
        .optional()
        .describe('Leading segments of the path: `/a` matches `/a` and `/a/b`, not `/ab`.'),
      regex: z.string().optional().describe('Regular expression (RE2) that the whole path must match.'),
    })
    .superRefine((value, context) => exactlyOne(value, ['exact', 'pathPrefix', 'regex'], context))
    .meta({ foreignNames: { prefix: 'pathPrefix' } })
    .prefault({ pathPrefix: '/' })
    .describe('Condition on the path.'),
  headers: headerMatchesSchema.default([]).describe('Conditions on headers.'),
  method: z
    .string()
    .regex(/^[A-Z]+$/, { error: 'expected an HTTP method in capitals, such as `GET`' })
    .optional()
    .describe('HTTP method.'),
  query: list(
    'Conditions on query parameters, on their decoded values.',
    z.strictObject({
      name: nonEmpty.describe('Query parameter.'),
      value: textMatch.describe('Condition on the value.'),
    }),
  ),
}).meta({
  elsewhere: {
    prefix: 'write `path: { pathPrefix: /… }`',
  },
});

type MatchConfig = z.output<typeof matchSchema>;

function exactlyOne(value: object, keys: readonly string[], context: z.core.$RefinementCtx): void {
  const members = membersOf(value);
  const present = keys.filter((key) => members[key] !== undefined);
  if (present.length === 1) return;
  context.addIssue({
    code: 'custom',
    message: `expected exactly one of ${keys.map((key) => `\`${key}\``).join(', ')}`,
    params: { code: 'AGW0105' },
  });
}

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
      value: canonical(pathPrefix, context.at('pathPrefix')).replace(/(?<!\/)\/+$/, ''),
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
      message: 'this path matches no request',
      label: 'request validation rejects such a path before routing',
      help: 'remove dot segments, encoded slashes and backslashes; see `config.http.pathNormalization`',
    });
  return pattern ?? path;
}

/** Compiles a regular expression (RE2). An invalid one is reported, and an empty one is returned. */
export function compileRegex(source: string, context: CompileContext): RE2JS {
  try {
    return re2().compile(source);
  } catch (error) {
    context.report({
      code: 'AGW0104',
      message: 'invalid regular expression',
      label: messageOf(error).replace(/^error parsing regexp: /, ''),
      notes: ['regular expressions use RE2 syntax, which has no look-around and no backreferences'],
    });
    return re2().compile('');
  }
}
