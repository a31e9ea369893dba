import type { Path } from '../../../core/diagnostic.ts';
import type { Config, RouteConfig } from '../schema.ts';
import { findBackend, type NamedBackends } from './named-backends.ts';
import type { BackendPlan, GroupPlan, ListenerPlan, LocatedProblem, RoutePlan } from './plan.ts';
import { planPolicies } from './policies.ts';
import { serviceProblems } from './services.ts';

/** What routes refer to by name, and where their problems are collected. */
export interface RouteSurroundings {
  readonly named: NamedBackends;
  readonly routeGroups: Config['routeGroups'];
  readonly services: Config['services'];
  readonly problems: LocatedProblem[];
}

/**
 * Plans a route of a listener. `index` is its place among the routes of the listener, for the default name.
 *
 * @param chain Groups that were entered on the way to this route.
 */
export function planRoute(
  config: RouteConfig,
  index: number,
  path: Path,
  { routePrefix }: Pick<ListenerPlan, 'routePrefix'>,
  surroundings: RouteSurroundings,
  chain: readonly string[] = [],
): RoutePlan {
  const key = config.name ?? `route${index}`;
  const { namespace } = config;
  const fullKey = `${routePrefix}${namespace}/${key}`;
  const backends: BackendPlan[] = [];
  const groups: GroupPlan[] = [];
  for (const [place, { routeGroup, ...backend }] of config.backends.entries()) {
    const at = [...path, 'backends', place];
    if (routeGroup === undefined)
      backends.push(planBackend(backend, `${fullKey}/backend${place}`, at, surroundings));
    else groups.push(...planGroup(routeGroup, backend, at, surroundings, chain));
  }
  return {
    key: namespace === 'default' ? key : `${namespace}/${key}`,
    name: `${namespace}/${key}`,
    fullKey,
    dumpName: key,
    namespace,
    config,
    path,
    isShortForm: false,
    policies: planPolicies(config.policies, [...path, 'policies'], fullKey),
    backends,
    groups,
  };
}

type BackendConfig = RouteConfig['backends'][number];

/** A backend of a route, or one that it names: then with the policies of both, those of the route last. */
function planBackend(
  { weight, policies, backend: reference, ...config }: Omit<BackendConfig, 'routeGroup'>,
  id: string,
  path: Path,
  { named, problems, services }: RouteSurroundings,
): BackendPlan {
  const own = planPolicies(policies, [...path, 'policies'], id);
  const inline = {
    id,
    name: id,
    weight,
    config,
    path,
    isSection: false,
    reference: undefined,
    policies: own,
  };
  if (config.service !== undefined)
    problems.push(...serviceProblems(config.service, services, own, [...path, 'service']));
  if (reference === undefined) return inline;
  problems.push(...besides('backend', config, path));
  const shared = findBackend(named, reference);
  if (shared !== undefined) return { ...shared, weight, policies: [...shared.policies, ...own] };
  const known = [...named.keys()].map((name) => `\`${name}\``).join(', ') || 'none';
  problems.push({
    code: 'AGW0107',
    path: [...path, 'backend'],
    message: `unknown backend \`${reference}\``,
    help: `top-level \`backends\` of this file: ${known}`,
  });
  return { ...inline, reference };
}

/** The routes of a group as this route reaches them. */
function planGroup(
  name: string,
  { weight, policies, ...config }: Omit<BackendConfig, 'routeGroup'>,
  path: Path,
  surroundings: RouteSurroundings,
  chain: readonly string[],
): GroupPlan[] {
  const { routeGroups, problems } = surroundings;
  problems.push(...besides('routeGroup', { ...config, policies }, path));
  const at = [...path, 'routeGroup'];
  if (chain.includes(name)) {
    const cycle = [...chain.slice(chain.indexOf(name)), name].map((each) => `\`${each}\``).join(' → ');
    problems.push({
      code: 'AGW0104',
      path: at,
      message: `route groups delegate in a circle: ${cycle}`,
      help: 'remove one of these references: no request could be answered',
    });
    return [];
  }
  const index = routeGroups.findIndex((group) => group.name === name);
  const group = routeGroups[index];
  if (group === undefined) {
    const known = routeGroups.map((each) => `\`${each.name}\``).join(', ') || 'none';
    problems.push({
      code: 'AGW0107',
      path: at,
      message: `unknown route group \`${name}\``,
      help: `\`routeGroups\` of this file: ${known}`,
    });
    return [];
  }
  const routes = group.routes.map((route, place) =>
    planRoute(
      route,
      place,
      ['routeGroups', index, 'routes', place],
      { routePrefix: `routegroup/${name}/` },
      surroundings,
      [...chain, name],
    ),
  );
  return [{ name, weight, routes }];
}

/** Keys that cannot stand beside a reference. */
function besides(reference: string, others: object, path: Path): LocatedProblem[] {
  return Object.entries(others).flatMap(([key, value]: [string, unknown]) =>
    value === undefined
      ? []
      : [
          {
            code: 'AGW0105' as const,
            path: [...path, key],
            atKey: true,
            message: `\`${key}\` cannot be used with \`${reference}\``,
            help: 'keep one of them',
          },
        ],
  );
}
