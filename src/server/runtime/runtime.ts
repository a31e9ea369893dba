import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Diagnostic, inOrder, type Path } from '../../core/diagnostic.ts';
import type { Log } from '../../core/log.ts';
import type { Redactor } from '../../core/redact.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import { routeNames } from '../config/dump/names.ts';
import { lint } from '../config/lint.ts';
import { openLlmProblems } from '../config/open-llm.ts';
import { noPortProblem, ownPortProblems } from '../config/own-ports.ts';
import { type GatewayPlan, planGateways, type RoutePlan } from '../config/plan.ts';
import { redactorOf } from '../config/redact.ts';
import { shadowedProblem, shadowedRoutes } from '../config/route-shadowing.ts';
import type { Config } from '../config/schema.ts';
import type { Problem, RuntimeSettings, SecretNames } from '../kernel/compile-context.ts';
import type { Expression } from '../kernel/expression.ts';
import { Inspection } from '../kernel/inspection.ts';
import { LogReads } from '../kernel/log-reads.ts';
import type { Route } from '../kernel/request-context.ts';
import { createRouter, type Router } from '../kernel/router.ts';
import type { RequestValidation } from '../kernel/validate-request.ts';
import type { PriceCatalog } from '../llm/cost/catalog.ts';
import { loadCatalogs } from '../llm/cost/load.ts';
import { mcpProcessOf, setMcpProcess } from '../mcp/process.ts';
import { ChildSlots } from '../mcp/targets/child-slots.ts';
import { type AccessLogPolicy, compileAccessLogPolicy } from '../observe/access-log-policy.ts';
import { Metrics } from '../observe/metrics/metrics.ts';
import { compileMetricsPolicy } from '../observe/metrics/metrics-policy.ts';
import { compileTracing, type TracingSettings } from '../observe/otlp/settings.ts';
import { type ContextOptions, createContext, locate } from './compile-context.ts';
import { compileRoute } from './compile-route.ts';
import { ComponentCache } from './component-cache.ts';

/** One port as requests see it. */
export interface GatewayRuntime {
  readonly plan: GatewayPlan;
  readonly routes: readonly Route[];
  readonly router: Router<Route>;
  readonly admission: RequestValidation;
}

/** A whole configuration, compiled. Immutable: a reload builds a new one and closes what that has not taken over. */
export interface Runtime {
  /** As it serves: after a reload, the settings of the process are still those of the start. */
  readonly config: Config;
  readonly source: YamlSource;
  readonly parts: ComponentCache;
  readonly settings: RuntimeSettings;
  readonly gateways: readonly GatewayRuntime[];
  readonly accessLog: AccessLogPolicy;
  /** What expressions of the log, the metrics and the spans read. */
  readonly logReads: LogReads;
  readonly catalog: PriceCatalog;
  /** Names that the configuration gives to places of credentials. */
  readonly secretNames: SecretNames;
  /** Knows the secrets of the configuration by value; made when first asked for. */
  readonly redactor: () => Redactor;
  readonly metrics: Metrics;
  /** What its parts tell of themselves. */
  readonly inspection: Inspection;
  /** Undefined without a collector. */
  readonly tracing: TracingSettings | undefined;
  /** Files that were read for it, absolute: when one changes, it is to be compiled anew. */
  readonly files: readonly string[];
  /** Files that policies read again themselves, absolute, with who is to be told of a change. */
  readonly rereads: ReadonlyMap<string, readonly (() => void)[]>;
  /** Ends responses that wait for nothing in particular, before a stop. */
  drain(): void;
  close(): Promise<void>;
}

export interface CompileOptions {
  readonly config: Config;
  readonly source: YamlSource;
  readonly log: Log;
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What serves now: parts whose configuration has not changed are taken over. */
  readonly previous?: Runtime | undefined;
  /** Where in the file the thing at a path of `config` stands, when `config` is only what could be saved of it. */
  readonly written?: (path: Path) => Path;
}

/**
 * Turns a checked configuration into what serves requests. Opens no port and starts no process. Every problem is
 * returned, in the order of the text; with an error among them the runtime must not be used, only closed:
 * `runtime.parts.close(previous.parts)` after `previous` was given.
 */
export function compileRuntime({ config: loaded, previous, ...options }: CompileOptions): {
  runtime: Runtime;
  diagnostics: Diagnostic[];
} {
  const { source } = options;
  const config = previous === undefined ? loaded : withProcessOf(previous.config, loaded);
  const diagnostics: Diagnostic[] = [];
  const { gateways, detached, problems } = planGateways(config);
  problems.push(...ownPortProblems(gateways, config, source, options.env), ...openLlmProblems(gateways));
  // One that has no port to lose may stay without.
  if (gateways.length === 0 && problems.length === 0)
    problems.push(noPortProblem(previous !== undefined && previous.gateways.length > 0, source));
  const report = (path: Path, problem: Problem): void =>
    void diagnostics.push(locate(source, options.written?.(path) ?? path, problem));
  for (const { path, ...problem } of problems) report(path, problem);
  diagnostics.push(...lint(loaded, source));
  const inspection = new Inspection();
  const metrics = previous?.metrics ?? new Metrics(Object.keys(config.config.metrics.fields.add));
  const settings = runtimeSettings(config, metrics, previous?.settings);
  let known: Redactor | undefined;
  const redactor = (): Redactor => {
    known ??= redactorOf(source, options.env);
    return known;
  };
  const contextOptions: ContextOptions = {
    ...options,
    settings,
    redactor,
    inspection,
    report,
  };
  const parts = new ComponentCache(previous?.parts);
  const shared = compileShared(loaded, config, contextOptions, parts);
  if (previous === undefined) metrics.configure(shared.metricsPolicy);
  const { children } = mcpProcessOf(settings);
  inspection.bounds.push({ name: 'mcp.children', max: children.max, used: () => children.count });
  const readsRequestBody = shared.logReads.reads('request.body', 'request.bodyPrefix');
  const compiled = gateways.map((plan) => compileGateway(plan, contextOptions, parts, readsRequestBody));
  // Their mistakes are to be seen now, not after that of the gateway's name.
  for (const route of detached)
    compileRoute(route, detachedNames(route), contextOptions, parts, readsRequestBody);
  parts.compiled();
  return {
    runtime: {
      config,
      source,
      parts,
      settings,
      gateways: compiled,
      accessLog: shared.accessLog,
      logReads: shared.logReads,
      catalog: shared.catalog,
      metrics,
      tracing: shared.tracing,
      secretNames: settings.secretNames,
      redactor,
      inspection,
      files: catalogFiles(config, options.folder),
      rereads: rereadsOf(compiled),
      drain: () => parts.drain(),
      close: () => parts.close(),
    },
    diagnostics: inOrder(diagnostics),
  };
}

