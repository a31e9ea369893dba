import { z } from 'zod';
import type { Exchange, ItemAccess } from '../http/exchange.ts';
import { definePolicy } from '../policy.ts';
import { lookupIn } from '../variables.ts';
import { compileRules, type RuleSet, ruleSchema } from './rules.ts';

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
    const decide = compileRules(rules, 'allow', 'mcpAuthorization', context);
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

  allows(kind: string, target: string, name: string): boolean {
    const x = this.#x;
    const member = kind === 'template' ? 'resource' : kind;
    const decision = this.#decide(
      lookupIn(x, { mcp: { methodName: x.mcp?.method ?? null, [member]: { name, target } } }),
    );
    x.trace?.authorization('mcpAuthorization', decision, { kind, target, name });
    return decision.allowed;
  }
}
