import type { Path } from '../../../core/diagnostic.ts';
import { GATEWAY } from '../../kernel/gateway-name.ts';
import type { Config } from '../schema.ts';
import { hostnameOf } from './gateways.ts';
import type { GatewayPlan, ListenerPlan } from './plan.ts';
import { planPolicies } from './policies.ts';
import { protocolOf } from './protocols.ts';
import { planRoute, type RouteSurroundings } from './routes.ts';

/** Plans the section `binds`: ports without names, whose listeners have their own routes. */
export function planBinds({ binds }: Config, surroundings: RouteSurroundings): GatewayPlan[] {
  return binds.map(({ port, listeners }, index): GatewayPlan => {
    const path: Path = ['binds', index];
    // Several free ports need different names.
    const name = port === 0 ? `bind${index}` : `bind/${port}`;
    return {
      name,
      port,
      address: undefined,
      portPath: [...path, 'port'],
      listeners: listeners.map((listener, place) =>
        planListener(listener, place, name, [...path, 'listeners', place], surroundings),
      ),
    };
  });
}

function planListener(
  {
    name: given,
    hostname,
    protocol,
    tls,
    policies,
    routes,
    tcpRoutes,
  }: Config['binds'][number]['listeners'][number],
  index: number,
  bind: string,
  path: Path,
  surroundings: RouteSurroundings,
): ListenerPlan {
  const name = given ?? `listener${index}`;
  const key = `${GATEWAY.label}/${bind}/${name}`;
  const listener: ListenerPlan = {
    name,
    key,
    hostname: hostnameOf(hostname),
    ...protocolOf({ protocol, tls }, path, surroundings.problems),
    path,
    policies: planPolicies(policies, [...path, 'policies'], key),
    routePrefix: `${key}/`,
    routes: [],
    tcpRoutes: tcpRoutes.map((config, place) => ({ config, path: [...path, 'tcpRoutes', place] })),
  };
  for (const [place, route] of routes.entries())
    listener.routes.push(planRoute(route, place, [...path, 'routes', place], listener, surroundings));
  return listener;
}
