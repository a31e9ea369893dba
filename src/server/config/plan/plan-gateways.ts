import type { Path } from '../../../core/diagnostic.ts';
import { GATEWAY } from '../../kernel/gateway-name.ts';
import type { Config } from '../schema.ts';
import { attachPolicies } from './attached-policies.ts';
import { checkHostnames, hostnameOf, planGatewaySection } from './gateways.ts';
import { planNamedBackends } from './named-backends.ts';
import type { GatewayPlan, ListenerPlan, LocatedProblem, Plan, RoutePlan } from './plan.ts';
import { planPolicies } from './policies.ts';
import { checkPorts, checkRouteNames } from './ports.ts';
import { checkProtocols, protocolOf } from './protocols.ts';
import { attachRoutes, attachTcpRoutes } from './references.ts';
import { planRoute, type RouteSurroundings } from './routes.ts';
import { repeatedServices } from './services.ts';
import { placeShortForms } from './short-forms.ts';

/**
 * Converts all forms of gateways and routes in a configuration to a list of ports with their listeners and routes, and
 * sets default names. A pure function: problems are returned.
 */
export function planGateways(config: Config): Plan {
  const problems: LocatedProblem[] = [];
  const named = planNamedBackends(config, problems);
  const { routeGroups, services } = config;
  const surroundings: RouteSurroundings = { named, routeGroups, services, problems };
  problems.push(...repeatedServices(config));
  const gateways = [...planGatewaySection(config, surroundings), ...planBinds(config, surroundings)];
  const plan: Plan = { gateways, detached: [], named, problems };
  attachRoutes(config, plan, surroundings);
  attachTcpRoutes(config, plan);
  placeShortForms(config, plan);
  checkPorts(gateways, problems);
  checkHostnames(gateways, problems);
  checkProtocols(gateways, problems);
  checkRouteNames(gateways, problems);
  problems.push(...checkRouteGroups(config, plan));
  return attachPolicies(config, plan, named);
}

/** Reports groups with the same name, and groups that no route delegates to. */
function checkRouteGroups({ routeGroups }: Config, { gateways, detached }: Plan): LocatedProblem[] {
  const used = new Set<string>();
  const collect = ({ groups }: RoutePlan): void => {
    for (const { name, routes } of groups) {
      used.add(name);
      for (const route of routes) collect(route);
    }
  };
  for (const { listeners } of gateways)
    for (const { routes } of listeners) for (const route of routes) collect(route);
  for (const route of detached) collect(route);
  return routeGroups.flatMap(({ name }, index): LocatedProblem[] => {
    const path = ['routeGroups', index, 'name'];
    if (routeGroups.findIndex((group) => group.name === name) !== index)
      return [{ code: 'AGW0106', path, message: `two route groups are called \`${name}\`` }];
    if (used.has(name)) return [];
    return [
      {
        code: 'AGW0303',
        path,
        message: `no route delegates to the route group \`${name}\``,
        help: `write \`routeGroup: ${name}\` as a backend of a route, or remove the group`,
      },
    ];
  });
}

/** Plans the section `binds`: ports without names, whose listeners have their own routes. */
function planBinds({ binds }: Config, surroundings: RouteSurroundings): GatewayPlan[] {
  return binds.map(({ port, listeners, tunnelProtocol, mode }, index): GatewayPlan => {
    const path: Path = ['binds', index];
    // Several free ports need different names.
    const name = port === 0 ? `bind${index}` : `bind/${port}`;
    return {
      name,
      port,
      address: undefined,
      isTunnel: tunnelProtocol === 'connect',
      isInternal: mode === 'internal',
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
