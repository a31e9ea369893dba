import type { CompileContext } from './compile-context.ts';
import type { RouteConfig } from './config/schema.ts';

/**
 * Warns of settings of a route's policies that only one kind of backend asks for, on a route without such a backend:
 * whoever wrote them believes that they protect something. Other policies act on any request.
 */
export function reportIneffective(name: string, config: RouteConfig, context: CompileContext): void {
  const { policies, backends } = config;
  if (policies?.mcpAuthorization !== undefined && !backends.some(({ mcp }) => mcp !== undefined))
    context.at('policies', 'mcpAuthorization').report({
      code: 'AGW0303',
      severity: 'warning',
      atKey: true,
      message: `\`mcpAuthorization\` has no effect: route \`${name}\` has no \`mcp\` backend`,
      label: 'only `mcp` backends know of tools, prompts and resources',
      help: 'reach the MCP servers through `mcp: { targets: [ … ] }`; rules on any request are `authorization`',
    });
  if (backends.some(({ llm }) => llm !== undefined)) return;
  for (const [index, { type }] of (policies?.localRateLimit ?? []).entries())
    if (type === 'tokens')
      context.at('policies', 'localRateLimit', index, 'type').report({
        code: 'AGW0303',
        severity: 'warning',
        message: `a limit of \`tokens\` has no effect: route \`${name}\` has no \`llm\` backend`,
        label: 'only `llm` backends count tokens',
        help: 'reach the provider through `llm: { … }`, or limit `requests`',
      });
}
