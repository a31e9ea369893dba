import type { DumpMatch, DumpRoute } from '../../../core/config-dump.ts';
import { GATEWAY } from '../../kernel/gateway-name.ts';
import type { GatewayPlan, RoutePlan } from '../plan.ts';
import type { RouteConfig } from '../schema.ts';
import { listenerKey, routeNames } from './names.ts';
import { inlinePolicies } from './policies.ts';

/** A bind without its listeners, which are written piece by piece. `port` is the one that is open. */
export function bindHead(gateway: GatewayPlan, port: number): Readonly<Record<string, string>> {
  const host = gateway.address ?? '::';
  return {
    key: `bind/${port}`,
    address: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
    protocol: 'http',
    tunnelProtocol: 'direct',
    mode: 'standard',
  };
}

/** A listener without its routes. */
export function listenerHead(gateway: GatewayPlan): Readonly<Record<string, string>> {
  return {
    key: listenerKey(gateway),
    gatewayName: GATEWAY.name,
    gatewayNamespace: GATEWAY.namespace,
    listenerName: gateway.name,
    hostname: '*',
    protocol: 'HTTP',
  };
}

export function dumpRoute(gateway: GatewayPlan, plan: RoutePlan): DumpRoute {
  const { key, name, namespace, backend } = routeNames(gateway, plan);
  const { hostnames, matches, backends, policies } = plan.config;
  const shown = inlinePolicies(policies);
  return {
    key,
    name,
    namespace,
    ...(hostnames.length === 0 ? {} : { hostnames }),
    matches: (matches ?? [{ path: { pathPrefix: '/' }, headers: [], query: [] }]).map(dumpMatch),
    ...(backends.length === 0
      ? {}
      : { backends: backends.map(({ weight }, index) => ({ weight, backend: `/${backend(index)}` })) }),
    ...(shown.length === 0 ? {} : { inlinePolicies: shown }),
  };
}

function dumpMatch({ headers, path, method, query }: NonNullable<RouteConfig['matches']>[number]): DumpMatch {
  return {
    ...(headers.length === 0 ? {} : { headers }),
    path: path as Record<string, string>,
    ...(method === undefined ? {} : { method }),
    ...(query.length === 0 ? {} : { query }),
  };
}
