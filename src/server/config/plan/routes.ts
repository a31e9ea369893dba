import type { Path } from '../../../core/diagnostic.ts';
import type { RouteConfig } from '../schema.ts';
import type { BackendPlan, ListenerPlan, PolicyPlan, RoutePlan } from './plan.ts';

/** Plans a route of a listener. `index` is its place among the routes of the listener, for the default name. */
export function planRoute(
  config: RouteConfig,
  index: number,
  path: Path,
  { routePrefix }: Pick<ListenerPlan, 'routePrefix'>,
): RoutePlan {
  const key = config.name ?? `route${index}`;
  const { namespace } = config;
  const fullKey = `${routePrefix}${namespace}/${key}`;
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
    backends: config.backends.map((backend, place) =>
      planBackend(backend, `${fullKey}/backend${place}`, [...path, 'backends', place]),
    ),
  };
}

/** The policies of one section, in the order of the file. `owner` is a name that is unique and stable. */
export function planPolicies(policies: object | undefined, path: Path, owner: string): PolicyPlan[] {
  return Object.entries(policies ?? {}).flatMap(([key, config]: [string, unknown]) =>
    config === undefined ? [] : [{ id: `${owner}/${key}`, key, config, path: [...path, key] }],
  );
}

function planBackend(
  { weight, policies, ...config }: RouteConfig['backends'][number],
  id: string,
  path: Path,
): BackendPlan {
  return {
    id,
    name: id,
    weight,
    config,
    path,
    isSection: false,
    policies: planPolicies(policies, [...path, 'policies'], id),
  };
}
