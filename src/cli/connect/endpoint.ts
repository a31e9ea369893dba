import { CommandError } from '../../core/exit-codes.ts';
import type { LoadedConfig } from '../../server/config/load.ts';
import {
  answeringRoutes,
  type GatewayPlan,
  type ListenerPlan,
  type RoutePlan,
} from '../../server/config/plan/plan.ts';
import { planGateways } from '../../server/config/plan/plan-gateways.ts';
import { routesOf } from '../proxy/dump-parts.ts';

/** An MCP endpoint of a gateway, as clients on this machine reach it. */
export interface McpEndpoint {
  readonly url: string;
  /** Keys of the policies in front of it. */
  readonly policies: readonly string[];
  /** The variable of its first key, if the configuration refers to one. */
  readonly keyVariable: string | undefined;
}

/** The policies that take a key of the client as bearer token. */
const KEY_POLICIES: ReadonlySet<string> = new Set(['apiKey']);

/** The variable for a key that the configuration does not take from one. */
export const DEFAULT_KEY_VARIABLE = 'AGCTL_KEY';

/** The variable that holds the client's key; undefined if the endpoint asks for none. */
export function keyVariableOf({ policies, keyVariable }: McpEndpoint): string | undefined {
  return policies.some((key) => KEY_POLICIES.has(key)) ? (keyVariable ?? DEFAULT_KEY_VARIABLE) : undefined;
}

/** The MCP endpoints of a configuration. @throws CommandError if it is invalid */
export function endpointsOfConfig({ config, source }: LoadedConfig): readonly McpEndpoint[] {
  if (config === undefined)
    throw new CommandError(
      'not_ok',
      `${source.file} is not a valid configuration`,
      `agctl config validate -f ${source.file}`,
    );
  return planGateways(config).gateways.flatMap((gateway) =>
    gateway.listeners.flatMap((listener) =>
      answeringRoutes(listener.routes)
        .filter(({ backends }) => backends.some((backend) => backend.config.mcp !== undefined))
        .map((route): McpEndpoint => {
          const policies = [...listener.policies, ...route.policies];
          const apiKey = policies.find(({ key }) => key === 'apiKey');
          return {
            url: urlOf(gateway, listener, route),
            policies: policies.map(({ key }) => key),
            keyVariable:
              apiKey && variableAt(source.text, source.valueRange([...apiKey.path, 'keys', 0, 'key'])),
          };
        }),
    ),
  );
}

/** The name of the variable, if a value is a reference to one. */
function variableAt(
  text: string,
  { start, end }: { start: { offset: number }; end: { offset: number } },
): string | undefined {
  const written = text.slice(start.offset, end.offset).replaceAll(/^["']|["']$/g, '');
  return /^\$\{?([A-Za-z_]\w*)\}?$/.exec(written)?.[1];
}

function urlOf(
  { port, address }: GatewayPlan,
  { hostname, protocol }: ListenerPlan,
  { config }: RoutePlan,
): string {
  const host = [...config.hostnames, hostname].find((name) => name !== undefined && !name.startsWith('*'));
  const [path] = (config.matches ?? []).flatMap(({ path: each }) => each.exact ?? each.pathPrefix ?? []);
  return joined(protocol === 'HTTPS' ? 'https' : 'http', host ?? reachable(address), port, path);
}

/** The MCP endpoints of a running gateway, from its dump, which has no names of variables. */
export function endpointsOfDump(dump: Readonly<Record<string, unknown>>): readonly McpEndpoint[] {
  return routesOf(dump)
    .filter(({ backends }) => backends.some((backend) => /^mcp\b/.test(backend)))
    .map(({ address, matches, policies }) => {
      const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(address) ?? [];
      const [, path] = /(\/\S*?)\*?$/.exec(matches[0] ?? '') ?? [];
      return {
        url: joined('http', reachable(host.replaceAll(/[[\]]/g, '')), Number(port), path),
        policies,
        keyVariable: undefined,
      };
    });
}

const reachable = (address: string | undefined): string =>
  address === undefined || address === '' || address === '0.0.0.0' || /^[0:]+$/.test(address)
    ? '127.0.0.1'
    : address;

/** A route for every path serves MCP at `/mcp` too, which is what clients expect. */
function joined(scheme: string, host: string, port: number, path = '/'): string {
  const shown = host.includes(':') ? `[${host}]` : host;
  const isDefault = (scheme === 'https' && port === 443) || (scheme === 'http' && port === 80);
  return `${scheme}://${shown}${isDefault ? '' : `:${port}`}${path === '/' ? '/mcp' : path.replace(/(?<=.)\/$/, '')}`;
}
