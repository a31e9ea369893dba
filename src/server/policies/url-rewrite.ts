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
        'Host header for plain HTTP services. `auto`: the configured host name of the service, or the host of the request if the service is configured by address. `none`: the host of the request.',
      ),
  })
  .describe(
    'Changes the Host header of requests to plain HTTP services. LLM providers and MCP servers always get their own host.',
  );

/** Changes the Host header of requests to plain HTTP services. */
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
      label: 'LLM providers and MCP servers always get their own host',
      help: 'remove it, or configure the service as a `host` backend',
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
  if (authority === 'none') return (requested) => requested;
  return (requested, { isTls }) => rewriteAuthority(authority, requested, isTls);
}
