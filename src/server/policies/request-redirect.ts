import { z } from 'zod';
import { mapping } from '../../core/schema/mapping.ts';
import { definePolicy } from '../kernel/policy.ts';
import { HeaderList } from '../kernel/request/header-list.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { authoritySchemas, rewriteAuthority } from './rewrite/authority-rewrite.ts';
import { compilePathRewrite, pathRewriteSchema, requirePrefixMatches } from './rewrite/path-rewrite.ts';

const schema = z.lazy(() =>
  mapping('Redirects the client to another URL. No backend is called.', {
    scheme: z
      .enum(['http', 'https'])
      .optional()
      .describe(
        'Scheme of the new URL. Without `scheme` and `authority`, the new URL consists of the path only.',
      ),
    authority: z
      .union([z.enum(['none', 'auto']), ...authoritySchemas])
      .default('none')
      .describe(
        'Host and port of the new URL, or one of them. `none`, and `auto` too because no backend is called: those of the request.',
      ),
    path: pathRewriteSchema
      .optional()
      .describe('Path of the new URL; by default, that of the request. The query is always kept.'),
    status: z
      .union([z.literal(301), z.literal(302), z.literal(303), z.literal(307), z.literal(308)])
      .default(302)
      .describe('Status of the response.'),
  }),
);

type Redirect = z.output<typeof schema>;

/** Redirects clients to another URL without calling a backend. */
export const requestRedirect = definePolicy({
  key: 'requestRedirect',
  places: ['route', 'backend'],
  schema,
  answersAll: true,
  trace: { kind: 'request_redirect', stage: 'request redirect' },
  checkRoute: ({ path }, route, context) => requirePrefixMatches(path, route, context.at('path')),
  compile(redirect, context) {
    const newPath = compilePathRewrite(redirect.path, context.at('path'));
    return {
      request(ctx) {
        const location = locationOf(ctx, redirect, newPath(ctx));
        const { status } = redirect;
        ctx.observer?.policy({ kind: 'requestRedirect', action: 'respond', reason: `status ${status}` });
        return { status, headers: new HeaderList(['location', location]), body: '' };
      },
    };
  },
});

function locationOf({ client, host, query }: RequestContext, redirect: Redirect, path: string): string {
  const scheme = redirect.scheme ?? client.scheme;
  const authority = redirect.authority === 'auto' ? 'none' : redirect.authority;
  const isRelative = redirect.scheme === undefined && authority === 'none';
  const target = path + query;
  // A path that begins with two slashes would be read as a host (RFC 3986 §4.2).
  if ((isRelative || host === '') && !target.startsWith('//')) return target;
  const isTls = scheme === 'https';
  const to = authority === 'none' ? host : rewriteAuthority(authority, host, isTls);
  return `${scheme}://${to}${target}`;
}
