import type { BudgetLimit } from '../../core/budget.ts';
import { knownBackends } from '../config/plan/backend-kinds.ts';
import {
  type BackendPlan,
  type GatewayPlan,
  type LocatedProblem,
  type RoutePlan,
  routesOf,
} from '../config/plan/plan.ts';
import type { PriceCatalog } from '../llm/cost/catalog.ts';
import { overlaps } from '../llm/models/model-patterns.ts';

/**
 * Models without a price, as `NAME (PROVIDER)`, which budgets in USD refuse. `allowed`: patterns of names; all if undefined. Only those
 * are known whose name at the provider is configured.
 */
export function unpricedModels(
  gateways: readonly { readonly plan: GatewayPlan }[],
  catalog: PriceCatalog,
  allowed?: readonly string[],
): string[] {
  const backends = gateways.flatMap(({ plan }) => routesOf(plan)).flatMap((route) => route.backends);
  return unpricedIn(backends, catalog, allowed);
}

/** A warning for each list of budgets in USD at a listener or route with models that have no price. */
export function unpricedProblems(gateways: readonly GatewayPlan[], catalog: PriceCatalog): LocatedProblem[] {
  const places = gateways.flatMap((plan) => [
    ...plan.listeners.map(({ policies }) => ({ policies, backends: routesOf(plan).flatMap(backendsOf) })),
    ...routesOf(plan),
  ]);
  return places.flatMap(({ policies, backends }) =>
    policies
      .filter(({ key, config }) => key === 'budgets' && hasClosedLimit(config))
      .flatMap(({ path }) => problemOf(path, unpricedIn(backends, catalog))),
  );
}

const backendsOf = ({ backends }: RoutePlan): readonly BackendPlan[] => backends;

function problemOf(path: LocatedProblem['path'], models: readonly string[]): LocatedProblem[] {
  if (models.length === 0) return [];
  const more = models.length > SHOWN ? ` and ${models.length - SHOWN} others` : '';
  return [
    {
      code: 'AGW0316',
      path,
      atKey: true,
      message: `no price is known for ${models.slice(0, SHOWN).join(', ')}${more}: the budget refuses their calls`,
      help: 'add prices to `config.modelCatalog`, or set `failureMode: failOpen`',
    },
  ];
}

const SHOWN = 3;

function hasClosedLimit(config: unknown): boolean {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema has checked it
  const entries = config as readonly { readonly limit: BudgetLimit; readonly failureMode: string }[];
  return entries.some(({ limit, failureMode }) => limit.unit === 'usd' && failureMode === 'failClosed');
}

function unpricedIn(
  backends: readonly BackendPlan[],
  catalog: PriceCatalog,
  allowed?: readonly string[],
): string[] {
  const models = knownBackends(backends).flatMap(
    ({ kind, settings }) => kind.providerModels?.(settings) ?? [],
  );
  const found = models
    .filter(({ name }) => allowed === undefined || allowed.some((pattern) => overlaps(pattern, name)))
    .filter(({ provider, model, name }) => !catalog.hasPrice(provider, [model, name]))
    .map(({ provider, model }) => `${model} (${provider})`);
  return [...new Set(found)];
}
