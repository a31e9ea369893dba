import type { Config } from '../schema.ts';
import { attachPolicies } from './attached-policies.ts';
import { planBinds } from './binds.ts';
import { checkHostnames, planGatewaySection } from './gateways.ts';
import { planNamedBackends } from './named-backends.ts';
import type { LocatedProblem, Plan } from './plan.ts';
import { checkPorts, checkRouteNames } from './ports.ts';
import { checkProtocols } from './protocols.ts';
import { attachRoutes, attachTcpRoutes } from './references.ts';
import { checkRouteGroups } from './route-groups.ts';
import type { RouteSurroundings } from './routes.ts';
import { placeShortForms } from './short-forms.ts';

/**
 * Converts all forms of gateways and routes in a configuration to a list of ports with their listeners and routes, and
 * sets default names. A pure function: problems are returned.
 */
export function planGateways(config: Config): Plan {
  const problems: LocatedProblem[] = [];
  const named = planNamedBackends(config, problems);
  const surroundings: RouteSurroundings = { named, routeGroups: config.routeGroups, problems };
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
