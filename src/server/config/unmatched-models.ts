import type { z } from 'zod';
import type { ai } from '../llm/ai-policy.ts';
import { overlaps } from '../llm/models/model-patterns.ts';
import type { apiKey } from '../policies/api-key.ts';
import { knownBackends } from './plan/backend-kinds.ts';
import { type GatewayPlan, type LocatedProblem, policyOf, type RoutePlan, routesOf } from './plan/plan.ts';

/** Warnings about names in `allowedModels` and `modelAliases` of a route that match none of its models. */
export function unmatchedModelProblems(gateways: readonly GatewayPlan[]): LocatedProblem[] {
  return gateways.flatMap((gateway) => routesOf(gateway).flatMap((route) => problemsOf(route)));
}

function problemsOf({ policies, backends }: RoutePlan): LocatedProblem[] {
  const [backend] = knownBackends(backends);
  const served = backend?.kind.modelNames?.(backend.settings);
  if (served === undefined) return [];
  const keys = policyOf(policies, 'apiKey');
  const aiPolicy = policyOf(policies, 'ai');
  const aliases = Object.entries(
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema has checked it
    (aiPolicy?.config as z.output<typeof ai.schema> | undefined)?.modelAliases ?? {},
  );
  const known = [...served, ...aliases.map(([name]) => name)];
  const isUnmatched = (name: string, names: readonly string[]): boolean =>
    !names.some((each) => overlaps(each, name));
  const problem = (at: LocatedProblem['path'], name: string): LocatedProblem => ({
    code: 'AGW0303',
    path: at,
    message: `\`${name}\` matches no model of this route`,
    help: `models that clients may request: ${[...new Set(served)].join(', ') || 'none'}`,
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema has checked it
  const allowed = (keys?.config as z.output<typeof apiKey.schema> | undefined)?.keys ?? [];
  return [
    ...allowed.flatMap(({ allowedModels = [] }, key) =>
      allowedModels.flatMap((name, index) =>
        keys !== undefined && isUnmatched(name, known)
          ? [problem([...keys.path, 'keys', key, 'allowedModels', index], name)]
          : [],
      ),
    ),
    ...aliases.flatMap(([alias, name]) =>
      aiPolicy !== undefined && isUnmatched(name, served)
        ? [problem([...aiPolicy.path, 'modelAliases', alias], name)]
        : [],
    ),
  ];
}
