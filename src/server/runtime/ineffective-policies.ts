import type { RouteConfig } from '../config/schema.ts';
import type { Expression } from '../expressions/cel/expression.ts';
import type { CompileContext } from './compile-context.ts';

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
  if (policies?.urlRewrite !== undefined && !backends.some(({ host }) => host !== undefined))
    context.at('policies', 'urlRewrite').report({
      code: 'AGW0303',
      severity: 'warning',
      atKey: true,
      message: `\`urlRewrite\` has no effect: route \`${name}\` has no \`host\` backend`,
      label: 'models and MCP servers always get their own host',
      help: 'remove it, or reach the service through `host: …`',
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

/** Variables that a policy sets, besides `jwt`, which has a code of its own. */
const SET_BY = { apiKey: 'apiKey', extauthz: 'extAuthz' } as const;

/** Warns of variables that expressions of a route's policies read and none of its policies sets. */
export function reportUnsetVariables(
  name: string,
  { policies }: RouteConfig,
  expressions: readonly Pick<Expression, 'paths'>[],
  context: CompileContext,
): void {
  for (const [root, policy] of Object.entries(SET_BY) as [keyof typeof SET_BY, 'apiKey' | 'extAuthz'][]) {
    // `variables()` names them all.
    const isRead = expressions.some(({ paths }) =>
      [...paths.keys()].some((path) => path.startsWith(`${root}.`)),
    );
    if (!isRead || policies?.[policy] !== undefined) continue;
    context.report({
      code: 'AGW0309',
      severity: 'warning',
      message: `route \`${name}\` reads \`${root}\`, but nothing on it sets that`,
      help: `add the policy \`${policy}\`; until then \`${root}\` is null`,
    });
  }
}
