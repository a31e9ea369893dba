import { z } from 'zod';
import { durationSchema, goDuration } from '../../core/duration.ts';
import { flag, list } from '../../core/schema/mapping.ts';
import { definePolicy } from '../kernel/policy.ts';
import { HeaderList } from '../kernel/request/header-list.ts';

const schema = z.lazy(() =>
  z
    .strictObject({
      allowOrigins: list(
        'Origins that may read responses: exact, `https://*.example.com`, or `*` for any.',
        z.string().min(1),
      ),
      allowMethods: list('Methods that a preflight allows. `*` allows the requested one.', z.string().min(1)),
      allowHeaders: list(
        'Request headers that a preflight allows. `*` allows the requested ones.',
        z.string().min(1),
      ),
      exposeHeaders: list(
        'Response headers that pages may read, such as `Mcp-Session-Id`.',
        z.string().min(1),
      ),
      allowCredentials: flag(
        'Whether responses to requests with cookies or other credentials may be read.',
        false,
      ),
      maxAge: durationSchema
        .optional()
        .describe(
          "How long browsers may cache the response to a preflight; the browser's default if absent.",
        ),
    })
    .describe(
      'Answers preflights and lets browser pages of other origins read responses, including error responses.',
    ),
);

/** Cross-origin resource sharing (Fetch standard, "CORS protocol"). */
export const cors = definePolicy({
  key: 'cors',
  places: ['gateway', 'route'],
  schema,
  dump: ({ maxAge, ...rest }) => ({
    cors: { ...rest, maxAge: maxAge === undefined ? null : goDuration(maxAge) },
  }),
  compile(config, context) {
    for (const [index, pattern] of config.allowOrigins.entries()) {
      if (pattern === '*' || pattern.split('*').length <= 2) continue;
      context.at('allowOrigins', index).report({
        code: 'AGW0104',
        message: `\`${pattern}\` has more than one \`*\``,
        help: 'use a single `*` for subdomains: `https://*.example.com`',
      });
    }
    const isAllowed = originMatcher(config.allowOrigins);
    const expose = config.exposeHeaders.join(', ');
    /** Sets the headers with which the browser lets the page read a response. */
    const grant = (headers: HeaderList, origin: string): void => {
      // Always the origin, never `*`, which does not work with credentials. Caches need Vary for this.
      headers.set('access-control-allow-origin', origin);
      if (config.allowCredentials) headers.set('access-control-allow-credentials', 'true');
      if (expose !== '') headers.set('access-control-expose-headers', expose);
    };
    const preflight = (request: HeaderList): HeaderList => {
      const headers = new HeaderList();
      const allow = (name: string, allowed: readonly string[], requested: string | undefined): void => {
        const value = allowed.includes('*')
          ? (requested ?? (config.allowCredentials ? undefined : '*'))
          : allowed.join(', ');
        if (value !== undefined && value !== '') headers.set(name, value);
      };
      allow(
        'access-control-allow-methods',
        config.allowMethods,
        request.get('access-control-request-method'),
      );
      allow(
        'access-control-allow-headers',
        config.allowHeaders,
        request.get('access-control-request-headers'),
      );
      if (config.maxAge !== undefined)
        headers.set('access-control-max-age', String(Math.floor(config.maxAge / 1000)));
      return headers;
    };
    return {
      request(ctx) {
        const origin = ctx.headers.get('origin');
        const asksMethod = ctx.headers.has('access-control-request-method');
        if (origin === undefined || (ctx.method !== 'OPTIONS' && !isAllowed(origin))) {
          ctx.observer?.policy({
            kind: 'cors',
            action: 'skip',
            reason: origin === undefined ? 'no Origin header' : 'the origin is not allowed',
            snapshot: { origin },
            ...(origin === undefined ? {} : { severity: 'warn' }),
          });
          return undefined;
        }
        if (ctx.method !== 'OPTIONS' || !(isAllowed(origin) || asksMethod)) {
          ctx.observer?.policy({
            kind: 'cors',
            action: 'apply',
            reason: 'the origin is allowed',
            snapshot: { origin },
          });
          return undefined;
        }
        // A preflight of another origin gets 200, too: the browser rejects it because of the missing headers.
        ctx.observer?.policy({
          kind: 'cors',
          action: 'respond',
          reason: 'preflight',
          snapshot: { origin, allowed: isAllowed(origin) },
          severity: isAllowed(origin) ? 'success' : 'warn',
        });
        return {
          status: 200,
          headers: isAllowed(origin) ? preflight(ctx.headers) : new HeaderList(),
          body: undefined,
        };
      },
      response(ctx, reply) {
        // This policy replaces the headers of backends. Caches must distinguish responses by origin (Vary).
        for (const name of OWN_HEADERS) reply.headers.delete(name);
        addVary(reply.headers);
        const origin = ctx.headers.get('origin');
        if (origin !== undefined && isAllowed(origin)) grant(reply.headers, origin);
      },
    };
  },
});

const OWN_HEADERS = [
  'access-control-allow-origin',
  'access-control-allow-credentials',
  'access-control-expose-headers',
];

function addVary(headers: HeaderList): void {
  const isPresent = headers.all('vary').some((value) => /(?:^|,)\s*origin\s*(?:,|$)/i.test(value));
  if (!isPresent) headers.append('vary', 'Origin');
}

function originMatcher(patterns: readonly string[]): (origin: string) => boolean {
  if (patterns.includes('*')) return () => true;
  const exact = new Set(
    patterns.filter((pattern) => !pattern.includes('*')).map((pattern) => pattern.toLowerCase()),
  );
  const wildcards = patterns
    .filter((pattern) => pattern.includes('*'))
    .map((pattern) => {
      const [before = '', after = ''] = pattern.toLowerCase().split('*');
      return [before, after] as const;
    });
  return (origin) => {
    const lower = origin.toLowerCase();
    return exact.has(lower) || wildcards.some(([before, after]) => matchesWildcard(lower, before, after));
  };
}

/** `*` matches host labels only, so that `https://*.example.com` cannot match `https://evil/.example.com`. */
function matchesWildcard(origin: string, before: string, after: string): boolean {
  if (!origin.startsWith(before) || !origin.endsWith(after) || origin.length <= before.length + after.length)
    return false;
  return /^[a-z0-9.-]+$/.test(origin.slice(before.length, origin.length - after.length));
}
