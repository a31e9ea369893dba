import { z } from 'zod';
import { definePolicy } from '../policy.ts';
import { lookupIn } from '../variables.ts';
import { compileRules, ruleSchema } from './rules.ts';

const schema = z
  .strictObject({
    rules: z
      .array(ruleSchema)
      .min(1)
      .describe(
        'CEL expressions over `mcp.tool`, `mcp.prompt`, `mcp.resource` (each with `name` and `target`), `jwt`, `request` and more. An expression alone is an `allow` rule: one that is true suffices.',
      ),
  })
  .describe(
    'Which tools, prompts and resources a caller may see and use. Others are left out of lists and unknown when called.',
  );

/** Access to single items of MCP targets. The MCP backend asks for each item it lists or is called on. */
export const mcpAuthorization = definePolicy({
  key: 'mcpAuthorization',
  schema,
  compile({ rules }, context) {
    const decide = compileRules(rules, 'allow', 'mcpAuthorization', context);
    return {
      request(x) {
        x.itemAccess = (kind, target, name) => {
          const member = kind === 'template' ? 'resource' : kind;
          const { allowed, reason } = decide(
            lookupIn(x, { mcp: { methodName: x.mcp?.method ?? null, [member]: { name, target } } }),
          );
          x.trace?.({
            type: 'policy',
            kind: 'mcpAuthorization',
            action: allowed ? 'apply' : 'deny',
            reason,
            snapshot: { kind, target, name },
          });
          return allowed;
        };
        return undefined;
      },
    };
  },
});
