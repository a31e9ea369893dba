import { type Diagnostic, inOrder, type Path } from '../../core/diagnostic.ts';
import type { Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { Redactor } from '../../core/redact.ts';
import type { Environment } from '../../core/yaml/env.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import { auditOf } from '../audit/audit.ts';
import { spendingOf } from '../budgets/spending.ts';
import { auditFileProblems } from '../config/audit-file.ts';
import { foundSecrets, isInHeaders } from '../config/found-secrets.ts';
import { lint } from '../config/lint.ts';
import { openBackendProblems } from '../config/open-backends.ts';
import { noPortProblem, ownPortProblems } from '../config/own-ports.ts';
import { pathParameterProblems } from '../config/path-parameter-rules.ts';
import { type GatewayPlan, routesOf } from '../config/plan/plan.ts';
import { planGateways } from '../config/plan/plan-gateways.ts';
import { redactorOf } from '../config/redact.ts';
import type { Config } from '../config/schema.ts';
import { signInProblems } from '../config/sign-in-pages.ts';
import { unmatchedModelProblems } from '../config/unmatched-models.ts';
import { workerProblems } from '../config/workers.ts';
import type { GatewayDatabase } from '../database/gateway-database.ts';
import type { Problem, RuntimeSettings, SecretNames } from '../kernel/compile-context.ts';
import type { ReloadedFile } from '../kernel/files/reloaded-file.ts';
import { Inspection } from '../kernel/inspection.ts';
import type { ClientConnection } from '../kernel/request/client-connection.ts';
import { canonicalName } from '../kernel/request/request-target.ts';
import type { RequestValidation } from '../kernel/request/validate-request.ts';
import { createListenerSelection, type ListenerSelection } from '../kernel/routing/listener-selection.ts';
import type { Listener } from '../kernel/routing/route.ts';
import { sharedStore } from '../kernel/shared-store.ts';
import type { PriceCatalog } from '../llm/cost/catalog.ts';
import { mcpProcessOf } from '../mcp/process.ts';
import type { AccessLogPolicy } from '../observe/access-log.ts';
import { Metrics } from '../observe/metrics/metrics.ts';
import type { AccessLogExport } from '../observe/otlp/access-log-export.ts';
import type { MetricsExport } from '../observe/otlp/metrics-export.ts';
import type { TracingSettings } from '../observe/otlp/settings.ts';
import type { RecordPolicy } from '../record/policy.ts';
import { type ConnectionSettings, connectionSettings } from '../transport/connection-settings.ts';
import type { TlsDefaults } from '../transport/tls/server-tls.ts';
import { TrustedProxies } from '../transport/trusted-proxies.ts';
import { namedBackends } from './compile-backend.ts';
import { type ContextOptions, locate } from './compile-context.ts';
import { type CompiledEntrance, compileEntrance } from './compile-entrance.ts';
import { compileListener } from './compile-listener.ts';
import { compileRoute } from './compile-route.ts';
import { catalogFiles, compileShared } from './compile-shared.ts';
import { ComponentCache } from './component-cache.ts';
import type { LogReads } from './log-reads.ts';
import { databaseOf, runtimeSettings, type Sharing } from './runtime-settings.ts';
import { createSharedStore } from './shared-store.ts';
import { unpricedProblems } from './unpriced-models.ts';
import { UnreachedRoutes } from './unreached-routes.ts';

/** A compiled gateway: one port with its listeners. */
export interface GatewayRuntime {
  readonly plan: GatewayPlan;
  readonly listeners: readonly Listener[];
  readonly listenerOf: ListenerSelection;
  readonly requestValidation: RequestValidation;
  /** How connections reach each of the listeners. */
  readonly entrances: readonly CompiledEntrance[];
}

/** A compiled configuration. Immutable: a reload builds a new one and closes the components that it does not reuse. */
export interface Runtime {
  /** The active configuration. After a reload, process settings (`config`) still have their values from startup. */
  readonly config: Config;
  readonly source: YamlSource;
  /** The variables that it was compiled with. */
  readonly env: Environment;
  readonly components: ComponentCache;
  readonly settings: RuntimeSettings;
  readonly gateways: readonly GatewayRuntime[];
  readonly accessLog: AccessLogPolicy;
  /** Undefined if no collector is configured. */
  readonly accessLogExport: AccessLogExport | undefined;
  readonly metricsExport: MetricsExport | undefined;
  /** How requests are recorded in the database. Undefined if there is none. */
  readonly record: RecordPolicy | undefined;
  /** What expressions of the access log, metrics and spans read. */
  readonly logReads: LogReads;
  readonly catalog: PriceCatalog;
  /** Configured names of headers and query parameters that carry credentials. */
  readonly secretNames: SecretNames;
  /** Removes the secrets of the configuration from text. Created on first use. */
  readonly redactor: () => Redactor;
  readonly metrics: Metrics;
  /** That of `config.database`. A reload keeps it; the gateway opens and closes it. */
  readonly database: GatewayDatabase | undefined;
  /** State that its components report. */
  readonly inspection: Inspection;
  readonly connections: ConnectionSettings;
  /** Returns whether a client may connect. */
  readonly admits: ((client: ClientConnection) => boolean) | undefined;
  /** Asks a service whether a client may connect; `gone` is aborted if it leaves before. */
  readonly authorizes: ((client: ClientConnection, gone: AbortSignal) => Promise<boolean>) | undefined;
  /** Undefined if there are none. */
  readonly trustedProxies: TrustedProxies | undefined;
  /** Undefined if no collector is configured. */
  readonly tracing: TracingSettings | undefined;
  /** Absolute paths of the files that it was compiled from: a change requires a reload. */
  readonly files: readonly string[];
  /** Absolute paths of files that policies reload themselves, with the functions to call after a change. */
  readonly reloadedFiles: ReadonlyMap<string, readonly ReloadedFile['changed'][]>;
  /**
   * What takes time before the first request: loads the code that the configuration names. Returns all problems. Called once,
   * by whoever is going to serve the runtime.
   */
  prepare(): Promise<readonly Diagnostic[]>;
  /** Ends idle streams before a shutdown. */
  drain(): void;
  close(): Promise<void>;
}

export interface CompileOptions {
  readonly config: Config;
  readonly source: YamlSource;
  readonly log: Log;
  readonly folder: string;
  readonly env: Environment;
  /** The active runtime: its components are reused if their configuration has not changed. */
  readonly previous?: Runtime | undefined;
  /** Maps a path of `config` to a path of the file, if `config` was partially recovered. */
  readonly sourcePath?: (path: Path) => Path;
  /** What the workers of a gateway share, if there are several. A reload keeps it. */
  readonly sharing?: Sharing | undefined;
  /** Whether problems of severity `note` are wanted. */
  readonly withNotes?: boolean;
  /** Policies that the configuration may name. A reload keeps them. */
  readonly policies?: readonly unknown[] | undefined;
  /** Limits that differ from `LIMITS`, for tests. A reload keeps those of the previous runtime. */
  readonly limits?: Partial<Limits>;
}

/**
 * Compiles a validated configuration. Opens no port and starts no process. Returns all problems, sorted by their position
 * in the file. If one of them is an error, the runtime must not be used, only closed:
 * `runtime.components.close(previous.components)` after `previous` was given.
 */
export function compileRuntime({ config: loaded, previous, ...options }: CompileOptions): {
  runtime: Runtime;
  diagnostics: Diagnostic[];
} {
  const { source } = options;
  const config = previous === undefined ? loaded : withProcessOf(previous.config, loaded);
  const diagnostics: Diagnostic[] = [];
  const { gateways, detached, named, problems } = planGateways(config);
  problems.push(
    ...ownPortProblems(gateways, config, source, options.env),
    ...openBackendProblems(gateways),
    ...unmatchedModelProblems(gateways),
    ...signInProblems(gateways, config),
    ...pathParameterProblems(gateways, config.config.http.pathNormalization),
    ...workerProblems(config),
    ...auditFileProblems(config, options.folder),
  );
  // Without ports before the reload, none are lost.
  if (gateways.length === 0 && problems.length === 0)
    problems.push(noPortProblem(previous !== undefined && previous.gateways.length > 0, source));
  const report = (path: Path, problem: Problem): void => {
    if (problem.severity === 'note' && options.withNotes !== true) return;
    diagnostics.push(locate(source, options.sourcePath?.(path) ?? path, problem));
  };
  for (const { path, ...problem } of problems) report(path, problem);
  diagnostics.push(...lint(source));
  const trusted = config.config.http.trustedProxies;
  const inspection = new Inspection();
  const { histograms, metrics: naming } = config.config;
  const metrics = previous?.metrics ?? new Metrics(Object.keys(naming.fields.add), naming.prefix, histograms);
  const database = previous === undefined ? databaseOf(config, options) : previous.database;
  const settings = runtimeSettings(loaded, config, metrics, database, previous?.settings, options);
  for (const { path } of foundSecrets(source, options.env))
    if (isInHeaders(path)) settings.secretNames.headers.add(String(path.at(-1)).toLowerCase());
  const redactor = lazyRedactor(source, options.env, settings.secretNames.values);
  const files = new Set(catalogFiles(config, options.folder));
  const contextOptions: ContextOptions = {
    ...options,
    dependsOn: (file) => void files.add(file),
    settings,
    redactor,
    inspection,
    report,
    hostnamesOf: hostnamesOfBackends(gateways),
    backend: (name) => backend(name),
  };
  if (previous === undefined) createSharedStore(config.config.shared, contextOptions);
  const components = new ComponentCache(previous?.components);
  const backend = namedBackends(named, contextOptions, components);
  const { metricsPolicy, ...shared } = compileShared(loaded, config, contextOptions, components);
  for (const { path, ...problem } of unpricedProblems(gateways, shared.catalog)) report(path, problem);
  if (previous === undefined) metrics.configure(metricsPolicy);
  const { children } = mcpProcessOf(settings);
  inspection.bounds.push({ name: 'mcp.children', max: children.max, used: () => children.count });
  const readsRequestBody = shared.logReads.reads('request.body', 'request.bodyPrefix');
  const { tls } = config.frontendPolicies;
  const compiled = compileGateways(gateways, contextOptions, components, readsRequestBody, tls);
  // Compiled for their problems, which are reported together with that of the gateway's name.
  for (const route of detached) compileRoute(route, [], contextOptions, components, readsRequestBody);
  reportUnused(named, components, report);
  components.compiled();
  return {
    runtime: {
      config,
      source,
      env: options.env,
      components,
      settings,
      gateways: compiled,
      ...shared,
      metrics,
      database,
      connections: connectionSettings(config.frontendPolicies.http, config.frontendPolicies.tcp),
      trustedProxies: trusted.length === 0 ? undefined : new TrustedProxies(trusted),
      secretNames: settings.secretNames,
      redactor,
      inspection,
      get files() {
        return [...files];
      },
      reloadedFiles: reloadedFilesOf(compiled),
      prepare: async () => {
        await components.prepare(contextOptions);
        return inOrder(diagnostics);
      },
      drain: () => components.drain(),
      close: () => closed(components, settings),
    },
    diagnostics: inOrder(diagnostics),
  };
}

async function closed(components: ComponentCache, settings: RuntimeSettings): Promise<void> {
  await components.close();
  await spendingOf.get(settings)?.close();
  await auditOf.get(settings)?.close();
  await sharedStore.get(settings)?.close();
}

/** Compiles a configuration that is going to be served, and prepares it if it has no errors. As `compileRuntime` otherwise. */
export async function buildRuntime(options: CompileOptions): Promise<ReturnType<typeof compileRuntime>> {
  const compiled = compileRuntime(options);
  if (compiled.diagnostics.some(({ severity }) => severity === 'error')) return compiled;
  return { runtime: compiled.runtime, diagnostics: [...(await compiled.runtime.prepare())] };
}

/** Created on first use, and again once more credentials have been read from files. */
function lazyRedactor(source: YamlSource, env: Environment, values: ReadonlySet<string>): () => Redactor {
  let known: Redactor | undefined;
  let size = 0;
  return () => {
    if (known === undefined || size !== values.size) known = redactorOf(source, env, values);
    size = values.size;
    return known;
  };
}

/** Warns of top-level backends that no component was compiled for. */
function reportUnused(
  named: Parameters<typeof namedBackends>[0],
  components: ComponentCache,
  report: ContextOptions['report'],
): void {
  for (const { id, name, path } of named.values())
    if (!components.has(id))
      report([...path, 'name'], {
        code: 'AGW0303',
        message: `nothing refers to the backend \`${name}\``,
        help: `write \`backend: ${name}\` as a backend of a route, or remove it`,
      });
}

const NO_NAMES: ReadonlySet<string> = new Set();

/** The literal host names of all routes that share a top-level backend, by its id. */
function hostnamesOfBackends(gateways: readonly GatewayPlan[]): ContextOptions['hostnamesOf'] {
  const names = new Map<string, Set<string>>();
  for (const { config, backends } of gateways.flatMap(routesOf))
    for (const { id, reference } of backends) {
      if (reference === undefined) continue;
      const known = names.get(id) ?? new Set();
      for (const hostname of config.hostnames)
        if (!hostname.startsWith('*')) known.add(canonicalName(hostname));
      names.set(id, known);
    }
  return ({ id }) => names.get(id) ?? NO_NAMES;
}

function compileGateways(
  plans: readonly GatewayPlan[],
  options: ContextOptions,
  components: ComponentCache,
  logReadsBody: boolean,
  tls: TlsDefaults | undefined,
): GatewayRuntime[] {
  const unreached = new UnreachedRoutes();
  const compiled = plans.map((plan) =>
    compileGateway(plan, options, components, logReadsBody, unreached, tls),
  );
  unreached.report(options.report);
  return compiled;
}

function compileGateway(
  plan: GatewayPlan,
  options: ContextOptions,
  components: ComponentCache,
  logReadsBody: boolean,
  unreached: UnreachedRoutes,
  tls: TlsDefaults | undefined,
): GatewayRuntime {
  const hosted = plan.listeners.map((listener) => ({
    hostname: listener.hostname,
    listener: compileListener(listener, options, components, logReadsBody, unreached),
  }));
  return {
    plan,
    listeners: hosted.map(({ listener }) => listener),
    listenerOf: createListenerSelection(hosted),
    requestValidation: options.settings.requestValidation,
    entrances: plan.listeners.map((listener) => compileEntrance(listener, tls, options, components)),
  };
}

/** Process settings keep their values from startup, except the price catalogs and the roles of the admin server. */
function withProcessOf({ config }: Config, loaded: Config): Config {
  const { modelCatalog, adminRoles } = loaded.config;
  return { ...loaded, config: { ...config, modelCatalog, adminRoles } };
}

function reloadedFilesOf(gateways: readonly GatewayRuntime[]): Map<string, ReloadedFile['changed'][]> {
  const all = new Map<string, ReloadedFile['changed'][]>();
  const policies = gateways
    .flatMap(({ listeners }) => listeners)
    .flatMap((listener) => [
      ...listener.policies,
      ...listener.routes.flatMap((route) => [
        ...route.policies,
        ...route.backends.flatMap((backend) => backend.policies),
      ]),
    ]);
  const add = ({ file, changed }: ReloadedFile): void =>
    void all.set(file, [...(all.get(file) ?? []), changed]);
  for (const { reloads = [] } of policies) for (const file of reloads) add(file);
  for (const { entrances } of gateways)
    for (const { tls } of entrances) for (const file of tls?.reloads ?? []) add(file);
  return all;
}
