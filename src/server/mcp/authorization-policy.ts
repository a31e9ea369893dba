import { z } from 'zod';
import { readsUnguarded } from '../expressions/cel/expression.ts';
import type { PlacedExpression } from '../expressions/traced-expression.ts';
import { lookupIn } from '../expressions/variables.ts';
import { definePolicy } from '../kernel/policy.ts';
import type { Exchange, ItemAccess } from '../kernel/request-context.ts';
import { compileRules, type RuleSet, ruleSchema } from '../policies/rules.ts';
import type { CompileContext } from '../runtime/compile-context.ts';

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
  compile({ rules }, context) {
    const decide = compileRules(rules, 'allow', 'mcpAuthorization', context, warnOfLists);
    return {
      request(x) {
        x.itemAccess = new ItemRules(x, decide);
        return undefined;
      },
    };
  },
});

/** The rules for one request. A class: a function stored on the request would keep it alive longer than needed. */
class ItemRules implements ItemAccess {
  readonly #x: Exchange;
  readonly #decide: RuleSet;

  constructor(x: Exchange, decide: RuleSet) {
    this.#x = x;
    this.#decide = decide;
  }

  allows(kind: string, target: string, name: string, args?: unknown): boolean {
    const x = this.#x;
    const member = kind === 'template' ? 'resource' : kind;
    const item = args === undefined ? { name, target } : { name, target, arguments: args };
    const decision = this.#decide(
      lookupIn(x, { mcp: { methodName: x.mcp?.method ?? null, [member]: item } }),
    );
    x.trace?.authorization('mcpAuthorization', decision, { kind, target, name });
    return decision.allowed;
  }
}

/** Rules decide lists too, where nothing is called: one that needs arguments hides the tools that it is about. */
function warnOfLists(rule: PlacedExpression, context: CompileContext): void {
  if (!readsUnguarded(rule, 'mcp.tool.arguments')) return;
  context.report({
    code: 'AGW0309',
    severity: 'warning',
    message: 'this rule also decides lists, where `mcp.tool.arguments` is not set',
    label: 'fails there, so that the tools it is about are left out of lists',
    help: 'begin with `!has(mcp.tool.arguments) || `, or in a `deny` rule with `has(mcp.tool.arguments) && `',
  });
}
