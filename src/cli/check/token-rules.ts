import { CelEvaluationError, compileExpression } from '../../server/expressions/cel/expression.ts';
import { toCel } from '../../server/expressions/cel/values.ts';
import type { RuleConfig } from '../../server/expressions/rules.ts';
import type { ExpressionScope } from '../../server/kernel/expression.ts';

type Effect = 'allow' | 'deny' | 'require';

/** A rule and its result for a token. */
export interface ExplainedRule {
  readonly effect: Effect;
  readonly rule: string;
  /** `true`, `false`, another value, `fails: …`, or `UNKNOWN`. */
  readonly result: string;
}

/** The effect of rules on a token when the request is not known. */
export interface ExplainedRules {
  readonly rules: readonly ExplainedRule[];
  /** The rule that refuses everything, or a description; undefined if a request may be allowed. */
  readonly refusal: string | undefined;
}

/** Result of a rule that also reads the request, or the item that is used. */
export const UNKNOWN = 'depends on the request';

/**
 * Evaluates the rules that read nothing but the token, with the semantics of the policies. `plain` is the mode of a
 * rule without a keyword in that policy.
 */
export function explainRules(
  rules: readonly RuleConfig[],
  plain: Effect,
  scope: ExpressionScope,
  jwt: unknown,
): ExplainedRules {
  const explained = rules.map((rule): ExplainedRule => {
    const [effect, source] = (typeof rule === 'string' ? [plain, rule] : Object.entries(rule)[0]) as [
      Effect,
      string,
    ];
    return { effect, rule: source, result: evaluate(source, scope, jwt) };
  });
  return { rules: explained, refusal: refusalOf(explained) };
}

function refusalOf(rules: readonly ExplainedRule[]): string | undefined {
  const of = (effect: Effect): ExplainedRule[] => rules.filter((rule) => rule.effect === effect);
  const known = (rule: ExplainedRule): boolean => rule.result !== UNKNOWN;
  // A deny rule that fails denies; a result that is not a boolean is a failure too.
  const denying = of('deny').find((rule) => known(rule) && rule.result !== 'false');
  if (denying !== undefined) return `a deny rule refuses: ${denying.rule}`;
  const missing = of('require').find((rule) => known(rule) && rule.result !== 'true');
  if (missing !== undefined) return `a require rule is not true: ${missing.rule}`;
  const allows = of('allow');
  const none = allows.length > 0 && allows.every((rule) => known(rule) && rule.result !== 'true');
  return none ? 'no allow rule is true' : undefined;
}

function evaluate(source: string, scope: ExpressionScope, jwt: unknown): string {
  const expression = compileExpression(source, scope.roots);
  if ([...expression.roots].some((root) => root !== 'jwt')) return UNKNOWN;
  try {
    return JSON.stringify(expression.evaluate(() => toCel(jwt)));
  } catch (error) {
    if (!(error instanceof CelEvaluationError)) throw error;
    return `fails: ${error.message}`;
  }
}
