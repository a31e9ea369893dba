import { withoutSecrets } from '../../core/schema/secrets.ts';
import type { RouteNames } from '../config/dump/names.ts';
import type { RoutePlan } from '../config/plan.ts';
import { backendKinds, policyKinds } from '../features.ts';
import type { BackendKind } from '../kernel/backend.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Expression } from '../kernel/expression.ts';
import { compileMatches } from '../kernel/match.ts';
import type { PolicyKind } from '../kernel/policy.ts';
import type { Backend, ClientApi, Policy, RequestMatcher, Route } from '../kernel/request-context.ts';
import { canonicalName } from '../kernel/request-target.ts';
import { type ContextOptions, createContext } from './compile-context.ts';
import type { ComponentCache } from './component-cache.ts';

/** Compiles one route. Its policies and backends become components, or are reused from the active configuration. */
export function compileRoute(
  { key, name, config, path, backendPath }: RoutePlan,
  { key: fullKey, backend: backendName }: Pick<RouteNames, 'key' | 'backend'>,
  options: ContextOptions,
  components: ComponentCache,
  logReadsBody: boolean,
): Route {
  const hostnames = config.hostnames.map(canonicalName);
  const literal = new Set(hostnames.filter((hostname) => !hostname.startsWith('*')));
  const expressions: Expression[] = [];
  const context = createContext(options, path, literal, expressions);
  const policies = compilePolicies(config.policies, context, {
    options,
    fullKey,
    components,
    hostnames: literal,
    expressions,
  });
  for (const policy of policies)
    for (const hostname of policy.hostnames ?? []) literal.add(canonicalName(hostname));
  const ownPaths = policies
    .flatMap(({ paths }) => paths ?? [])
    .map((value): RequestMatcher => ({ path: { kind: 'exact', value }, headers: [], query: [] }));
  // Before backends are compiled: a webhook header that reads a missing token is omitted, which may be intended.
  checkPolicies(name, config, expressions, context);
  const backends = config.backends.flatMap(({ weight, ...kinds }, index) => {
    const at = backendPath ?? [...path, 'backends', index];
    const site = { options, path: at, hostnames: literal, expressions };
    // The host names are inputs because the DNS rebinding protection of the MCP backend allows them.
    const backend = components.get(
      `${fullKey}/backend${index}`,
      [kinds, [...literal].sort()],
      site,
      (inside) => openBackend(kinds, inside, `${fullKey}/backend${index}`, backendPath === undefined),
    );
    return weight === 0 || backend === NO_BACKEND
      ? []
      : [{ weight, backend, name: `/${backendName(index)}` }];
  });
  if (config.backends.length === 0 && !isAnsweredByPolicy(config)) {
    context.report({
      code: 'AGW0103',
      message: `route \`${name}\` has no backend`,
      help: 'add `backends:` with one entry, or the policy `directResponse`',
    });
  }
  const decidesByBody = expressions.some(
    (expression) => expression.reads('request.body') || expression.reads('request.bodyPrefix'),
  );
  return {
    key,
    fullKey,
    name,
    place: context.place(),
    hostnames,
    matches: [...compileMatches(config.matches, context), ...ownPaths],
    policies,
    aroundPolicies: policies.filter(({ around }) => around !== undefined),
    readsBody: logReadsBody || decidesByBody,
    decidesByBody,
    api: apiOf(config.backends),
    maxBufferSize: options.settings.maxBufferSize,
    backends,
  };
}

/** The API of the first backend that has one: all clients of a route use the same API. */
function apiOf(backends: readonly Readonly<Record<string, unknown>>[]): ClientApi | undefined {
  const kinds = backendKinds as readonly BackendKind[];
  return kinds.find(
    ({ key, api }) => api !== undefined && backends.some((backend) => backend[key] !== undefined),
  )?.api;
}

function isAnsweredByPolicy({ policies = {} }: RoutePlan['config']): boolean {
  const configured = policies as Readonly<Record<string, unknown>>;
  const kinds = policyKinds as unknown as readonly PolicyKind[];
  return kinds.some(({ key, answersAll }) => answersAll === true && configured[key] !== undefined);
}

/** Warns about policies without effect, and about variables that expressions read but no policy of the route sets. */
function checkPolicies(
  name: string,
  { policies = {}, backends, matches }: RoutePlan['config'],
  expressions: readonly Expression[],
  context: CompileContext,
): void {
  const configured = policies as Readonly<Record<string, unknown>>;
  const kinds = policyKinds as unknown as readonly PolicyKind[];
  for (const { key, sets } of kinds)
    if (
      sets !== undefined &&
      configured[key] === undefined &&
      expressions.some((each) => sets.isReadBy(each))
    )
      context.report(sets.missingFrom(name));
  for (const { key, checkRoute } of kinds)
    if (checkRoute !== undefined && configured[key] !== undefined)
      checkRoute(configured[key], { name, backends, matches }, context.at('policies', key));
}

interface RouteScope {
  readonly options: ContextOptions;
  readonly fullKey: string;
  readonly components: ComponentCache;
  readonly hostnames: ReadonlySet<string>;
  readonly expressions: Expression[];
}

function compilePolicies(
  config: object | undefined,
  context: CompileContext,
  { components, fullKey, ...shared }: RouteScope,
): Policy[] {
  return (policyKinds as unknown as readonly PolicyKind[]).flatMap((kind): Policy[] => {
    const settings = (config as Readonly<Record<string, unknown>> | undefined)?.[kind.key];
    if (settings === undefined) return [];
    const at = context.at('policies', kind.key);
    const origin = { place: at.place(), shown: withoutSecrets(kind.schema, settings) };
    const compiled = components.get(
      `${fullKey}/${kind.key}`,
      settings,
      { ...shared, path: at.path },
      (inside) => kind.compile(settings, inside),
    );
    return [{ key: kind.key, ...(kind.trace && { trace: kind.trace }), origin, ...compiled }];
  });
}

/** Placeholder for an invalid backend, until the configuration is rejected. */
const NO_BACKEND: Backend = {
  handle: () => Promise.reject(new Error('not configured')),
  close: () => Promise.resolve(),
};

function openBackend(
  kinds: Readonly<Record<string, unknown>>,
  context: CompileContext,
  name: string,
  isNested: boolean,
): Backend {
  const present = (backendKinds as readonly BackendKind[]).filter(({ key }) => kinds[key] !== undefined);
  const [kind] = present;
  if (present.length !== 1 || kind === undefined) {
    context.report({
      code: 'AGW0105',
      message: present.length === 0 ? 'the backend is empty' : 'the backend has more than one kind',
      label: `expected exactly one of ${backendKinds.map(({ key }) => `\`${key}\``).join(', ')}`,
    });
    return NO_BACKEND;
  }
  return kind.open(kinds[kind.key], isNested ? context.at(kind.key) : context, name);
}
