import { z } from 'zod';
import { definePolicy } from '../kernel/policy.ts';
import { type HostRewrite, hostRewrite } from '../transport/host-backend.ts';
import { authoritySchemas, rewriteAuthority } from './authority-rewrite.ts';

const schema = z
  .strictObject({
    authority: z
      .union([z.enum(['auto', 'none']), ...authoritySchemas])
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
      request(ctx) {
        hostRewrite.set(ctx, rewrite);
        return undefined;
      },
    };
  },
});

function rewriteOf(authority: z.output<typeof schema>['authority']): HostRewrite | undefined {
  if (authority === 'auto') return undefined;
  if (authority === 'none') return (asked) => asked;
  return (asked, { isTls }) => rewriteAuthority(authority, asked, isTls);
}
