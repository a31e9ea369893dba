import { CommandError } from '../../core/exit-codes.ts';
import type { LoadedConfig } from '../../server/config/load.ts';
import { knownBackends } from '../../server/config/plan/backend-kinds.ts';
import { originOf } from '../../server/config/plan/origin.ts';
import {
  answeringRoutes,
  type GatewayPlan,
  type ListenerPlan,
  type RoutePlan,
} from '../../server/config/plan/plan.ts';
import { planGateways } from '../../server/config/plan/plan-gateways.ts';
import { routesOf } from '../proxy/dump-parts.ts';

/** What clients use a gateway for: the tools of MCP servers, or models. */
export type Kind = 'mcp' | 'llm';

/** An endpoint of a gateway, as clients on this machine reach it. */
export interface Endpoint {
  /** Of models: the base address without `/v1`. */
  readonly url: string;
  /** Keys of the policies in front of it. */
  readonly policies: readonly string[];
  /** The variable of its first key, if the configuration refers to one. */
  readonly keyVariable: string | undefined;
  /** Names and patterns of its models. */
  readonly models: readonly string[];
  /** Names of its bundles, whose paths follow that of `url`. */
  readonly bundles: readonly string[];
}

/** The bundles of a route, with the paths that clients are given. Those of a route with another match than a prefix have none. */
export function partsOf({ config, backends }: RoutePlan): { readonly name: string; readonly path: string }[] {
  const [first = { path: { pathPrefix: '/' } }] = config.matches ?? [];
  const { pathPrefix } = first.path;
  if (pathPrefix === undefined) return [];
  return knownBackends(backends)
    .flatMap(({ kind, settings }) => kind.partNames?.(settings) ?? [])
    .map((name) => ({ name, path: `${pathOf('mcp', pathPrefix)}/${name}` }));
}

/** The policies that take a key of the client as bearer token. */
const KEY_POLICIES: ReadonlySet<string> = new Set(['apiKey']);

/** The variable for a key that the configuration does not take from one. */
const DEFAULT_KEY_VARIABLE = 'AGCTL_KEY';

/** The variable that holds the client's key; undefined if the endpoint asks for none. */
export function keyVariableOf({ policies, keyVariable }: Endpoint): string | undefined {
  return policies.some((key) => KEY_POLICIES.has(key)) ? (keyVariable ?? DEFAULT_KEY_VARIABLE) : undefined;
}

/** The endpoints of a configuration. @throws CommandError if it is invalid */
export function endpointsOfConfig({ config, source }: LoadedConfig, kind: Kind): readonly Endpoint[] {
  if (config === undefined)
    throw new CommandError(
      'not_ok',
      `${source.file} is not a valid configuration`,
      `agctl config validate -f ${source.file}`,
    );
  return planGateways(config).gateways.flatMap((gateway) =>
    gateway.listeners.flatMap((listener) =>
      answeringRoutes(listener.routes)
        .filter(({ backends }) => knownBackends(backends).some((backend) => backend.kind.api === kind))
        .map((route): Endpoint => {
          const policies = [...listener.policies, ...route.policies];
          const apiKey = policies.find(({ key }) => key === 'apiKey');
          return {
            url: urlOf(gateway, listener, route, kind),
            policies: policies.map(({ key }) => key),
            keyVariable: apiKey && source.variableAt([...apiKey.path, 'keys', 0, 'key']),
            models: knownBackends(route.backends).flatMap(
              (backend) => backend.kind.modelNames?.(backend.settings) ?? [],
            ),
            bundles: partsOf(route).map(({ name }) => name),
          };
        }),
    ),
  );
}

function urlOf(
  { port, address }: GatewayPlan,
  { hostname, protocol }: ListenerPlan,
  { config }: RoutePlan,
  kind: Kind,
): string {
  const [path] = (config.matches ?? []).flatMap(({ path: each }) => each.exact ?? each.pathPrefix ?? []);
  return (
    originOf({ address, protocol, port, hostnames: [...config.hostnames, hostname] }) + pathOf(kind, path)
  );
}

/** The endpoints of a running gateway, from its dump, which has no names of variables. */
export function endpointsOfDump(dump: Readonly<Record<string, unknown>>, kind: Kind): readonly Endpoint[] {
  const own = kind === 'mcp' ? /^mcp\b/ : /^(?:llm|ai)\b/;
  return routesOf(dump)
    .filter(({ backends }) => backends.some((backend) => own.test(backend)))
    .map(({ address, protocol, hostnames, matches, policies }) => {
      const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(address) ?? [];
      const [, path] = /(\/\S*?)\*?$/.exec(matches[0] ?? '') ?? [];
      return {
        url:
          originOf({ address: host.replaceAll(/[[\]]/g, ''), protocol, port: Number(port), hostnames }) +
          pathOf(kind, path),
        policies,
        keyVariable: undefined,
        models: [],
        bundles: [],
      };
    });
}

/**
 * The path that clients are given. A route for every path serves MCP at `/mcp` too, which is what clients expect; clients of
 * models add `/v1` and the rest themselves.
 */
function pathOf(kind: Kind, path = '/'): string {
  if (kind === 'mcp') return path === '/' ? '/mcp' : path.replace(/(?<=.)\/$/, '');
  return path.replace(/\/(?:(?:v1|v1beta|chat)(?:\/.*)?)?$/, '');
}
