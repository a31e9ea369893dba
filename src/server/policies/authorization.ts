import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { resolverFor } from '../expressions/resolver.ts';
import { compileRules, ruleSchema, rulesByEffect, warnOfMixedRules } from '../expressions/rules.ts';
import { requestScope } from '../expressions/scopes.ts';
import { jwtClaims, scopeChallenge } from '../kernel/caller.ts';
import { definePolicy } from '../kernel/policy.ts';

const schema = z
  .strictObject({
    rules: z
      .array(ruleSchema)
      .min(1)
      .describe(
        'CEL expressions; every one must be true. Also `allow:`, `deny:` and `require:` forms: any true `deny` refuses, every `require` must hold, and of several `allow` rules one suffices.',
      ),
  })
  .describe('Lets a request pass when its rules hold; otherwise 403.');

/** Rules on the request and on who sent it. */
export const authorization = definePolicy({
  key: 'authorization',
  schema,
  dump: ({ rules }) => ({ authorization: { rules: rulesByEffect(rules, 'require') } }),
  compile({ rules }, context) {
    // The specification: "each authorization.rules entry is evaluated. A failing rule gives 403."
    warnOfMixedRules(rules, context);
    const decide = compileRules(rules, 'require', requestScope, context);
    return {
      request(ctx) {
        const decision = decide(resolverFor(ctx));
        const { allowed, reason, rule } = decision;
        ctx.observer?.authorization('authorization', decision);
        if (allowed) return undefined;
        // A token without the scope that a rule asks for can be replaced by one with it (RFC 6750 §3.1).
        const isAboutScope = rule?.reads('jwt.scope') === true || rule?.reads('jwt.scp') === true;
        const challenge =
          isAboutScope && jwtClaims.get(ctx) !== undefined
            ? scopeChallenge.get(ctx)?.(rule.source)
            : undefined;
        throw new AppError('authorization_failed', {
          detail: reason,
          headers: challenge === undefined ? [] : ['www-authenticate', challenge],
        });
      },
    };
  },
});
