import type { BackendView, Overview, ToolRuleView } from '../../../core/overview.ts';
import { pathTo } from '../model/client-address.ts';

/** How a kind of backend can be reached: a port, and a path that leads to it. */
export interface Endpoint {
  readonly key: string;
  readonly name: string;
  readonly routeName: string;
  /** Names of its gateway and route in `/api/overview`. */
  readonly gateway: string;
  readonly routeKey: string;
  /** Origin for clients, as far as the gateway knows. */
  readonly origin: string;
  readonly port: number;
  readonly path: string;
  /** Host name that the route matches. */
  readonly host: string | undefined;
  readonly policies: readonly string[];
  readonly toolRules: readonly ToolRuleView[];
  readonly backends: readonly BackendView[];
}

/** The routes that lead to MCP servers, or to models, in the order of the configuration. */
export function endpointsOf({ gateways }: Pick<Overview, 'gateways'>, api: 'mcp' | 'llm'): Endpoint[] {
  return gateways.flatMap(({ name, port, routes }) =>
    routes
      .filter(({ backends }) => backends.some((backend) => backend.api === api))
      .map((route) => {
        const host = route.hostnames[0]?.replace(/^\*/, 'any');
        const path = pathTo(route.matches[0] ?? '/*', api);
        return {
          key: `${name} ${route.key}`,
          name: `${host ?? name}:${port}${path} (${route.title})`,
          routeName: route.name,
          gateway: name,
          routeKey: route.key,
          origin: route.origin,
          port,
          path,
          host,
          policies: route.policies,
          toolRules: route.toolRules,
          backends: route.backends,
        };
      }),
  );
}
