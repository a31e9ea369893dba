import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { PolicyRoute } from '../../kernel/policy.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { canonicalPattern } from '../../kernel/request/request-target.ts';

// Not `//`, which would be read as a host in a `Location` (RFC 3986 §4.2).
const PATH = /^\/(?![/\\])[^?#\s\\]*$/;
const message = (example: string): { error: string } => ({
  error: `expected a path without a query, such as \`${example}\``,
});

/** Schema of a new path, or a new beginning of it, in `urlRewrite` and `requestRedirect`. */
export const pathRewriteSchema = z.union([
  z.strictObject({ full: z.string().regex(PATH, message('/new')).describe('The new path.') }),
  z.strictObject({
    prefix: z
      .string()
      .refine((text) => text === '' || PATH.test(text), message('/v2'))
      .describe(
        'New beginning of the path, instead of the `pathPrefix` that the route matched. `/`: the prefix is removed.',
      ),
  }),
]);

type PathRewrite = z.output<typeof pathRewriteSchema>;

/** Reports a new path that request validation would reject, and returns the function that applies the rewrite. */
export function compilePathRewrite(
  rewrite: PathRewrite | undefined,
  context: CompileContext,
): (ctx: RequestContext) => string {
  if (rewrite === undefined) return (ctx) => ctx.path;
  const [key, text] =
    'full' in rewrite ? (['full', rewrite.full] as const) : (['prefix', rewrite.prefix] as const);
  const canonical = canonicalPattern(text, context.settings.requestValidation.pathNormalization);
  if (canonical === undefined)
    context.at(key).report({
      code: 'AGW0104',
      message: `\`${text}\` is not a path that requests may have`,
      help: 'remove dot segments, repeated slashes and what `config.http.pathNormalization` rejects',
    });
  const value = canonical ?? '/';
  if (key === 'full') return () => value;
  const prefix = value.replace(/\/$/, '');
  return (ctx) => {
    const matched = ctx.matchedPath;
    if (matched?.kind !== 'prefix') return ctx.path;
    const rest = ctx.path.slice(matched.value.length);
    return prefix + rest || '/';
  };
}

/** Reports matches that have no prefix to replace. */
export function requirePrefixMatches(
  rewrite: PathRewrite | undefined,
  { matches = [] }: PolicyRoute,
  context: CompileContext,
): void {
  if (rewrite === undefined || !('prefix' in rewrite)) return;
  if (matches.every(({ path }) => path['pathPrefix'] !== undefined)) return;
  context.report({
    code: 'AGW0105',
    message: '`path.prefix` replaces the `pathPrefix` of a match, but the route also matches other paths',
    help: 'give each of its `matches` a `pathPrefix`, or set `path.full`',
  });
}
