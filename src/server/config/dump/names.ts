import type { GatewayPlan, RoutePlan } from '../plan.ts';

/** Names of a route and its backends in dumps and traces, by upstream's naming rules. */
export interface RouteNames {
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  /** Name of the backend at an index; a reference to it has a `/` in front. */
  backend(index: number): string;
}

/** A gateway that represents a top-level `mcp` or `llm` section with a port of its own. */
const isShortForm = ({ portPath }: GatewayPlan): boolean => portPath[0] !== 'gateways';

/** `gateway/<name>`, or the name of the section that implies the port. */
export function listenerKey(gateway: GatewayPlan): string {
  return isShortForm(gateway) ? gateway.name : `gateway/${gateway.name}`;
}

export function routeNames(gateway: GatewayPlan, route: RoutePlan): RouteNames {
  const [section] = route.backendPath ?? [];
  const prefix = isShortForm(gateway) ? '' : `gateway/${gateway.name}/`;
  if (section === 'mcp')
    return { key: `${prefix}mcp:default`, name: 'default', namespace: 'internal', backend: () => 'mcp' };
  if (section === 'llm') {
    const name = 'llm:request';
    return { key: `${prefix}${name}`, name, namespace: 'internal', backend: () => 'llm:router' };
  }
  const key = `${prefix}default/${route.key}`;
  return { key, name: route.key, namespace: 'default', backend: (index) => `${key}/backend${index}` };
}
