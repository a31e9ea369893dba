/**
 * The shape of `GET /config_dump`. Key names, casing and order are upstream's wire format, which upstream's own `agctl`
 * and users' `jq` filters read. Written by `server/config/dump/`, read by `agctl proxy config`.
 */

export interface ConfigDump {
  /** Filled only with a control plane; always empty here. */
  readonly workloads: readonly unknown[];
  readonly services: readonly unknown[];
  readonly binds: readonly DumpBind[];
  readonly routes: { readonly httpMesh: object; readonly tcpMesh: object; readonly routeGroups: object };
  readonly policies: readonly DumpPolicy[];
  readonly backends: readonly DumpBackend[];
  readonly models: readonly DumpModel[];
  readonly version: DumpVersion;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Upstream uses snake_case for this object only. */
export interface DumpVersion {
  readonly version: string;
  readonly git_revision: string;
  readonly rust_version: string;
  readonly build_profile: string;
  readonly build_target: string;
}

export interface DumpBind {
  /** `bind/<port>` */
  readonly key: string;
  /** `[::]:3000` */
  readonly address: string;
  readonly protocol: 'http' | 'tls' | 'tcp' | 'auto';
  readonly tunnelProtocol: 'direct' | 'connect';
  readonly mode: 'standard' | 'internal';
  /** By listener key. */
  readonly listeners: Readonly<Record<string, DumpListener>>;
}

export interface DumpListener {
  readonly key: string;
  readonly gatewayName: string;
  readonly gatewayNamespace: string;
  readonly listenerName: string;
  readonly hostname: string;
  readonly protocol: string;
  /** By route key; absent when there is none. */
  readonly routes?: Readonly<Record<string, DumpRoute>>;
}

export interface DumpRoute {
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly hostnames?: readonly string[];
  readonly matches?: readonly DumpMatch[];
  readonly backends?: readonly DumpBackendReference[];
  /** Objects of one key each, such as `{"cors": {…}}`. */
  readonly inlinePolicies?: readonly Readonly<Record<string, unknown>>[];
}

export interface DumpMatch {
  readonly headers?: readonly unknown[];
  readonly path: Readonly<Record<string, string>>;
  readonly method?: string;
  readonly query?: readonly unknown[];
}

/** `backend` is `/` and the name of an entry of `backends`. */
export interface DumpBackendReference {
  readonly weight: number;
  readonly backend?: string;
  /** Instead of a backend: the group whose routes answer. */
  readonly routeGroup?: string;
  readonly inlinePolicies?: readonly Readonly<Record<string, unknown>>[];
}

export interface DumpPolicy {
  readonly key: string;
  readonly name: string | Readonly<Record<string, string>> | null;
  readonly target: Readonly<Record<string, unknown>>;
  readonly policy: Readonly<Record<string, unknown>>;
}

/** `backend` has one key: the variant, such as `host`, `mcp`, `ai` or `llmRouter`. */
export interface DumpBackend {
  readonly backend: Readonly<Record<string, DumpBackendBody>>;
}

export interface DumpBackendBody {
  readonly name: string;
  readonly namespace: string;
  readonly target: unknown;
}

/** Providers of an `ai` backend: endpoints that receive requests, and endpoints that are evicted for a while. */
export interface DumpEndpointSet {
  readonly active: Readonly<Record<string, DumpEndpoint>>;
  readonly rejected: Readonly<Record<string, DumpEndpoint>>;
}

export interface DumpEndpoint {
  readonly endpoint: Readonly<Record<string, unknown>>;
  readonly info: DumpEndpointInfo;
  readonly capacity: number;
}

export interface DumpEndpointInfo {
  /** From 0 to 1. */
  readonly health: number;
  /** In seconds, an exponentially weighted average. */
  readonly requestLatency: number;
  readonly pendingRequests: number;
  readonly totalRequests: number;
  readonly consecutiveFailures: number;
  readonly timesEjected: number;
  /** Time left, such as `3.3s`. */
  readonly evictedUntil: string | null;
}

export interface DumpModel {
  readonly listenerKey: string;
  readonly key: string;
  readonly name: string;
  readonly routerKey: string;
  readonly kind: Readonly<Record<string, unknown>>;
}
