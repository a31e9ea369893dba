import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { definePolicy } from '../kernel/policy.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { handshake } from '../kernel/request/upgrade.ts';

const schema = z
  .strictObject({
    additionalOrigins: z
      .array(z.url({ protocol: /^https?$/, error: 'expected an origin such as `https://app.example.com`' }))
      .default([])
      .describe('Trusted origins in addition to the origin of the request itself.'),
  })
  .describe(
    'Rejects requests (403) that a page of another origin makes a browser send. Safe methods are allowed, except to open a WebSocket.',
  );

/** Safe methods (RFC 9110 §9.2.1) change nothing, so requests of other origins are harmless. */
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Protects against cross-site request forgery by the headers Sec-Fetch-Site (Fetch Metadata) and Origin (Fetch standard). */
export const csrf = definePolicy({
  key: 'csrf',
  schema,
  compile({ additionalOrigins }) {
    const trusted = new Set(additionalOrigins.map((origin) => new URL(origin).origin));
    return {
      request(ctx) {
        // Pages of every origin may open WebSockets, with the cookies of the user (RFC 6455 §10.2).
        const isSafe = SAFE.has(ctx.method) && handshake.get(ctx) === undefined;
        const reason = isSafe ? undefined : rejectionReason(ctx, trusted);
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

/** Reason to reject the request, or undefined. Clients other than browsers send neither header and are allowed. */
function rejectionReason(ctx: RequestContext, trusted: ReadonlySet<string>): string | undefined {
  const site = ctx.headers.get('sec-fetch-site');
  const origin = ctx.headers.get('origin');
  if (site === 'same-origin' || site === 'none') return undefined;
  if (origin !== undefined && isTrusted(origin, ctx.host, trusted)) return undefined;
  if (site === undefined && origin === undefined) return undefined;
  return `the request comes from ${origin === undefined ? `a ${site} page` : 'another origin'}`;
}

function isTrusted(origin: string, host: string, trusted: ReadonlySet<string>): boolean {
  return trusted.has(origin) || (URL.canParse(origin) && new URL(origin).host === host);
}
