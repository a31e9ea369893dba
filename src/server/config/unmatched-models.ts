import type { z } from 'zod';
import type { ai } from '../llm/ai-policy.ts';
import type { llm } from '../llm/backend.ts';
import { overlaps } from '../llm/model-patterns.ts';
import type { apiKey } from '../policies/api-key.ts';
import type { GatewayPlan, LocatedProblem, RoutePlan } from './plan.ts';

/** The parts of a route that name models. */
interface ModelRoute {
  readonly policies?: {
    readonly apiKey?: z.output<typeof apiKey.schema>;
    readonly ai?: z.output<typeof ai.schema>;
  };
  readonly backends: readonly { readonly llm?: z.output<typeof llm.schema> }[];
}

/** Warnings about names in `allowedModels` and `modelAliases` of a route that match none of its models. */
export function unmatchedModelProblems(gateways: readonly GatewayPlan[]): LocatedProblem[] {
  return gateways.flatMap(({ routes }) => routes.flatMap((route) => problemsOf(route)));
}

function problemsOf({ config, path }: RoutePlan): LocatedProblem[] {
  const { policies, backends } = config as ModelRoute;
  const [backend] = backends;
  // Backends of other kinds have no names of models, or accept every name.
  if (backend?.llm === undefined) return [];
  const { models, virtualModels } = backend.llm;
  const served = [
    ...models.flatMap(({ name, visibility }) => (visibility === 'public' ? [name] : [])),
    ...virtualModels.map(({ name }) => name),
  ];
  const aliases = Object.entries(policies?.ai?.modelAliases ?? {});
  const known = [...served, ...aliases.map(([name]) => name)];
  const isUnmatched = (name: string, names: readonly string[]): boolean =>
    !names.some((each) => overlaps(each, name));
  const problem = (at: LocatedProblem['path'], name: string): LocatedProblem => ({
    code: 'AGW0303',
    severity: 'warning',
    path: [...path, 'policies', ...at],
    message: `\`${name}\` matches no model of this route`,
    help: `models that clients may request: ${[...new Set(served)].join(', ') || 'none'}`,
  });
  return [
    ...(policies?.apiKey?.keys ?? []).flatMap(({ allowedModels = [] }, key) =>
      allowedModels.flatMap((name, index) =>
        isUnmatched(name, known) ? [problem(['apiKey', 'keys', key, 'allowedModels', index], name)] : [],
      ),
    ),
    ...aliases.flatMap(([alias, name]) =>
      isUnmatched(name, served) ? [problem(['ai', 'modelAliases', alias], name)] : [],
    ),
  ];
}
