import { z } from 'zod';

/** A name, or an address in brackets (RFC 3986 §3.2.2). */
const NAME = String.raw`(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])`;
const HOST = new RegExp(`^${NAME}$`);
const AUTHORITY = new RegExp(`^${NAME}(?::\\d{1,5})?$`);

/** Another authority, or a part of one, as `urlRewrite` and `requestRedirect` write it. */
export const authoritySchemas = [
  z.strictObject({
    full: z
      .string()
      .regex(AUTHORITY, {
        error: 'expected a host, with a port if it needs one, such as `app.internal:8080`',
      })
      .describe('The whole of it.'),
  }),
  z.strictObject({
    host: z
      .string()
      .regex(HOST, { error: 'expected a host without a port, such as `app.internal`' })
      .describe('The host; the port stays as the client sent it.'),
  }),
  z.strictObject({
    port: z.int().min(1).max(65_535).describe('The port; the host stays as the client sent it.'),
  }),
] as const;

type Authority = z.output<(typeof authoritySchemas)[number]>;

/** The authority that comes of the one that the client asked for. The default port of the scheme is left out. */
export function rewriteAuthority(authority: Authority, asked: string, isTls: boolean): string {
  if ('full' in authority) return authority.full;
  if ('host' in authority) return authority.host + (portOf(asked) ?? '');
  const { port } = authority;
  const host = asked.slice(0, asked.length - (portOf(asked)?.length ?? 0));
  return port === (isTls ? 443 : 80) ? host : `${host}:${port}`;
}

/** With its colon. */
const portOf = (authority: string): string | undefined => /:\d*$/.exec(authority)?.[0];
