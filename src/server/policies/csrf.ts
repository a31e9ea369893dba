import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { definePolicy } from '../kernel/policy.ts';
import type { RequestContext } from '../kernel/request-context.ts';

const schema = z
  .strictObject({
    additionalOrigins: z
      .array(z.url({ protocol: /^https?$/, error: 'expected an origin such as `https://app.example.com`' }))
      .default([])
      .describe('Origins besides the own one that may send such requests.'),
  })
  .describe('Refuses requests that a page of another origin makes a browser send. Safe methods pass.');

/** RFC 9110 §9.2.1: these change nothing, so it does not matter who made the browser send them. */
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Cross-site request forgery, told by what browsers say of a request's origin (Fetch Metadata; Fetch standard, "Origin"). */
export const csrf = definePolicy({
  key: 'csrf',
  schema,
  compile({ additionalOrigins }) {
    const trusted = new Set(additionalOrigins.map((origin) => new URL(origin).origin));
    return {
      request(ctx) {
        const reason = SAFE.has(ctx.method) ? undefined : problem(ctx, trusted);
        ctx.observer?.policy({
          kind: 'csrf',
          action: reason === undefined ? 'apply' : 'deny',
          reason: reason ?? 'not from another origin',
        });
        if (reason !== undefined)
          throw new AppError('authorization_failed', { message: 'CSRF validation failed', detail: reason });
        return undefined;
      },
    };
  },
});

/** What speaks against the request, or undefined. Programs that are no browsers send neither header. */
function problem(ctx: RequestContext, trusted: ReadonlySet<string>): string | undefined {
  const site = ctx.headers.get('sec-fetch-site');
  const origin = ctx.headers.get('origin');
  if (site === 'same-origin' || site === 'none') return undefined;
  if (origin !== undefined && isTrusted(origin, ctx.host, trusted)) return undefined;
  if (site === undefined && origin === undefined) return undefined;
  return `it comes from ${origin === undefined ? `a ${site} page` : 'another origin'}`;
}

function isTrusted(origin: string, host: string, trusted: ReadonlySet<string>): boolean {
  return trusted.has(origin) || (URL.canParse(origin) && new URL(origin).host === host);
}
