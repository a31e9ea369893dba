import { z } from 'zod';
import { mapping } from '../../core/schema/mapping.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { type HeaderList, isSettableHeader, SETTABLE_HEADER } from '../kernel/request/header-list.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { withoutParameters } from '../kernel/request/request-target.ts';
import { backendKey, placedHeaders } from '../kernel/request/shared-slots.ts';
import { cookiesWithout, exactlyOneOf, parameterSchema } from './location.ts';

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Schema of where a request to a backend carries a credential. */
export const placementSchema = z.lazy(() =>
  z
    .strictObject({
      header: mapping('A header.', {
        name: z
          .string()
          .refine(isSettableHeader, { error: SETTABLE_HEADER })
          .describe('Header for the credential; it replaces the one of the client.'),
        prefix: z
          .string()
          .regex(/^[\x20-\x7e]*$/, { error: 'expected printable ASCII characters' })
          .nullish()
          .describe('Text before the credential, such as `Bearer `.'),
      }).optional(),
      queryParameter: parameterSchema,
      cookie: mapping('A cookie.', {
        name: z.string().regex(token, { error: 'expected a cookie name' }).describe('Name of the cookie.'),
      }).optional(),
    })
    .superRefine(exactlyOneOf('header', 'queryParameter', 'cookie'))
    .meta({ elsewhere: { expression: 'a credential cannot be put into an expression: use `header`' } }),
);

export type Placement = z.output<typeof placementSchema>;

/** Puts a credential into a request, in place of what was there. */
export type Place = (ctx: RequestContext, credential: string) => void;

/**
 * Without a configured place, it is where the backend expects it: `Authorization: Bearer` for a `host`, the header of the
 * provider for models.
 */
export function placeOf(placement: Placement | undefined, context: CompileContext): Place {
  if (placement === undefined) return (ctx, credential) => backendKey.set(ctx, credential);
  const { header, queryParameter, cookie } = placement;
  const { headers, parameters } = context.settings.secretNames;
  if (queryParameter !== undefined) {
    const names = new Set([queryParameter.name]);
    parameters.add(queryParameter.name.toLowerCase());
    return (ctx, credential) => {
      const kept = withoutParameters(ctx.query, names);
      const added = new URLSearchParams({ [queryParameter.name]: credential }).toString();
      ctx.rewriteTarget(ctx.path, kept === '' ? `?${added}` : `${kept}&${added}`);
    };
  }
  if (cookie !== undefined)
    return (ctx, credential) => {
      const kept = cookiesWithout(ctx, cookie.name);
      ctx.headers.set('cookie', [...kept, `${cookie.name}=${encodeURIComponent(credential)}`].join('; '));
    };
  const { name, prefix } = header ?? BEARER;
  headers.add(name.toLowerCase());
  return (ctx, credential) => {
    ctx.headers.set(name, `${prefix ?? ''}${credential}`);
    placedHeaders.ensure(ctx, () => new Set()).add(name);
  };
}

const BEARER = { name: 'authorization', prefix: 'Bearer ' };

/** A request of the gateway's own, before it is sent. */
export interface OwnRequest {
  /** Path and query. */
  path: string;
  readonly headers: HeaderList;
}

/** Puts a credential into a request of the gateway's own, in place of what was there: by default `Authorization: Bearer`. */
export function placeInOwn(
  placement: Placement | undefined,
  context: CompileContext,
): (request: OwnRequest, credential: string) => void {
  const { header = BEARER, queryParameter, cookie } = placement ?? {};
  const { headers, parameters } = context.settings.secretNames;
  if (queryParameter !== undefined) {
    const names = new Set([queryParameter.name]);
    parameters.add(queryParameter.name.toLowerCase());
    return (request, credential) => {
      const [path = '', ...query] = request.path.split('?');
      const kept = withoutParameters(query.length === 0 ? '' : `?${query.join('?')}`, names);
      const added = new URLSearchParams({ [queryParameter.name]: credential }).toString();
      request.path = `${path}${kept === '' ? '?' : `${kept}&`}${added}`;
    };
  }
  if (cookie !== undefined)
    return (request, credential) => {
      const kept = cookiesWithout(request, cookie.name);
      request.headers.set('cookie', [...kept, `${cookie.name}=${encodeURIComponent(credential)}`].join('; '));
    };
  headers.add(header.name.toLowerCase());
  return (request, credential) => request.headers.set(header.name, `${header.prefix ?? ''}${credential}`);
}
