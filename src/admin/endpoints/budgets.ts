import { type BudgetLimit, budgetText } from '../../core/budget.ts';
import { LIMITS } from '../../core/limits.ts';
import { shownSubjects } from '../../server/budgets/usage.ts';
import { routesOf } from '../../server/config/plan/plan.ts';
import type { Runtime } from '../../server/runtime/runtime.ts';
import { defineEndpoint, sendJson } from '../endpoint.ts';
import { withSpending } from './keys.ts';

/**
 * The budgets of the configuration, and what was used in their current windows: `{budgets: [{name, limit, key?}],
 * subjects: [ShownSubject]}` (`server/budgets/usage.ts`).
 */
export const budgets = defineEndpoint({
  path: '/api/budgets',
  methods: ['GET'],
  handle: (_request, reply, admin) =>
    withSpending(admin, reply, async (spending) => {
      const { runtime } = admin.served();
      const configured = budgetsOf(runtime);
      const subjects = await shownSubjects(spending, configured, LIMITS.shownSubjects);
      return sendJson(reply, {
        budgets: configured.map(({ limit, ...budget }) => ({ ...budget, limit: budgetText(limit) })),
        subjects,
      });
    }),
});

interface ConfiguredBudget {
  readonly name: string;
  readonly limit: BudgetLimit;
  readonly key?: string;
}

/** Of all places; the same budget at several of them is one. */
function budgetsOf({ gateways }: Runtime): ConfiguredBudget[] {
  const policies = gateways.flatMap(({ plan }) => [
    ...plan.listeners.flatMap((listener) => listener.policies),
    ...routesOf(plan).flatMap((route) => route.policies),
  ]);
  const all = policies.flatMap(({ key, config }) =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema has checked it
    key === 'budgets' ? (config as readonly ConfiguredBudget[]) : [],
  );
  const known = new Map(
    all.map(({ name, limit, key }) => [
      JSON.stringify([name, limit, key]),
      { name, limit, ...(key !== undefined && { key }) },
    ]),
  );
  return [...known.values()];
}
