import type { Path } from '../../../core/diagnostic.ts';
import { policyKindsAt } from '../../features.ts';
import { canonicalName } from '../../kernel/request/request-target.ts';
import type { Config } from '../schema.ts';
import type { GatewayPlan, ListenerPlan, LocatedProblem } from './plan.ts';
import { planPolicies } from './policies.ts';
import { type ProtocolFields, protocolOf } from './protocols.ts';
import { planRoute, type RouteSurroundings } from './routes.ts';

type GatewayConfig = Config['gateways'][string];
type GatewayListenerConfig = NonNullable<GatewayConfig['listeners']>[number];

/** Plans the section `gateways`: ports by name, each with one listener or with several for different hosts. */
export function planGatewaySection({ gateways }: Config, surroundings: RouteSurroundings): GatewayPlan[] {
  const { problems } = surroundings;
  return Object.entries(gateways).map(([name, gateway]): GatewayPlan => {
    const path: Path = ['gateways', name];
    const { port, address, routes } = gateway;
    const listeners =
      gateway.listeners === undefined
        ? [planListener(name, gateway, path, problems)]
        : planListeners(name, gateway, gateway.listeners, problems);
    for (const listener of listeners)
      for (const [index, route] of routes.entries())
        listener.routes.push(planRoute(route, index, [...path, 'routes', index], listener, surroundings));
    return { name, port, address, portPath: [...path, 'port'], listeners };
  });
}

function planListeners(
  name: string,
  gateway: GatewayConfig,
  listeners: readonly GatewayListenerConfig[],
  problems: LocatedProblem[],
): ListenerPlan[] {
  const path: Path = ['gateways', name];
  const moved = [
    ...(['protocol', 'tls'] as const).filter((key) => gateway[key] !== undefined),
    ...planPolicies(onlyPolicies(gateway), path, name).map(({ key }) => key),
  ];
  for (const key of moved)
    problems.push({
      code: 'AGW0105',
      path: [...path, key],
      atKey: true,
      message: `\`${key}\` of a gateway cannot be used with \`listeners\``,
      help: 'move it to the listeners that need it',
    });
  return listeners.map((listener, index) =>
    planListener(
      `${name}/${listener.name ?? `listener${index}`}`,
      listener,
      [...path, 'listeners', index],
      problems,
    ),
  );
}

function planListener(
  name: string,
  config: { readonly hostname?: string | undefined } & ProtocolFields,
  path: Path,
  problems: LocatedProblem[],
): ListenerPlan {
  const key = `gateway/${name}`;
  return {
    name,
    key,
    hostname: hostnameOf(config.hostname),
    ...protocolOf(config, path, problems),
    path,
    policies: planPolicies(onlyPolicies(config), path, key),
    routePrefix: `${key}/`,
    routes: [],
    tcpRoutes: [],
  };
}

/** The host name of a listener in the form in which hosts are compared; undefined for any host. */
export function hostnameOf(hostname: string | undefined): string | undefined {
  return hostname === undefined || hostname === '*' ? undefined : canonicalName(hostname);
}

/** Policies of gateways are keys of the gateway itself. */
function onlyPolicies(config: object): object {
  const keys = new Set<string>(policyKindsAt('gateway').map(({ key }) => key));
  return Object.fromEntries(Object.entries(config).filter(([key]) => keys.has(key)));
}

/** Reports listeners of one port that serve the same host: only one of them could be reached. */
export function checkHostnames(gateways: readonly GatewayPlan[], problems: LocatedProblem[]): void {
  for (const { port, listeners } of gateways) {
    const taken = new Map<string | undefined, ListenerPlan>();
    const names = new Set<string>();
    for (const listener of listeners) {
      const { hostname, path, name } = listener;
      const first = taken.get(hostname);
      if (first !== undefined)
        problems.push({
          code: 'AGW0106',
          path: hostname === undefined ? path : [...path, 'hostname'],
          message: `listeners \`${first.name}\` and \`${name}\` of port ${port} serve ${hostname === undefined ? 'any host' : `the same host, \`${hostname}\``}`,
          help: 'give each listener of a port its own `hostname`',
        });
      else if (names.has(name))
        problems.push({
          code: 'AGW0106',
          path: [...path, 'name'],
          message: `two listeners are called \`${name}\``,
          help: 'give each listener of a port its own `name`',
        });
      taken.set(hostname, first ?? listener);
      names.add(name);
    }
  }
}
