import { AppError } from '../../core/errors.ts';
import { mapping } from '../../core/schema/mapping.ts';
import { readsOfBody, rejectVariants } from '../expressions/read-members.ts';
import {
  combineRules,
  compileRules,
  hasRules,
  type RulePolicy,
  type RuleSet,
  reportPlainRules,
  ruleList,
  rulesByEffect,
} from '../expressions/rules.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import { definePolicy } from '../kernel/policy.ts';
import { jwtClaims, scopeChallenge } from '../kernel/request/shared-slots.ts';

const schema = mapping('Rejects requests with 403 unless the rules allow them.', {
  rules: ruleList(
    'CEL expressions, all of which must be true. With the forms `allow:`, `deny:` and `require:`, a request is rejected if any `deny` rule is true; it needs all `require` rules and, if there are any, one of the `allow` rules.',
  ),
});

/** Authorization rules on the request and its caller. */
export const authorization = definePolicy({
  key: 'authorization',
  places: ['gateway', 'route', 'backend'],
  restrictsClients: true,
  requestExpressions: ['rules'],
  schema,
  dump: ({ rules }) => ({ authorization: { rules: rulesByEffect(rules, 'require') } }),
  compile({ rules }, context) {
    // The specification: "each authorization.rules entry is evaluated. A failing rule gives 403."
    reportPlainRules(rules, context);
    return policyOf(compileRules(rules, 'require', requestScope, context));
  },
  combine: (policies) => policyOf(combineRules(policies.filter(hasRules).map(({ rules }) => rules))),
});

function policyOf(rules: RuleSet): RulePolicy {
  const reads = readsOfBody(rules.rules);
  return {
    rules,
    request(ctx) {
      const decision = rules(resolverFor(ctx));
      const { allowed, reason, rule } = decision;
      ctx.observer?.authorization('authorization', decision);
      if (allowed) {
        rejectVariants(reads, ctx);
        return undefined;
      }
      // A client can replace a token without the required scope by one with it (RFC 6750 §3.1).
      const isAboutScope = rule?.reads('jwt.scope') === true || rule?.reads('jwt.scp') === true;
      const challenge =
        isAboutScope && jwtClaims.get(ctx) !== undefined ? scopeChallenge.get(ctx)?.(rule.source) : undefined;
      throw new AppError('authorization_failed', {
        detail: reason,
        headers: challenge === undefined ? [] : ['www-authenticate', challenge],
      });
    },
  };
}
