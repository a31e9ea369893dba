import type { Config } from '../schema.ts';
import type { LocatedProblem, Plan, RoutePlan } from './plan.ts';

/** Reports groups with the same name, and groups that no route delegates to. */
export function checkRouteGroups({ routeGroups }: Config, { gateways, detached }: Plan): LocatedProblem[] {
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
        severity: 'warning',
        path,
        message: `no route delegates to the route group \`${name}\``,
        help: `write \`routeGroup: ${name}\` as a backend of a route, or remove the group`,
      },
    ];
  });
}
