import { z } from 'zod';
import { HeaderList } from '../kernel/header-list.ts';
import { definePolicy } from '../kernel/policy.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { authoritySchemas, rewriteAuthority } from './authority-rewrite.ts';

const schema = z
  .strictObject({
    scheme: z
      .enum(['http', 'https'])
      .optional()
      .describe(
        'Scheme of the new URL. Without `scheme` and `authority`, the new URL consists of the path only.',
      ),
    authority: z
      .union([z.literal('none'), ...authoritySchemas])
      .default('none')
      .describe('Host and port of the new URL, or one of them. `none`: those of the request.'),
    path: z
      .strictObject({
        full: z
          .string()
          .regex(/^\/(?![/\\])[^?#\s\\]*$/, { error: 'expected a path without a query, such as `/new`' })
          .describe('The new path.'),
      })
      .optional()
      .describe('Path of the new URL; by default, that of the request. The query is always kept.'),
    status: z
      .union([z.literal(301), z.literal(302), z.literal(303), z.literal(307), z.literal(308)])
      .default(302)
      .describe('Status of the response.'),
  })
  .describe('Redirects the client to another URL. No backend is called.');

type Redirect = z.output<typeof schema>;

/** Redirects clients to another URL without calling a backend. */
export const requestRedirect = definePolicy({
  key: 'requestRedirect',
  schema,
  answersAll: true,
  trace: { kind: 'request_redirect', stage: 'request redirect' },
  compile(redirect) {
    return {
      request(ctx) {
        const location = locationOf(ctx, redirect);
        const { status } = redirect;
        ctx.observer?.policy({ kind: 'requestRedirect', action: 'respond', reason: `status ${status}` });
        return { status, headers: new HeaderList(['location', location]), body: '' };
      },
    };
  },
});

function locationOf({ host, path: requestPath, query }: RequestContext, redirect: Redirect): string {
  const { scheme, authority, path = { full: requestPath } } = redirect;
  const isRelative = scheme === undefined && authority === 'none';
  const target = path.full + query;
  // A path that begins with two slashes would be read as a host (RFC 3986 §4.2).
  if ((isRelative || host === '') && !target.startsWith('//')) return target;
  const isTls = scheme === 'https';
  const to = authority === 'none' ? host : rewriteAuthority(authority, host, isTls);
  return `${scheme ?? 'http'}://${to}${target}`;
}
