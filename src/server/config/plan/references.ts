import type { Path } from '../../../core/diagnostic.ts';
import type { Config } from '../schema.ts';
import type { GatewayPlan, ListenerPlan, Plan } from './plan.ts';
import { planRoute, type RouteSurroundings } from './routes.ts';

export const DEFAULT_GATEWAY = 'default';

/** Adds the top-level `routes` to the listeners that they name. */
export function attachRoutes({ routes }: Config, plan: Plan, surroundings: RouteSurroundings): void {
  for (const [index, { gateways: references, ...route }] of routes.entries()) {
    const path: Path = ['routes', index];
    const owners = referenced(plan, references, path, `route \`${route.name ?? index}\``, 'warning');
    for (const listener of owners)
      listener.routes.push(planRoute(route, listener.routes.length, path, listener, surroundings));
    if (owners.length === 0)
      plan.detached.push(planRoute(route, index, path, { routePrefix: 'detached/' }, surroundings));
  }
}

/** Adds the top-level `tcpRoutes` to the listeners that they name. */
export function attachTcpRoutes({ tcpRoutes }: Config, plan: Plan): void {
  for (const [index, { gateways: references, ...config }] of tcpRoutes.entries()) {
    const path: Path = ['tcpRoutes', index];
    for (const listener of referenced(plan, references, path, `route \`${config.name ?? index}\``, 'warning'))
      listener.tcpRoutes.push({ config, path });
  }
}

/**
 * The listeners that `gateways` of a section names: `gateway` stands for all of its listeners, `gateway/listener` for one.
 * Without references, those of the gateway `default`. `severity`: of the problem that there is none.
 */
export function referenced(
  { gateways, problems }: Pick<Plan, 'gateways' | 'problems'>,
  references: string | readonly string[] | undefined,
  path: Path,
  owner: string,
  severity: 'error' | 'warning' = 'error',
): readonly ListenerPlan[] {
  const wanted = references === undefined ? [DEFAULT_GATEWAY] : [references].flat();
  const listeners = wanted.flatMap((name, index) => {
    const found = listenersNamed(gateways, name);
    if (found.length > 0) return found;
    problems.push(
      references === undefined
        ? {
            code: 'AGW0107',
            severity,
            path,
            message: `${owner} belongs to no gateway`,
            help: 'add `gateways: <name>`, or a gateway called `default`',
          }
        : {
            code: 'AGW0107',
            path: [...path, 'gateways', ...(Array.isArray(references) ? [index] : [])],
            message: `unknown gateway \`${name}\``,
            help: `gateways of this file: ${known(gateways)}`,
          },
    );
    return [];
  });
  return [...new Set(listeners)];
}

function listenersNamed(gateways: readonly GatewayPlan[], name: string): readonly ListenerPlan[] {
  const named = gateways.filter(isGateway);
  const gateway = named.find((candidate) => candidate.name === name);
  if (gateway !== undefined) return gateway.listeners;
  return named.flatMap(({ listeners }) => listeners).filter((listener) => listener.name === name);
}

/** Ports of `binds` and of short forms have no name to refer to. */
const isGateway = ({ portPath }: GatewayPlan): boolean => portPath[0] === 'gateways';

function known(gateways: readonly GatewayPlan[]): string {
  const names = gateways
    .filter(isGateway)
    .flatMap(({ name, listeners }) => [
      name,
      ...listeners.flatMap((listener) => (listener.name === name ? [] : [listener.name])),
    ]);
  return names.map((name) => `\`${name}\``).join(', ') || 'none';
}
