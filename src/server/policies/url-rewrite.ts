import { z } from 'zod';
import { mapping } from '../../core/schema/mapping.ts';
import type { Problem } from '../kernel/compile-context.ts';
import { definePolicy, isService } from '../kernel/policy.ts';
import { type HostRewrite, hostRewrite } from '../transport/host-backend.ts';
import { authoritySchemas, rewriteAuthority } from './rewrite/authority-rewrite.ts';
import { compilePathRewrite, pathRewriteSchema, requirePrefixMatches } from './rewrite/path-rewrite.ts';

const schema = mapping('Changes the path of requests, and the Host header for plain HTTP services.', {
  authority: z
    .union([z.enum(['auto', 'none']), ...authoritySchemas])
    .default('auto')
    .describe(
      'Host header for plain HTTP services. `auto`: the configured host name of the service, or the host of the request if the service is configured by address. `none`: the host of the request. LLM providers and MCP servers always get their own host.',
    ),
  path: pathRewriteSchema
    .optional()
    .describe('Path for the backend, instead of that of the request. The query is kept.'),
});

/** Changes the path of requests, and the Host header for plain HTTP services. */
export const urlRewrite = definePolicy({
  key: 'urlRewrite',
  schema,
  trace: { kind: 'url_rewrite', stage: 'url rewrite' },
  checkRoute({ authority, path }, route, context) {
    requirePrefixMatches(path, route, context.at('path'));
    const { name, backends } = route;
    if (backends.some(isService)) return;
    const isForMcp = backends.length > 0 && backends.every(({ api }) => api === 'mcp');
    const problem = (key: string): Problem => ({
      code: 'AGW0303',
      atKey: true,
      message: `\`${key}\` has no effect: route \`${name}\` has no \`host\` backend`,
      label: `LLM providers and MCP servers always get their own host${isForMcp ? ' and path' : ''}`,
      help: 'remove it, or configure the service as a `host` backend',
    });
    // The path decides which call of an LLM API a request is. MCP servers get their own path as well.
    if (path === undefined || isForMcp) context.report(problem('urlRewrite'));
    else if (authority !== 'auto') context.at('authority').report(problem('urlRewrite.authority'));
  },
  compile({ authority, path }, context) {
    const rewrite = rewriteOf(authority);
    const newPath = compilePathRewrite(path, context.at('path'));
    return {
      request(ctx) {
        hostRewrite.set(ctx, rewrite);
        if (path === undefined) return undefined;
        ctx.rewriteTarget(newPath(ctx), ctx.query);
        ctx.observer?.policy({ kind: 'urlRewrite', action: 'apply', reason: `path ${ctx.path}` });
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
