import type { Path } from '../../core/diagnostic.ts';
import { overlap, type TcpAddress } from '../../core/listen.ts';
import type { Problem } from '../kernel/compile-context.ts';
import type { Config, RouteConfig } from './schema.ts';

/** A port to open, with its routes. */
export interface GatewayPlan {
  readonly name: string;
  readonly port: number;
  readonly address: string | undefined;
  /** Path of the port in the file, or of the section that implies a default port. */
  readonly portPath: Path;
  readonly routes: RoutePlan[];
}

export interface RoutePlan {
  /** Unique within its gateway. */
  readonly key: string;
  readonly name: string;
  readonly config: RouteConfig;
  readonly path: Path;
  /** Path of the backend, if the route comes from a short form; otherwise it follows from `path`. */
  readonly backendPath: Path | undefined;
}

export interface LocatedProblem extends Problem {
  readonly path: Path;
}

const DEFAULT_GATEWAY = 'default';

/** The address that a gateway listens on. */
export function addressOf({ port, address }: Pick<GatewayPlan, 'port' | 'address'>): TcpAddress {
  return { hosts: [address ?? '::'], port };
}

/** Gateways with their routes, and problems of their names and ports. */
export interface Plan {
  readonly gateways: GatewayPlan[];
  /** Routes without a gateway, because the named one does not exist. */
  readonly detached: RoutePlan[];
  readonly problems: LocatedProblem[];
}

/**
 * Converts all forms of gateways and routes in a configuration to a list of ports with their routes, and sets default
 * names. A pure function: problems are returned.
 */
export function planGateways(config: Config): Plan {
  const problems: LocatedProblem[] = [];
  const detached: RoutePlan[] = [];
  const gateways = Object.entries(config.gateways).map(
    ([name, gateway]): GatewayPlan => ({
      name,
      port: gateway.port,
      address: gateway.address,
      portPath: ['gateways', name, 'port'],
      routes: gateway.routes.map((route, index) =>
        planRoute(route, index, ['gateways', name, 'routes', index]),
      ),
    }),
  );
  for (const [index, { gateways: references, ...route }] of config.routes.entries()) {
    const path: Path = ['routes', index];
    const owner = `route \`${route.name ?? index}\``;
    const owners = referenced(gateways, references, path, owner, problems);
    for (const gateway of owners) gateway.routes.push(planRoute(route, gateway.routes.length, path));
    if (owners.length === 0) detached.push(planRoute(route, index, path));
  }
  const plan = { gateways, detached, problems };
  for (const form of SHORT_FORMS) placeShortForm(form, config, plan);
  checkPorts(gateways, problems);
  checkRouteNames(gateways, problems);
  return plan;
}

function planRoute(config: RouteConfig, index: number, path: Path): RoutePlan {
  const name = config.name ?? `route${index}`;
  return { key: name, name: `default/${name}`, config, path, backendPath: undefined };
}

function referenced(
  gateways: readonly GatewayPlan[],
  references: string | readonly string[] | undefined,
  path: Path,
  owner: string,
  problems: LocatedProblem[],
): GatewayPlan[] {
  const wanted = references === undefined ? [DEFAULT_GATEWAY] : [references].flat();
  return wanted.flatMap((name, index) => {
    const gateway = gateways.find((candidate) => candidate.name === name);
    if (gateway !== undefined) return [gateway];
    const known = gateways.map((candidate) => `\`${candidate.name}\``).join(', ') || 'none';
    problems.push({
      code: 'AGW0107',
      path:
        references === undefined
          ? path
          : [...path, 'gateways', ...(Array.isArray(references) ? [index] : [])],
      message: references === undefined ? `${owner} belongs to no gateway` : `unknown gateway \`${name}\``,
      help:
        references === undefined
          ? 'add `gateways: <name>`, or a gateway called `default`'
          : `gateways of this file: ${known}`,
    });
    return [];
  });
}

/** A short form: a top-level section for one route with one backend. */
interface ShortForm {
  readonly key: 'mcp' | 'llm';
  /** Default port, if neither a port nor a gateway is named (specification: 4000 for LLM, 3000 for MCP). */
  readonly port: number;
  /** Path prefixes on a gateway with other routes. */
  readonly sharedPrefixes: readonly string[];
  readonly routeName: string;
}

const SHORT_FORMS: readonly ShortForm[] = [
  { key: 'mcp', port: 3000, sharedPrefixes: ['/mcp', '/sse', '/.well-known'], routeName: 'internal/default' },
  { key: 'llm', port: 4000, sharedPrefixes: ['/v1', '/v1beta'], routeName: 'internal/llm:request' },
];

