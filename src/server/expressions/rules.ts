import { z } from 'zod';
import type { AuthorizationRule } from '../../core/trace/event.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { ExpressionScope, TracedExpression, VariableResolver } from '../kernel/expression.ts';
import type { Decision } from '../kernel/observer.ts';
import type { CompiledPolicy } from '../kernel/policy.ts';
import { CelEvaluationError } from './cel/errors.ts';
import { neededHeader } from './cel/expression.ts';
import { OUTCOME, possibleOutcomes } from './cel/possible-outcomes.ts';

const expression = z.string().min(1);

/** A rule: an expression, or an object with an expression in `allow`, `deny` or `require`. */
const ruleSchema = z.union([
  expression,
  z.strictObject({
    allow: expression.describe('Allows the request if true, unless a `deny` or `require` rule rejects it.'),
  }),
  z.strictObject({
    deny: expression.describe('Rejects the request if true, or if it cannot be evaluated.'),
  }),
  z.strictObject({ require: expression.describe('Rejects the request unless true.') }),
]);

/** A list of rules, with its documentation. */
export const ruleList = (doc: string): z.ZodArray<typeof ruleSchema> =>
  z.array(ruleSchema).min(1).describe(doc);

export type RuleConfig = z.output<typeof ruleSchema>;
export type Effect = 'allow' | 'deny' | 'require';

/** The effect of a rule, and its expression. `plain`: the effect without a keyword. */
export function effectOf(rule: RuleConfig, plain: Effect): readonly [Effect, string] {
  if (typeof rule === 'string') return [plain, rule];
  if ('allow' in rule) return ['allow', rule.allow];
  return 'deny' in rule ? ['deny', rule.deny] : ['require', rule.require];
}

export interface Rule {
  readonly effect: Effect;
  readonly expression: TracedExpression;
}

export interface RuleSet {
  (lookup: VariableResolver): Decision;
  readonly rules: readonly Rule[];
}

/** A compiled policy that decides by rules. */
export interface RulePolicy extends CompiledPolicy {
  readonly rules: RuleSet;
}

export const hasRules = <P extends CompiledPolicy>(policy: P): policy is P & RulePolicy => 'rules' in policy;

/**
 * Compiles rules. A request is allowed if no `deny` rule is true or fails, every `require` rule is true, and, if there are
 * `allow` rules, at least one of them is true.
 *
 * @param plain Effect of a rule without a keyword.
 * @param check Called with each compiled rule, for further warnings.
 */
export function compileRules(
  rules: readonly RuleConfig[],
  plain: Effect,
  scope: ExpressionScope,
  context: CompileContext,
  check?: (rule: TracedExpression, context: CompileContext) => void,
): RuleSet {
  const compiled = rules.map((rule, index): Rule => {
    const at = context.at('rules', index);
    const [effect, source] = effectOf(rule, plain);
    const inside = typeof rule === 'string' ? at : at.at(effect);
    const expression = inside.condition(source, scope);
    if (effect === 'deny') warnOfMissingHeader(expression, inside);
    check?.(expression, inside);
    return { effect, expression };
  });
  return ruleSet(compiled);
}

/** The rules of several sets as one: a `deny` rule of any set denies, an `allow` rule of any set is enough. */
export function combineRules(sets: readonly RuleSet[]): RuleSet {
  return ruleSet(sets.flatMap(({ rules }) => rules));
}

function ruleSet(compiled: readonly Rule[]): RuleSet {
  const of = (effect: Effect): Rule[] => compiled.filter((rule) => rule.effect === effect);
  const denies = of('deny');
  const requires = of('require');
  const allows = of('allow');
  const decide = (lookup: VariableResolver): Decision => {
    for (const { expression: rule } of denies) {
      const outcome = evaluate(rule, lookup);
      // A deny rule that fails also denies, which is the safe outcome.
      if (outcome.value || outcome.error !== undefined)
        return refused('deny', rule, outcome.error ?? 'is true');
    }
    for (const { expression: rule } of requires) {
      const outcome = evaluate(rule, lookup);
      if (!outcome.value) return refused('require', rule, outcome.error ?? 'is not true');
    }
    if (allows.length === 0) return { allowed: true, reason: 'every rule holds' };
    const allowing = allows.find(({ expression: rule }) => evaluate(rule, lookup).value);
    return allowing === undefined
      ? { allowed: false, reason: 'no allow rule is true' }
      : {
          allowed: true,
          reason: `allow rule is true: ${allowing.expression.source}`,
          rule: allowing.expression,
        };
  };
  const decideAndShow = (lookup: VariableResolver): Decision => {
    const decision = decide(lookup);
    const { observed } = lookup;
    if (observed === undefined || observed.observer.isBrief) return decision;
    return { ...decision, rules: compiled.map((rule) => shown(rule, observed.peek, decision)) };
  };
  return Object.assign(decideAndShow, { rules: compiled });
}

/** What `possibleDecision` needs of a rule. */
export interface JudgedRule {
  readonly effect: Effect;
  readonly expression: Parameters<typeof possibleOutcomes>[0];
}

/** What rules may decide if a part of what they read is not known. */
export interface PossibleDecision<R extends JudgedRule = Rule> {
  readonly mayAllow: boolean;
  readonly mayRefuse: boolean;
  /** The rule that decides, or on whose outcome it depends; undefined if no rule has to be named. */
  readonly rule: R | undefined;
}

