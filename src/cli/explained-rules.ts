import { CelEvaluationError, compileExpression, toCel } from '../server/expressions/cel/expression.ts';
import { OUTCOME, possibleOutcomes } from '../server/expressions/cel/possible-outcomes.ts';
import { type Effect, type JudgedRule, possibleDecision, type Rule } from '../server/expressions/rules.ts';
import { Unknown } from '../server/expressions/unknown.ts';
import type { Expression, ExpressionScope, VariableResolver } from '../server/kernel/expression.ts';

/** A rule and its result for a token. */
export interface ExplainedRule {
  readonly effect: Effect;
  readonly rule: string;
  /** `true`, `false`, another value, `fails: …`, or `depends on the request`. */
  readonly result: string;
}

/** The effect of rules on a token when the request is not known. */
interface ExplainedRules {
  readonly rules: readonly ExplainedRule[];
  /** The rule that refuses everything, or a description; undefined if a request may be allowed. */
  readonly refusal: string | undefined;
}

/** A compiled rule of the plan. */
interface PlannedRule extends JudgedRule {
  readonly expression: Expression & { readonly variables: readonly string[] };
}

/** Judges a token by the rules of a policy as the list of callers of a tool does: what only a request has is not known. */
export function explainRules(
  rules: readonly Rule[],
  { roots: variables }: ExpressionScope,
  jwt: unknown,
): ExplainedRules {
  const planned = rules.map(({ effect, expression: { source } }): PlannedRule => {
    return { effect, expression: Object.assign(compileExpression(source, variables), { variables }) };
  });
  const unknown = new Unknown();
  const claims = toCel(jwt);
  const lookup: VariableResolver = (root) => (root === 'jwt' ? claims : unknown.ask(root));
  const wasAsked = (): boolean => unknown.wasAsked();
  const { mayAllow, rule } = possibleDecision({ rules: planned }, lookup, wasAsked);
  return {
    rules: planned.map(({ effect, expression }) => {
      const outcomes = possibleOutcomes(expression, lookup, wasAsked);
      return { effect, rule: expression.source, result: resultOf(outcomes, expression, lookup) };
    }),
    refusal: mayAllow ? undefined : refusalOf(rule),
  };
}

function refusalOf(rule: PlannedRule | undefined): string {
  if (rule === undefined) return 'no allow rule is true';
  const { source } = rule.expression;
  return rule.effect === 'deny'
    ? `a deny rule rejects the request: ${source}`
    : `a require rule is not true: ${source}`;
}

function resultOf(outcomes: number, expression: Expression, lookup: VariableResolver): string {
  if (outcomes === OUTCOME.true) return 'true';
  if (outcomes === OUTCOME.false) return 'false';
  if (outcomes !== OUTCOME.fails) return 'depends on the request';
  try {
    return JSON.stringify(expression.evaluate(lookup));
  } catch (error) {
    if (!(error instanceof CelEvaluationError)) throw error;
    return `fails: ${error.message}`;
  }
}
