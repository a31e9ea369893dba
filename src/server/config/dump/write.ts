import { availableParallelism } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { goDuration } from '../../../core/duration.ts';
import { LIMITS } from '../../../core/limits.ts';
import { isLoopback, parseListenAddress } from '../../../core/listen.ts';
import type { Redactor } from '../../../core/redact.ts';
import { VERSION } from '../../../core/version.ts';
import type {
  DumpBackend,
  DumpBackendReference,
  DumpEndpointInfo,
  DumpMatch,
  DumpModel,
  DumpRoute,
  DumpVersion,
} from '../../kernel/config-dump.ts';
import { GATEWAY } from '../../kernel/gateway-name.ts';
import { knownBackends } from '../plan/backend-kinds.ts';
import {
  answeringRoutes,
  type BackendPlan,
  type GatewayPlan,
  type ListenerPlan,
  type Plan,
  type RoutePlan,
} from '../plan/plan.ts';
import { planGateways } from '../plan/plan-gateways.ts';
import type { Config, RouteConfig } from '../schema.ts';
import { workerCount } from '../workers.ts';
import { attachedPolicies, frontendPolicies, inlinePolicies } from './policies.ts';

export interface DumpOptions {
  /** The active configuration, with its marked secrets redacted. */
  readonly config: Config;
  readonly redactor: Redactor;
  /** The port that is open for a gateway: another than configured when that is 0. */
  portOf(gateway: string): number | undefined;
  /** State of an LLM endpoint, by the path of its backend and its index; undefined if unknown. */
  endpointInfo(place: string, index: number): DumpEndpointInfo | undefined;
}

/**
 * `GET /config_dump` as pretty JSON of two spaces, in chunks: other work runs between two, and the complete
 * text is never in memory. Shape and order: `server/kernel/config-dump.ts`.
 */
export async function* writeConfigDump(options: DumpOptions): AsyncGenerator<string> {
  let piece = '';
  for (const text of dumpTexts(options)) {
    piece += text;
    if (piece.length < LIMITS.dumpChunkLength) continue;
    yield piece;
    piece = '';
    await nextTurn();
  }
  yield piece;
}

type ListenerRoute = readonly [listener: ListenerPlan, route: RoutePlan];

function* dumpTexts({ config, redactor, portOf, endpointInfo }: DumpOptions): Generator<string> {
  const plan = planGateways(config);
  const gateways = plan.gateways.toSorted(byKey);
  const routes: ListenerRoute[] = gateways.flatMap(({ listeners }) =>
    listeners.flatMap((listener) =>
      answeringRoutes(listener.routes).map((route): ListenerRoute => [listener, route]),
    ),
  );
  const redact: Redact = (value) => redactor.value(value);
  yield '{\n  "workloads": [],\n  "services": [],\n  "binds": ';
  yield* list(2, bindTexts(gateways, portOf, redact));
  yield ',\n  "routes": {\n    "httpMesh": {},\n    "tcpMesh": {},\n    "routeGroups": ';
  yield pretty(redact(dumpRouteGroups(plan)), 4);
  yield '\n  },\n  "policies": ';
  yield* list(2, jsonTexts(4, [...frontendPolicies(config), ...attachedPolicies(config)], redact));
  yield ',\n  "backends": ';
  yield* list(2, jsonTexts(4, uniqueBackends(routes, { config, endpointInfo }), redact));
  yield ',\n  "models": ';
  yield* list(2, jsonTexts(4, flatMapRoutes(routes, modelsOf), redact));
  yield `,\n  "version": ${pretty(dumpVersion(), 2)},\n  "config": ${pretty(redact(dumpSettings(config)), 2)}\n}`;
}

/** One text per bind, with its routes one by one, because a gateway may have thousands. */
function* bindTexts(
  gateways: readonly GatewayPlan[],
  portOf: DumpOptions['portOf'],
  redact: Redact,
): Generator<Generator<string>> {
  for (const gateway of gateways)
    yield (function* () {
      yield withoutClosingBrace(bindWithoutListeners(gateway, portOf(gateway.name) ?? gateway.port), 4);
      yield ',\n      "listeners": {';
      for (const [index, listener] of gateway.listeners.entries()) {
        yield `${index === 0 ? '' : ','}\n        ${JSON.stringify(listener.key)}: `;
        yield* listenerTexts(listener, redact);
      }
      yield '\n      }\n    }';
    })();
}

/** A copy without secrets. */
type Redact = <T>(value: T) => T;

function* listenerTexts(listener: ListenerPlan, redact: Redact): Generator<string> {
  yield withoutClosingBrace(redact(listenerWithoutRoutes(listener)), 8);
  if (listener.routes.length > 0) {
    yield ',\n          "routes": {';
    for (const [index, plan] of listener.routes.entries()) {
      const route = redact(dumpRoute(plan));
      yield `${index === 0 ? '' : ','}\n            ${JSON.stringify(route.key)}: ${pretty(route, 12)}`;
    }
    yield '\n          }';
  }
  yield '\n        }';
}

