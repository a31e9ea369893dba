import { z } from 'zod';

/** Pattern of a host name, or of an IPv6 address in brackets (RFC 3986 §3.2.2). */
const NAME = String.raw`(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])`;
const HOST = new RegExp(`^${NAME}$`);
const AUTHORITY = new RegExp(`^${NAME}(?::\\d{1,5})?$`);

/** Schemas of a new authority, or a part of one, in `urlRewrite` and `requestRedirect`. */
export const authoritySchemas = [
  z.strictObject({
    full: z
      .string()
      .regex(AUTHORITY, {
        error: 'expected a host with an optional port, such as `app.internal:8080`',
      })
      .describe('The whole authority.'),
  }),
  z.strictObject({
    host: z
      .string()
      .regex(HOST, { error: 'expected a host without a port, such as `app.internal`' })
      .describe('The host. The port of the request is kept.'),
  }),
  z.strictObject({
    port: z.int().min(1).max(65_535).describe('The port. The host of the request is kept.'),
  }),
] as const;

type Authority = z.output<(typeof authoritySchemas)[number]>;

/** Returns the new authority for the requested one. The default port of the scheme is omitted. */
export function rewriteAuthority(authority: Authority, requested: string, isTls: boolean): string {
  if ('full' in authority) return authority.full;
  if ('host' in authority) return authority.host + (portOf(requested) ?? '');
  const { port } = authority;
  const host = requested.slice(0, requested.length - (portOf(requested)?.length ?? 0));
  return port === (isTls ? 443 : 80) ? host : `${host}:${port}`;
}

/** The port with its colon; undefined without one. */
const portOf = (authority: string): string | undefined => /:\d*$/.exec(authority)?.[0];
