import { randomBytes } from 'node:crypto';
import type { Diagnostic } from '../core/diagnostic.ts';
import type { Log } from '../core/log.ts';
import type { Redactor } from '../core/redact.ts';
import { withoutSecrets } from '../core/schema/redacted.ts';
import type { YamlSource } from '../core/yaml/source.ts';
import type { Backend, BackendKind } from './backend.ts';
import { backendKinds } from './backends.ts';
import type { Expression } from './cel/expression.ts';
import {
  type CompileContext,
  type ContextOptions,
  createContext,
  locate,
  type RuntimeSettings,
} from './compile-context.ts';
import { lint } from './config/lint.ts';
import { compileMatches } from './config/match.ts';
import { type GatewayPlan, planGateways, type RoutePlan } from './config/plan.ts';
import { redactorOf } from './config/redact.ts';
import type { Config } from './config/schema.ts';
import { routeNames } from './config-dump/names.ts';
import type { Route } from './http/pipeline.ts';
import { shadowedProblem, shadowedRoutes } from './http/route-shadowing.ts';
import { createRouter, type RequestMatcher, type Router } from './http/router.ts';
import { Inspection } from './inspection.ts';
import type { PriceCatalog } from './llm/cost/catalog.ts';
import { loadCatalogs } from './llm/cost/load.ts';
import { type AccessLogPolicy, compileAccessLogPolicy } from './observe/access-log-policy.ts';
import { Metrics } from './observe/metrics/metrics.ts';
import { compileMetricsPolicy } from './observe/metrics/metrics-policy.ts';
import { compileTracing, type TracingSettings } from './observe/otlp/settings.ts';
import type { SecretNames } from './observe/trace/state.ts';
import { policyKinds } from './policies/index.ts';
import type { Policy, PolicyKind } from './policy.ts';

/** One port as requests see it. */
export interface GatewayRuntime {
  readonly plan: GatewayPlan;
  readonly routes: readonly Route[];
  readonly router: Router<Route>;
}

/** A whole configuration, compiled. Immutable: a reload builds a new one and closes this. */
export interface Runtime {
  readonly gateways: readonly GatewayRuntime[];
  readonly accessLog: AccessLogPolicy;
  readonly catalog: PriceCatalog;
  /** Names that the configuration gives to places of credentials. */
  readonly secretNames: SecretNames;
  /** Knows the secrets of the configuration by value; made when a request is first watched. */
  readonly redactor: () => Redactor;
  readonly metrics: Metrics;
  /** What its parts tell of themselves. */
  readonly inspection: Inspection;
  /** Undefined without a collector. */
  readonly tracing: TracingSettings | undefined;
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
}

/**
 * Turns a checked configuration into what serves requests. Opens no port and starts no process. Every problem
 * is returned; with an error among them the runtime must not be used, only closed.
 */
export function compileRuntime({ config, ...options }: CompileOptions): {
  runtime: Runtime;
  diagnostics: Diagnostic[];
} {
  const diagnostics: Diagnostic[] = [];
  const { gateways, problems } = planGateways(config);
  for (const { path, ...problem } of problems) diagnostics.push(locate(options.source, path, problem));
  diagnostics.push(...lint(config, options.source));
  const inspection = new Inspection();
  const metrics = new Metrics(Object.keys(config.config.metrics.fields.add));
  const settings = runtimeSettings(config, metrics);
  const contextOptions = { ...options, diagnostics, settings, inspection };
  metrics.configure(
    compileMetricsPolicy(
      config.config.metrics,
      createContext(contextOptions, ['config', 'metrics'], new Set(), []),
    ),
  );
  const { children } = settings;
  inspection.bounds.push({ name: 'mcp.children', max: children.max, used: () => children.count });
  const tracing = compileTracing(config, createContext(contextOptions, [], new Set(), []));
  const logContext = createContext(contextOptions, ['frontendPolicies', 'accessLog'], new Set(), []);
  const accessLog = compileAccessLogPolicy(config.frontendPolicies.accessLog, logContext);
  const catalog = loadCatalogs(
    config.config.modelCatalog,
    createContext(contextOptions, ['config', 'modelCatalog'], new Set(), []),
  );
  const closers: (() => unknown)[] = [];
  const compiled = gateways.map((plan): GatewayRuntime => {
    const routes = plan.routes.map((route) =>
      compileRoute(route, routeNames(plan, route).key, contextOptions, closers, accessLog.readsRequestBody),
    );
    for (const { route, by } of shadowedRoutes(routes)) {
      const { path, config: own, backendPath } = plan.routes[routes.indexOf(route)] as RoutePlan;
      const isConfigured = own.matches !== undefined && backendPath === undefined;
      const place = isConfigured ? [...path, 'matches', 0, 'path'] : path;
      diagnostics.push(locate(options.source, place, shadowedProblem(route, by)));
    }
    return { plan, routes, router: createRouter(routes) };
  });
  const close = async (): Promise<void> => {
    await Promise.all(closers.splice(0).map((closer) => closer()));
  };
  const drain = (): void => {
    for (const { routes } of compiled)
      for (const { backends } of routes) for (const { backend } of backends) backend.drain?.();
  };
  const { secretNames } = settings;
  let known: Redactor | undefined;
  const redactor = (): Redactor => {
    known ??= redactorOf(options.source, options.env);
    return known;
  };
  return {
    runtime: {
      gateways: compiled,
      accessLog,
      catalog,
      metrics,
      tracing,
      secretNames,
      redactor,
      inspection,
      drain,
      close,
    },
    diagnostics,
  };
}

