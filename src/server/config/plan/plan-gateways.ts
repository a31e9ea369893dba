import type { Config } from '../schema.ts';
import { planBinds } from './binds.ts';
import { checkHostnames, planGatewaySection } from './gateways.ts';
import type { LocatedProblem, Plan } from './plan.ts';
import { checkPorts, checkRouteNames } from './ports.ts';
import { attachRoutes } from './references.ts';
import { placeShortForms } from './short-forms.ts';

/**
 * Converts all forms of gateways and routes in a configuration to a list of ports with their listeners and routes, and
 * sets default names. A pure function: problems are returned.
 */
export function planGateways(config: Config): Plan {
  const problems: LocatedProblem[] = [];
  const gateways = [...planGatewaySection(config, problems), ...planBinds(config, problems)];
  const plan: Plan = { gateways, detached: [], problems };
  attachRoutes(config, plan);
  placeShortForms(config, plan);
  checkPorts(gateways, problems);
  checkHostnames(gateways, problems);
  checkRouteNames(gateways, problems);
  return plan;
}
