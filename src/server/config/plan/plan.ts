import type { z } from 'zod';
import type { Path } from '../../../core/diagnostic.ts';
import type { TcpAddress } from '../../../core/listen.ts';
import type { Problem } from '../../kernel/compile-context.ts';
import type { TcpRouteConfig } from '../../transport/tcp-routes.ts';
import type { ServerTlsConfig } from '../../transport/tls/server-tls.ts';
import type { RouteConfig } from '../schema.ts';
import type { Protocol } from '../traffic-schema.ts';

/** Ports with their listeners and routes, and problems of their names and references. */
export interface Plan {
  readonly gateways: GatewayPlan[];
  /** Routes without a gateway, because the named one does not exist. */
  readonly detached: RoutePlan[];
  /** The top-level `backends` by name. */
  readonly named: ReadonlyMap<string, BackendPlan>;
  readonly problems: LocatedProblem[];
}

/** A port to open, with its listeners. */
export interface GatewayPlan {
  readonly name: string;
  readonly port: number;
  readonly address: string | undefined;
  /** Whether its clients open tunnels to other ports of the gateway with CONNECT, and send nothing else. */
  readonly isTunnel?: boolean;
  /** Whether the port is not opened: only tunnels lead to it. */
  readonly isInternal?: boolean;
  /** Path of the port in the file, or of the section that implies a default port. */
  readonly portPath: Path;
  readonly listeners: readonly ListenerPlan[];
}

/** The routes for some of the hosts of a port, or for all of them. */
export interface ListenerPlan {
  /** As in logs and metrics, and in references of routes: `gateway` or `gateway/listener`. */
  readonly name: string;
  /** Its name in configuration dumps. */
  readonly key: string;
  /** In lower case, `*.example.com` for all names below it; undefined for any host. */
  readonly hostname: string | undefined;
  readonly protocol: Protocol;
  /** TLS of its connections, which `HTTPS` needs. */
  readonly tls: ServerTlsConfig | undefined;
  /** Path of its section; that of the gateway if it has no listeners. */
  readonly path: Path;
  /** Run before routing. */
  readonly policies: readonly PolicyPlan[];
  /** Beginning of the dump names of its routes. */
  readonly routePrefix: string;
  readonly routes: RoutePlan[];
  /** With the protocols `TCP` and `TLS`. */
  readonly tcpRoutes: TcpRoutePlan[];
}

export interface TcpRoutePlan {
  readonly config: TcpRouteConfig;
  readonly path: Path;
}

/** A policy with the place where it is written. */
export interface PolicyPlan {
  /** Unique in the configuration, and the same after a reload. Routes that share a policy share its state. */
  readonly id: string;
  /** One of the keys of `policyKinds`. */
  readonly key: string;
  /** Valid by the schema of its kind. */
  readonly config: unknown;
  readonly path: Path;
}

export interface RoutePlan {
  /** Unique within its listener. */
  readonly key: string;
  /** As printed in the access log: `namespace/name`. */
  readonly name: string;
  /** Its name in configuration dumps and traces, and the parts of it. */
  readonly fullKey: string;
  readonly dumpName: string;
  readonly namespace: string;
  readonly config: RouteConfig;
  readonly path: Path;
  /** Whether the route stands for a top-level section such as `mcp`, and has no section of its own. */
  readonly isShortForm: boolean;
  /** Its own policies and those that other sections attach to it. */
  readonly policies: readonly PolicyPlan[];
  readonly backends: readonly BackendPlan[];
  /** Groups that the route delegates to, by weight like backends. */
  readonly groups: readonly GroupPlan[];
}

/** A reference to a route group, with the routes as this route reaches them. */
export interface GroupPlan {
  readonly name: string;
  readonly weight: number;
  readonly routes: readonly RoutePlan[];
}

export interface BackendPlan {
  /** Unique in the configuration, and the same after a reload. */
  readonly id: string;
  /** Its name in configuration dumps; a reference to it has a `/` in front. */
  readonly name: string;
  readonly weight: number;
  /** Its settings by the keys of its kinds, of which a valid backend has exactly one: `knownBackends`. */
  readonly config: object;
  readonly path: Path;
  /** Whether `path` leads to the settings of its kind, instead of to the key of the kind. */
  readonly isSection: boolean;
  /** The name under which routes refer to it, if it is one of the top-level `backends`. */
  readonly reference: string | undefined;
  readonly policies: readonly PolicyPlan[];
}

export interface LocatedProblem extends Problem {
  readonly path: Path;
}

/** All routes of a port that answer requests: those that it delegates to instead of those that delegate. */
export function routesOf({ listeners }: GatewayPlan): RoutePlan[] {
  return listeners.flatMap(({ routes }) => answeringRoutes(routes));
}

/** Routes without those that only delegate, and with the routes that they delegate to. */
export function answeringRoutes(routes: readonly RoutePlan[]): RoutePlan[] {
  return routes.flatMap((route) => [
    ...(route.groups.length > 0 && route.backends.length === 0 ? [] : [route]),
    ...route.groups.flatMap((group) => answeringRoutes(group.routes)),
  ]);
}

/** The path of the settings of a backend. */
export function settingsPath({ path, isSection }: BackendPlan, kind: string): Path {
  return isSection ? path : [...path, kind];
}

/** The settings of a policy, if the list has it. Of several, the last one: it belongs to the most specific level. */
export function policyOf(policies: readonly PolicyPlan[], key: string): PolicyPlan | undefined {
  return policies.findLast((policy) => policy.key === key);
}

/** The settings of a policy, typed by its kind; undefined if it is of another kind. */
export function settingsOf<Schema extends z.ZodType>(
  policy: PolicyPlan | undefined,
  kind: { readonly key: string; readonly schema: Schema },
): z.output<Schema> | undefined {
  if (policy?.key !== kind.key) return undefined;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema of that kind has checked it
  return policy.config as z.output<Schema>;
}

/** The address that a gateway listens on. */
export function addressOf({ port, address }: Pick<GatewayPlan, 'port' | 'address'>): TcpAddress {
  return { hosts: [address ?? '::'], port };
}