/** Several routes share a backend if a top-level section is on several gateways. */
function* uniqueBackends(
  routes: readonly ListenerRoute[],
  options: Pick<DumpOptions, 'config' | 'endpointInfo'>,
): Generator<object> {
  const seen = new Set<string>();
  for (const [, route] of routes) {
    for (const item of backendsOf(route, options)) {
      const [body] = Object.values(item.backend);
      const key = `${Object.keys(item.backend)[0]} ${body?.name}`;
      if (seen.has(key)) continue;
      seen.add(key);
      yield item;
    }
  }
}

function* backendsOf(
  { backends, isShortForm }: RoutePlan,
  { config, endpointInfo }: Pick<DumpOptions, 'config' | 'endpointInfo'>,
): Generator<DumpBackend> {
  for (const plan of backends)
    for (const { kind, settings, path } of knownBackends([plan]))
      yield* kind.dump(settings, {
        name: plan.name,
        isSection: isShortForm,
        sessionIdle: config.config.mcp.sessionTtl,
        endpoint: (index) => endpointInfo(path.join('.'), index),
        policies: inlinePolicies,
      });
}

/** Models of the top-level sections. */
function* modelsOf({ key }: ListenerPlan, { backends, isShortForm }: RoutePlan): Generator<DumpModel> {
  if (!isShortForm) return;
  for (const { kind, settings } of knownBackends(backends)) yield* kind.dumpModels?.(settings, key) ?? [];
}

function* flatMapRoutes<T>(
  routes: readonly ListenerRoute[],
  of: (listener: ListenerPlan, route: RoutePlan) => Iterable<T>,
): Generator<T> {
  for (const [listener, route] of routes) yield* of(listener, route);
}

function* jsonTexts(
  indent: number,
  values: Iterable<unknown>,
  redact: (value: unknown) => unknown,
): Generator<Iterable<string>> {
  for (const value of values) yield [pretty(redact(value), indent)];
}

/** A JSON list of items that are given in pieces. */
function* list(indent: number, items: Iterable<Iterable<string>>): Generator<string> {
  let isEmpty = true;
  yield '[';
  for (const item of items) {
    yield `${isEmpty ? '' : ','}\n${' '.repeat(indent + 2)}`;
    isEmpty = false;
    yield* item;
  }
  yield isEmpty ? ']' : `\n${' '.repeat(indent)}]`;
}

function pretty(value: unknown, indent: number): string {
  return JSON.stringify(value, null, 2).replaceAll('\n', `\n${' '.repeat(indent)}`);
}

/** An object without its closing brace, so that members can follow. */
function withoutClosingBrace(value: object, indent: number): string {
  return pretty(value, indent).slice(0, -indent - 2);
}

/** Compares keys as strings, because upstream sorts binds by their key, `bind/<port>`. */
function byKey(a: GatewayPlan, b: GatewayPlan): number {
  const [first, second] = [String(a.port), String(b.port)];
  return first === second ? 0 : first < second ? -1 : 1;
}

/** A bind without its listeners, which are written separately. `port` is the one that is open. */
function bindWithoutListeners(gateway: GatewayPlan, port: number): Readonly<Record<string, string>> {
  const host = gateway.address ?? '::';
  return {
    key: `bind/${port}`,
    address: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
    protocol: 'http',
    tunnelProtocol: gateway.isTunnel === true ? 'connect' : 'direct',
    mode: gateway.isInternal === true ? 'internal' : 'standard',
  };
}

/** A listener without its routes. */
function listenerWithoutRoutes({
  key,
  name,
  hostname = '*',
  protocol,
}: ListenerPlan): Readonly<Record<string, string>> {
  return {
    key,
    gatewayName: GATEWAY.name,
    gatewayNamespace: GATEWAY.namespace,
    listenerName: name,
    hostname,
    protocol,
  };
}

function dumpRoute({ fullKey, dumpName, namespace, config, backends, groups }: RoutePlan): DumpRoute {
  const { hostnames, matches, policies } = config;
  const shown = inlinePolicies(policies);
  return {
    key: fullKey,
    name: dumpName,
    namespace,
    ...(hostnames.length === 0 ? {} : { hostnames }),
    matches: (matches ?? [{ path: { pathPrefix: '/' }, headers: [], query: [] }]).map(dumpMatch),
    ...(backends.length + groups.length === 0
      ? {}
      : {
          backends: [
            ...backends.map(dumpReference),
            ...groups.map((group) => ({ weight: group.weight, routeGroup: group.name })),
          ],
        }),
    ...(shown.length === 0 ? {} : { inlinePolicies: shown }),
  };
}