/** Names of a route that no gateway has. It serves nothing. */
function detachedNames({ key }: RoutePlan): { readonly key: string; backend(index: number): string } {
  const name = `detached/${key}`;
  return { key: name, backend: (index) => `${name}/backend${index}` };
}

function compileGateway(
  plan: GatewayPlan,
  options: ContextOptions,
  parts: ComponentCache,
  logReadsBody: boolean,
): GatewayRuntime {
  const routes = plan.routes.map((route) =>
    compileRoute(route, routeNames(plan, route), options, parts, logReadsBody),
  );
  for (const { route, by } of shadowedRoutes(routes)) {
    const { path, config, backendPath } = plan.routes[routes.indexOf(route)] as RoutePlan;
    const isConfigured = config.matches !== undefined && backendPath === undefined;
    const place = isConfigured ? [...path, 'matches', 0, 'path'] : path;
    options.report(place, shadowedProblem(route, by));
  }
  return { plan, routes, router: createRouter(routes), admission: options.settings.requestValidation };
}

/** The settings of the process are those of the start, but for the price catalogs. */
function withProcessOf({ config }: Config, loaded: Config): Config {
  return { ...loaded, config: { ...config, modelCatalog: loaded.config.modelCatalog } };
}

/** What all routes share. */
function compileShared(loaded: Config, config: Config, options: ContextOptions, parts: ComponentCache) {
  const expressions: Expression[] = [];
  const site = (...path: string[]) => ({ options, path, hostnames: NO_NAMES, expressions });
  const context = (...path: string[]) => createContext(options, path, NO_NAMES, expressions);
  const { tracing } = parts.get(
    'tracing',
    [config.config.tracing, config.frontendPolicies.tracing],
    site(),
    (inside) => ({ tracing: compileTracing(config, inside) }),
  );
  // A catalog can be large: one whose files are as they were is not read again.
  const { catalog } = parts.get(
    'modelCatalog',
    [config.config.modelCatalog, catalogFiles(config, options.folder).map(signature)],
    site('config', 'modelCatalog'),
    (inside) => ({ catalog: loadCatalogs(config.config.modelCatalog, inside) }),
  );
  // Compiled from the file even where it is too late for it: its mistakes are to be seen now.
  const metricsPolicy = compileMetricsPolicy(loaded.config.metrics, context('config', 'metrics'));
  const accessLog = compileAccessLogPolicy(
    config.frontendPolicies.accessLog,
    context('frontendPolicies', 'accessLog'),
  );
  return { tracing, catalog, metricsPolicy, accessLog, logReads: new LogReads(expressions) };
}

const NO_NAMES: ReadonlySet<string> = new Set();

function catalogFiles({ config }: Config, folder: string): string[] {
  return config.modelCatalog.flatMap((entry) => ('file' in entry ? [resolve(folder, entry.file)] : []));
}

/** Another one when the file is another one, or was written. */
function signature(file: string): string {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? '' : `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`;
}

function rereadsOf(gateways: readonly GatewayRuntime[]): Map<string, (() => void)[]> {
  const all = new Map<string, (() => void)[]>();
  for (const { routes } of gateways)
    for (const { policies } of routes)
      for (const { rereads } of policies)
        if (rereads !== undefined) all.set(rereads.file, [...(all.get(rereads.file) ?? []), rereads.changed]);
  return all;
}

function runtimeSettings(
  { config, frontendPolicies }: Config,
  metrics: Metrics,
  previous: RuntimeSettings | undefined,
): RuntimeSettings {
  const own = {
    secretNames: { headers: new Set<string>(), parameters: new Set<string>() },
    maxBufferSize: frontendPolicies.http.maxBufferSize,
  };
  if (previous !== undefined) return { ...previous, ...own };
  const settings: RuntimeSettings = {
    slots: undefined,
    requestValidation: config.http,
    callMeter: (kind, subtype) => metrics.calls(kind, subtype),
    counter: (name) => (labels) => metrics.families[name].with(labels).inc(),
    ...own,
  };
  setMcpProcess(settings, {
    sessionKey: config.session.key === undefined ? randomBytes(32) : Buffer.from(config.session.key, 'hex'),
    sessionIdle: config.mcp.sessionTtl,
    maxSessions: config.mcp.maxSessions,
    children: new ChildSlots(config.mcp.maxChildren),
  });
  return settings;
}
