import { z } from 'zod';
import { readsUnguarded } from '../expressions/cel/expression.ts';
import { resolverFor } from '../expressions/resolver.ts';
import { compileRules, type RuleSet, ruleSchema, rulesByEffect } from '../expressions/rules.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { TracedExpression } from '../kernel/expression.ts';
import { definePolicy } from '../kernel/policy.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import type { ItemAccess } from './request-fields.ts';
import { itemAccess, mcpFields } from './request-fields.ts';
import { mcpAuthorizationScope } from './variables.ts';

const schema = z
  .strictObject({
    rules: z
      .array(ruleSchema)
      .min(1)
      .describe(
        'CEL expressions over `mcp.tool`, `mcp.prompt`, `mcp.resource`, `mcp.task` (each with `name` and `target`), `jwt`, `request` and more. An expression alone is an `allow` rule: one that is true suffices.',
      ),
  })
  .describe(
    'Which tools, prompts and resources a caller may see and use. Others are left out of lists and unknown when called; methods that MCP does not have are refused. For `mcp` backends; rules on any request are `authorization`.',
  );

/** Access to single items of MCP targets. The MCP backend asks for each item it lists or is called on. */
export const mcpAuthorization = definePolicy({
  key: 'mcpAuthorization',
  schema,
  trace: { kind: 'mcp_authorization', stage: 'mcp authorization', isBackendPolicy: true },
  dump: ({ rules }) => ({ mcpAuthorization: { rules: rulesByEffect(rules, 'allow') } }),
  checkRoute(_settings, { name, backends }, context) {
    if (backends.some(({ mcp }) => mcp !== undefined)) return;
    context.report({
      code: 'AGW0303',
      severity: 'warning',
      atKey: true,
      message: `\`mcpAuthorization\` has no effect: route \`${name}\` has no \`mcp\` backend`,
      label: 'only `mcp` backends know of tools, prompts and resources',
      help: 'reach the MCP servers through `mcp: { targets: [ … ] }`; rules on any request are `authorization`',
    });
  },
  compile({ rules }, context) {
    const decide = compileRules(rules, 'allow', mcpAuthorizationScope, context, warnOfLists);
    return {
      request(ctx) {
        itemAccess.set(ctx, new ItemRules(ctx, decide));
        return undefined;
      },
    };
  },
});

/** The rules for one request. A class: a function stored on the request would keep it alive longer than needed. */
class ItemRules implements ItemAccess {
  readonly #ctx: RequestContext;
  readonly #decide: RuleSet;

  constructor(ctx: RequestContext, decide: RuleSet) {
    this.#ctx = ctx;
    this.#decide = decide;
  }

  allows(kind: string, target: string, name: string, args?: unknown): boolean {
    const ctx = this.#ctx;
    const member = kind === 'template' ? 'resource' : kind;
    const item = args === undefined ? { name, target } : { name, target, arguments: args };
    const decision = this.#decide(
      resolverFor(ctx, { mcp: { methodName: mcpFields.get(ctx)?.method ?? null, [member]: item } }),
    );
    ctx.observer?.authorization('mcpAuthorization', decision, { kind, target, name });
    return decision.allowed;
  }
}

/** Rules decide lists too, where nothing is called: one that needs arguments hides the tools that it is about. */
function warnOfLists(rule: TracedExpression, context: CompileContext): void {
  if (!readsUnguarded(rule, 'mcp.tool.arguments')) return;
  context.report({
    code: 'AGW0309',
    severity: 'warning',
    message: 'this rule also decides lists, where `mcp.tool.arguments` is not set',
    label: 'fails there, so that the tools it is about are left out of lists',
    help: 'begin with `!has(mcp.tool.arguments) || `, or in a `deny` rule with `has(mcp.tool.arguments) && `',
  });
}
