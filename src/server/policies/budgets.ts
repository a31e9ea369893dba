import { hash } from 'node:crypto';
import { z } from 'zod';
import { BUDGET_FORMS, type BudgetLimit, budgetText, parseBudget } from '../../core/budget.ts';
import { choice, nonEmpty } from '../../core/schema/mapping.ts';
import { CallBudget, callBudget, type NamedClaim } from '../budgets/call-budget.ts';
import { missingDatabase } from '../budgets/missing-database.ts';
import { claimOf, spendingOf } from '../budgets/spending.ts';
import { CelEvaluationError } from '../expressions/cel/errors.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { VariableResolver } from '../kernel/expression.ts';
import { definePolicy, type PolicyRoute } from '../kernel/policy.ts';

const limitSchema = z
  .string()
  .transform((text, context): BudgetLimit => {
    const parsed = parseBudget(text);
    if (parsed !== undefined) return parsed;
    context.addIssue({ code: 'custom', message: BUDGET_FORMS });
    return z.NEVER;
  })
  .describe(
    'Amount per window: USD, by the prices of `config.modelCatalog`, or tokens; per `hour`, `day`, `week` (from Monday), `month` (in UTC) or `total`.',
  )
  .meta({ examples: ['10USD/day', '500000tokens/month'] });

const budgetSchema = z.lazy(() =>
  z.strictObject({
    name: z
      .string()
      .regex(/^[\w.-]{1,64}$/, { error: 'expected 1 to 64 letters, digits, `.`, `_` or `-`' })
      .describe(
        'Name in messages, metrics and the database. Budgets with the same name, unit and window count together, on whichever routes they are.',
      ),
    limit: limitSchema,
    key: nonEmpty
      .optional()
      .describe(
        'CEL expression such as `apiKey.team` or `jwt.sub`: each value has the whole amount for itself. By default, all calls share it. Calls for which the expression fails share one amount too; the first of them is logged.',
      ),
    failureMode: choice(
      'What happens to calls that cannot be counted, because the database fails or the price of the model is unknown: `failClosed` refuses them (503, or 403 without a price), `failOpen` lets them through.',
      ['failClosed', 'failOpen'],
      'failClosed',
    ),
  }),
);

const schema = z
  .array(budgetSchema)
  .min(1)
  .describe(
    'Budgets of LLM calls, kept in `config.database`. A call reserves the tokens of its prompt and the most that it asks for as output (1000 tokens if it sets no maximum), and is charged what it has used. If a budget has less left, it is rejected with 429.',
  );

/** Budgets of LLM calls, in tokens or money. */
export const budgets = definePolicy({
  key: 'budgets',
  places: ['gateway', 'route'],
  requestExpressions: ['[].key'],
  schema,
  dump: (entries) => ({
    budgets: entries.map(({ limit, ...entry }) => ({ ...entry, limit: budgetText(limit) })),
  }),
  checkRoute: warnAboutUncounted,
  // A budget of a gateway is not replaced by that of a route.
  combine: (policies) => ({
    request(ctx) {
      for (const policy of policies) void policy.request?.(ctx);
      return undefined;
    },
  }),
  compile(entries, context) {
    const spending = spendingOf.get(context.settings);
    if (spending === undefined) {
      context.report(missingDatabase(context.settings, '`budgets`', 'what was spent'));
      return {};
    }
    const compiled = entries.map(({ name, limit, key, failureMode }, index) => {
      const named = { budget: name, isOpen: failureMode === 'failOpen' };
      const subject = key === undefined ? undefined : subjectOf(key, context.at(index, 'key'));
      const shared: NamedClaim = { ...named, ...claimOf(name, limit, '') };
      return (lookup: VariableResolver): NamedClaim =>
        subject === undefined ? shared : { ...named, ...claimOf(name, limit, subject(lookup)) };
    });
    const count = context.settings.counter('budgetCalls');
    return {
      request(ctx) {
        const lookup = resolverFor(ctx);
        callBudget
          .ensure(ctx, () => new CallBudget(spending, (budget, outcome) => count([budget, outcome])))
          .add(compiled.map((claim) => claim(lookup)));
        return undefined;
      },
    };
  },
});

/** The amount that calls share for which an expression fails: failing does not bypass the budget. */
const FAILED = '';

/** The subject of a call, by an expression. Its first failure is logged: clients then share one amount, unseen. */
function subjectOf(source: string, context: CompileContext): (lookup: VariableResolver) => string {
  const expression = context.cel(source, requestScope);
  let hasWarned = false;
  return (lookup) => {
    let text: string;
    try {
      const value = expression.evaluate(lookup);
      text = typeof value === 'string' ? value : JSON.stringify(value);
    } catch (error) {
      if (!(error instanceof CelEvaluationError)) throw error;
      if (!hasWarned)
        context.log.warn('proxy::budgets', 'the key of a budget fails: such calls share one amount', {
          at: context.path.join('.'),
          key: source,
          problem: error.message,
        });
      hasWarned = true;
      return FAILED;
    }
    // Long subjects are hashed, so that counters stay small.
    return text.length <= 128 ? text : hash('sha256', text, 'base64url');
  };
}

function warnAboutUncounted(
  _entries: unknown,
  { name, backends }: PolicyRoute,
  context: CompileContext,
): void {
  if (backends.some(({ countsTokens }) => countsTokens)) return;
  context.report({
    code: 'AGW0303',
    atKey: true,
    message: `\`budgets\` has no effect: route \`${name}\` has no \`llm\` or \`ai\` backend`,
    label: 'only calls of models are counted',
    help: 'configure the provider as an `llm` or `ai` backend',
  });
}
