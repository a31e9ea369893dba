import { z } from 'zod';
import { definePolicy } from '../kernel/policy.ts';
import { type HostRewrite, hostRewrite } from '../transport/host-backend.ts';

/** A name, or an address in brackets (RFC 3986 §3.2.2). */
const NAME = String.raw`(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])`;
const HOST = new RegExp(`^${NAME}$`);
const AUTHORITY = new RegExp(`^${NAME}(?::\\d{1,5})?$`);

const schema = z
  .strictObject({
    authority: z
      .union([
        z.enum(['auto', 'none']),
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
      ])
      .default('auto')
      .describe(
        'Host that a plain HTTP service gets. `auto`: its own when it is configured by a name, otherwise that of the client; `none`: that of the client; or another one.',
      ),
  })
  .describe(
    'Changes what a plain HTTP service is asked for. Models and MCP servers always get their own host.',
  );

/** The Host of requests to plain HTTP services, where it is to be another than by default. */
export const urlRewrite = definePolicy({
  key: 'urlRewrite',
  schema,
  trace: { kind: 'url_rewrite', stage: 'url rewrite' },
  checkRoute(_settings, { name, backends }, context) {
    if (backends.some(({ host }) => host !== undefined)) return;
    context.report({
      code: 'AGW0303',
      severity: 'warning',
      atKey: true,
      message: `\`urlRewrite\` has no effect: route \`${name}\` has no \`host\` backend`,
      label: 'models and MCP servers always get their own host',
      help: 'remove it, or reach the service through `host: …`',
    });
  },
  compile({ authority }) {
    const rewrite = rewriteOf(authority);
    return {
      request(x) {
        hostRewrite.set(x, rewrite);
        return undefined;
      },
    };
  },
});

function rewriteOf(authority: z.output<typeof schema>['authority']): HostRewrite | undefined {
  if (authority === 'auto') return undefined;
  if (authority === 'none') return (asked) => asked;
  if ('full' in authority) return () => authority.full;
  if ('host' in authority) return (asked) => authority.host + (portOf(asked) ?? '');
  const { port } = authority;
  return (asked, { isTls }) => {
    const host = asked.slice(0, asked.length - (portOf(asked)?.length ?? 0));
    return port === (isTls ? 443 : 80) ? host : `${host}:${port}`;
  };
}

/** With its colon. */
const portOf = (authority: string): string | undefined => /:\d*$/.exec(authority)?.[0];