/** Routes of groups by the name of the group and the key of the route, as the first route that delegates reaches them. */
function dumpRouteGroups({ gateways }: Plan): Record<string, Record<string, DumpRoute>> {
  const groups: Record<string, Record<string, DumpRoute>> = {};
  const collect = (routes: readonly RoutePlan[]): void => {
    for (const group of routes.flatMap((route) => route.groups)) {
      groups[group.name] ??= Object.fromEntries(
        group.routes.map((route) => [route.fullKey, dumpRoute(route)]),
      );
      collect(group.routes);
    }
  };
  for (const { listeners } of gateways) for (const { routes } of listeners) collect(routes);
  return groups;
}

/** Policies that the backend runs itself are among those of the reference; those of single models are with the models. */
function dumpReference(plan: BackendPlan): DumpBackendReference {
  const { weight, name, policies } = plan;
  const own = knownBackends([plan]).flatMap(({ kind, settings }) => kind.ownPolicies?.(settings) ?? []);
  const shown = [
    ...inlinePolicies(Object.fromEntries(policies.map(({ key, config }) => [key, config]))),
    ...own.flatMap(({ model, dump }) => (model === undefined ? [dump] : [])),
  ];
  return { weight, backend: `/${name}`, ...(shown.length === 0 ? {} : { inlinePolicies: shown }) };
}

function dumpMatch({ headers, path, method, query }: NonNullable<RouteConfig['matches']>[number]): DumpMatch {
  return {
    ...(headers.length === 0 ? {} : { headers }),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one of its members is set
    path: path as Record<string, string>,
    ...(method === undefined ? {} : { method }),
    ...(query.length === 0 ? {} : { query }),
  };
}

/** Clients of the dump expect upstream's keys for the compiler and the build; this program is not compiled to a binary. */
function dumpVersion(): DumpVersion {
  return {
    version: VERSION,
    git_revision: 'n/a',
    rust_version: 'n/a',
    build_profile: 'release',
    build_target: `node-${process.version}-${process.platform}-${process.arch}`,
  };
}

/** Settings of the process, in upstream's names; settings without a meaning here are omitted. */
function dumpSettings(whole: Config): Readonly<Record<string, unknown>> {
  const { config, frontendPolicies } = whole;
  const {
    logging,
    metrics,
    tracing,
    mcp,
    modelCatalog,
    session,
    connectionTerminationDeadline,
    workers: _workers,
    workerThreads: _workerThreads,
    ...others
  } = config;
  const { add, remove, filter } = frontendPolicies.accessLog;
  return {
    ipv6Enabled: true,
    terminationMaxDeadline: goDuration(connectionTerminationDeadline),
    numWorkerThreads: workerCount(whole),
    availableCpus: availableParallelism(),
    ...Object.fromEntries(Object.entries(others).map(([key, value]) => [key, addressOf(key, value)])),
    tracing: tracing.otlpEndpoint === undefined ? null : dumpTracing(tracing),
    metrics: { metric_fields: metrics.fields, excluded_metrics: metrics.remove },
    logging: {
      filter: filter ?? null,
      fields: { remove, add },
      level: logging.level,
      format: logging.format,
    },
    sessionEncoder: session.key === undefined ? 'process' : 'aes',
    mcp: {
      sessionTtl: goDuration(mcp.sessionTtl),
      maxSessions: mcp.maxSessions,
      maxChildren: mcp.maxChildren,
    },
    modelCatalog: { sources: modelCatalog },
  };
}

/** Upstream uses snake_case for some of these keys. */
function dumpTracing(tracing: Config['config']['tracing']): Readonly<Record<string, unknown>> {
  const { otlpEndpoint, otlpProtocol, headers, fields, randomSampling, clientSampling, path } = tracing;
  return {
    endpoint: otlpEndpoint,
    headers,
    protocol: otlpProtocol,
    fields,
    random_sampling: randomSampling,
    client_sampling: clientSampling,
    path,
  };
}

/**
 * Addresses are tagged values: `{"SocketAddr": "[::]:15020"}` for one address, `{"Localhost": [true, 15000]}` for both
 * loopback addresses, `{"UnixSocket": "/run/agctl.sock"}`, `"Off"`.
 */
function addressOf(key: string, value: unknown): unknown {
  const address = key.endsWith('Addr') && typeof value === 'string' ? parseListenAddress(value) : undefined;
  if (address === undefined) return value;
  if (address.kind === 'off') return 'Off';
  if (address.kind === 'unix') return { UnixSocket: address.path };
  const { hosts, port } = address;
  if (hosts.length > 1 && hosts.every(isLoopback)) return { Localhost: [true, port] };
  const [host = ''] = hosts;
  return { SocketAddr: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}` };
}