/**
 * Like a decision of the rules, about something of which a part is not known yet: reading it is an error. `wasAsked`: whether rules have
 * asked for that part since the last call.
 */
export function possibleDecision<R extends JudgedRule>(
  { rules }: { readonly rules: readonly R[] },
  lookup: VariableResolver,
  wasAsked: () => boolean,
): PossibleDecision<R> {
  /** A rule whose outcome is open. */
  let open: R | undefined;
  let allowing: R | undefined;
  let isAllowed = !rules.some(({ effect }) => effect === 'allow');
  for (const rule of rules) {
    if (rule.effect === 'allow') continue;
    const passes = rule.effect === 'deny' ? OUTCOME.false : OUTCOME.true;
    const outcomes = possibleOutcomes(rule.expression, lookup, wasAsked);
    if ((outcomes & passes) === 0) return { mayAllow: false, mayRefuse: true, rule };
    if (outcomes !== passes) open ??= rule;
  }
  for (const rule of rules) {
    if (isAllowed) break;
    if (rule.effect !== 'allow') continue;
    const outcomes = possibleOutcomes(rule.expression, lookup, wasAsked);
    if ((outcomes & OUTCOME.true) === 0) continue;
    if (outcomes === OUTCOME.true) isAllowed = true;
    if (isAllowed || allowing === undefined) allowing = rule;
  }
  if (!isAllowed && allowing === undefined) return { mayAllow: false, mayRefuse: true, rule: undefined };
  if (!isAllowed) open ??= allowing;
  return { mayAllow: true, mayRefuse: open !== undefined, rule: open ?? allowing };
}

/**
 * Reports plain rules where all of them must be true: in upstream's configurations and in `mcpAuthorization`, a plain rule is
 * an `allow` rule, and one true rule is enough. A warning if there are rules of other forms, a note for several plain ones.
 */
export function reportPlainRules(rules: readonly RuleConfig[], context: CompileContext): void {
  const isPlain = (rule: RuleConfig): boolean => typeof rule === 'string';
  const others = rules.flatMap((rule) =>
    typeof rule === 'string' || 'require' in rule ? [] : Object.keys(rule),
  );
  const plain = rules.findIndex(isPlain);
  if (plain === -1) return;
  if (others.length === 0) {
    if (rules.filter(isPlain).length > 1)
      context.at('rules').report({
        code: 'AGW0308',
        severity: 'note',
        message: `all of these ${rules.length} rules must be true`,
        label:
          'a rule without a keyword counts as `require` in `authorization`, and as `allow` in agentgateway and in `mcpAuthorization`',
        help: 'write `require:` before each of them to say so, or `allow:` if one true rule suffices',
      });
    return;
  }
  const kinds = [...new Set(others)].map((kind) => `\`${kind}\``).join(' and ');
  context.at('rules', plain).report({
    code: 'AGW0308',
    message: `rules without a keyword are mixed with ${kinds} rules, and count as \`require\``,
    label: 'must be true for every request, regardless of other rules',
    help: 'if this is intended, write `require:` before each of them; write `allow:` if one true rule of several suffices',
  });
}

/** A deny rule that reads a missing header fails and therefore denies, which is rarely intended. */
function warnOfMissingHeader(rule: TracedExpression, context: CompileContext): void {
  // An invalid expression reads nothing.
  const header = rule.roots.has('request') ? neededHeader(rule) : undefined;
  if (header === undefined) return;
  const { name, start, end } = header;
  const key = JSON.stringify(name);
  context.report({
    code: 'AGW0307',
    message: `this \`deny\` rule also rejects requests without the header \`${name}\``,
    inside: { start, end },
    label: 'fails without the header, and a `deny` rule that fails rejects the request',
    help: `to let requests without it pass, write \`default(request.headers[${key}], "")\`; to reject them explicitly, begin with \`!(${key} in request.headers) || \``,
  });
}

function shown(
  { effect, expression: rule }: Rule,
  lookup: VariableResolver,
  decision: Decision,
): AuthorizationRule {
  const { value, error } = evaluate(rule, lookup);
  return {
    name: rule.source,
    matched: value,
    mode: effect,
    ...(error === undefined ? {} : { problem: error }),
    ...(rule === decision.rule ? { decided: true } : {}),
    ...rule.place,
  };
}

function refused(effect: Effect, rule: TracedExpression, why: string): Decision {
  return { allowed: false, reason: `${effect} rule ${why}: ${rule.source}`, rule };
}

/** Evaluates a rule. Only the boolean true counts as true. */
function evaluate(rule: TracedExpression, lookup: VariableResolver): { value: boolean; error?: string } {
  try {
    const value = rule.evaluate(lookup);
    return typeof value === 'boolean' ? { value } : { value: false, error: 'is not a boolean' };
  } catch (error) {
    if (error instanceof CelEvaluationError) return { value: false, error: `failed (${error.message})` };
    throw error;
  }
}

/** Rules by effect, for configuration dumps. `plain` is the effect of a rule without a keyword. */
export function rulesByEffect(
  rules: readonly RuleConfig[],
  plain: 'allow' | 'require',
): Record<string, string[]> {
  const byEffect: Record<string, string[]> = {};
  for (const rule of rules) {
    const [[effect, source] = [plain, '']] =
      typeof rule === 'string' ? [[plain, rule]] : Object.entries(rule);
    byEffect[effect] = [...(byEffect[effect] ?? []), source];
  }
  return byEffect;
}