/** Adds the route of a short form: for all paths on its own port, for `sharedPrefixes` on a gateway with other routes. */
function placeShortForm(
  { key, port: ownPort, sharedPrefixes, routeName }: ShortForm,
  config: Config,
  { gateways, detached, problems }: Plan,
): void {
  const section = config[key];
  if (section === undefined) return;
  const { port, gateways: references, policies: given, ...fields } = section;
  // The only policy that the backend runs.
  const { guardrails, ...policies } = { guardrails: undefined, ...given };
  const backend = guardrails === undefined ? fields : { ...fields, policies: { guardrails } };
  const route = (prefixes: readonly string[]): RoutePlan => ({
    key: `internal/${key}`,
    name: routeName,
    config: {
      hostnames: [],
      matches: prefixes.map((pathPrefix) => ({ path: { pathPrefix }, headers: [], query: [] })),
      policies: given === undefined ? undefined : policies,
      // The remaining fields of the section are validated backend fields; only the other kinds are missing.
      backends: [{ weight: 1, [key]: backend } as RouteConfig['backends'][number]],
    },
    path: [key],
    backendPath: [key],
  });
  // A gateway without other routes works like `llm.port`: `/chat/completions` without `/v1`, and errors in the API's format.
  const prefixesOn = ({ routes }: GatewayPlan): readonly string[] =>
    key === 'llm' && routes.length === 0 ? ['/'] : sharedPrefixes;
  if (port !== undefined && references !== undefined) {
    problems.push({
      code: 'AGW0105',
      path: [key, 'gateways'],
      message: `\`${key}.gateways\` cannot be used with \`${key}.port\``,
      help: 'keep one of them',
    });
    detached.push(route(sharedPrefixes));
    return;
  }
  const shares =
    port === undefined && (references !== undefined || gateways.some(({ name }) => name === DEFAULT_GATEWAY));
  if (shares) {
    const owners = referenced(gateways, references, [key], `\`${key}\``, problems);
    for (const gateway of owners) gateway.routes.push(route(prefixesOn(gateway)));
    if (owners.length === 0) detached.push(route(sharedPrefixes));
    return;
  }
  gateways.push({
    name: key,
    port: port ?? ownPort,
    address: undefined,
    portPath: port === undefined ? [key] : [key, 'port'],
    routes: [route(['/'])],
  });
}

function checkPorts(gateways: readonly GatewayPlan[], problems: LocatedProblem[]): void {
  const taken = new Map<number, GatewayPlan[]>();
  for (const gateway of gateways) {
    const { name, port, portPath, routes } = gateway;
    if (routes.length === 0) {
      problems.push({
        code: 'AGW0303',
        severity: 'warning',
        path: portPath,
        message: `port ${port} is not used: gateway \`${name}\` has no routes`,
        label: 'every request would get 404 `route not found`',
        help: 'add `routes` to it, or remove it',
      });
    }
    if (port === 0) continue;
    const others = taken.get(port) ?? [];
    const first = others.find((other) => overlap(addressOf(other), addressOf(gateway)));
    if (first !== undefined) problems.push(samePort(first, gateway));
    taken.set(port, [...others, gateway]);
  }
}

function samePort(first: GatewayPlan, { name, port, portPath, address }: GatewayPlan): LocatedProblem {
  const isShortForm = portPath[0] !== 'gateways' && first.portPath[0] === 'gateways';
  const instead = portPath.length > 1 ? ' instead of `port`' : '';
  return {
    code: 'AGW0106',
    path: portPath,
    message: `port ${port} is configured by both \`${first.name}\` and \`${name}\``,
    // Two different addresses may not look like a conflict.
    ...(first.address !== address && { label: `${inWords(first)}, and ${inWords({ name, address })}` }),
    help: isShortForm
      ? `set another port, or write \`gateways: ${first.name}\`${instead}`
      : 'give each gateway its own port, or put the routes under one gateway',
  };
}

function inWords({ name, address = 'all addresses' }: Pick<GatewayPlan, 'name' | 'address'>): string {
  return `\`${name}\` listens on ${address}`;
}

function checkRouteNames(gateways: readonly GatewayPlan[], problems: LocatedProblem[]): void {
  for (const gateway of gateways) {
    const seen = new Set<string>();
    for (const { key, config, path } of gateway.routes) {
      if (seen.has(key)) {
        problems.push({
          code: 'AGW0106',
          path: config.name === undefined ? path : [...path, 'name'],
          message: `two routes of gateway \`${gateway.name}\` are called \`${key}\``,
          help: 'give each route its own `name`',
        });
      }
      seen.add(key);
    }
  }
}