function compileRoute(
  { key, name, config, path, backendPath }: RoutePlan,
  fullKey: string,
  options: ContextOptions,
  closers: (() => unknown)[],
  logReadsBody: boolean,
): Route {
  const hostnames = config.hostnames.map((hostname) => hostname.toLowerCase());
  const literal = new Set(hostnames.filter((hostname) => !hostname.startsWith('*')));
  const expressions: Expression[] = [];
  const context = createContext(options, path, literal, expressions);
  const policies = compilePolicies(config.policies, context, closers);
  for (const policy of policies) for (const hostname of policy.hostnames ?? []) literal.add(hostname);
  const ownPaths = policies
    .flatMap(({ paths }) => paths ?? [])
    .map((value): RequestMatcher => ({ path: { kind: 'exact', value }, headers: [], query: [] }));
  // Policies only: a webhook header that reads a missing token is left out, which may be wanted.
  const readsToken = expressions.some(({ roots }) => roots.has('jwt'));
  if (readsToken && config.policies?.mcpAuthentication === undefined) {
    context.report({
      code: 'AGW0301',
      severity: 'warning',
      message: `route \`${name}\` reads \`jwt\`, but nothing on it validates a token`,
      help: 'add the policy `mcpAuthentication`; until then `jwt` is null',
    });
  }
  const backends = config.backends.flatMap(({ weight, ...kinds }, index) => {
    const at =
      backendPath === undefined
        ? context.at('backends', index)
        : createContext(options, backendPath, literal, expressions);
    const backend = openBackend(kinds, at, backendPath === undefined);
    if (backend === undefined) return [];
    closers.push(() => backend.close());
    return weight === 0 ? [] : [{ weight, backend }];
  });
  if (config.backends.length === 0 && config.policies?.directResponse === undefined) {
    context.report({
      code: 'AGW0103',
      message: `route \`${name}\` has no backend`,
      help: 'add `backends:` with one entry, or the policy `directResponse`',
    });
  }
  return {
    key,
    fullKey,
    name,
    place: context.place(),
    hostnames,
    matches: [...compileMatches(config.matches, context), ...ownPaths],
    policies,
    wrappers: policies.filter(({ around }) => around !== undefined),
    readsBody:
      logReadsBody ||
      expressions.some(
        (expression) => expression.reads('request.body') || expression.reads('request.bodyPrefix'),
      ),
    isLlm: config.backends.some(({ llm }) => llm !== undefined),
    maxBufferSize: options.settings.maxBufferSize,
    backends,
  };
}

function compilePolicies(
  config: object | undefined,
  context: CompileContext,
  closers: (() => unknown)[],
): Policy[] {
  return (policyKinds as unknown as readonly PolicyKind[]).flatMap((kind): Policy[] => {
    const settings = (config as Readonly<Record<string, unknown>> | undefined)?.[kind.key];
    if (settings === undefined) return [];
    const at = context.at('policies', kind.key);
    const origin = { place: at.place(), shown: withoutSecrets(kind.schema, settings) };
    const policy: Policy = { key: kind.key, origin, ...kind.compile(settings, at) };
    if (policy.close !== undefined) closers.push(() => policy.close?.());
    return [policy];
  });
}

function openBackend(
  kinds: Readonly<Record<string, unknown>>,
  context: CompileContext,
  isNested: boolean,
): Backend | undefined {
  const present = (backendKinds as readonly BackendKind[]).filter(({ key }) => kinds[key] !== undefined);
  const [kind] = present;
  if (present.length !== 1 || kind === undefined) {
    context.report({
      code: 'AGW0105',
      message: present.length === 0 ? 'the backend is empty' : 'the backend has more than one kind',
      label: `expected exactly one of ${backendKinds.map(({ key }) => `\`${key}\``).join(', ')}`,
    });
    return undefined;
  }
  return kind.open(kinds[kind.key], isNested ? context.at(kind.key) : context);
}

function runtimeSettings({ config, frontendPolicies }: Config, metrics: Metrics): RuntimeSettings {
  return {
    metrics,
    sessionKey: config.session.key === undefined ? randomBytes(32) : Buffer.from(config.session.key, 'hex'),
    sessionIdle: config.mcp.sessionTtl,
    maxSessions: config.mcp.maxSessions,
    children: { max: config.mcp.maxChildren, count: 0 },
    secretNames: { headers: new Set(), parameters: new Set() },
    maxBufferSize: frontendPolicies.http.maxBufferSize,
  };
}
